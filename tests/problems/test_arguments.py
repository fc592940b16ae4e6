"""Which of a problem's declarations of its inputs counts: the option, then ``inputs()``, then a comment."""

from __future__ import annotations

import pytest

from cutegen_lab.core.errors import ProblemError
from cutegen_lab.problems import Reference, read_text

INPUTS = "def inputs():\n    return torch.rand(6, 8)\n"
BODY = "    return x * 2\n"


@pytest.mark.parametrize(
    "header",
    [
        "def reference(x):\n    # x [B, S, H, D]\n",
        "def reference(x):\n    # x: f32[3, 4]\n",
        "def reference(x):  # x [B, S, H, D]\n",
        "def reference(x):  # x: f32[3, 4]\n",
        "def reference(x):  # see [1]\n",
    ],
)
@pytest.mark.parametrize("name", ["inputs", "get_inputs"])
def test_a_function_for_the_inputs_beats_any_comment(header: str, name: str) -> None:
    problem = read_text(header + BODY + INPUTS.replace("inputs", name))
    assert str(problem.workload.inputs[0]) == "x: f32[6,8]"
    assert Reference(problem).parameters == {}


def test_the_option_beats_both() -> None:
    text = "def reference(x):  # x: f32[3,4]\n" + BODY
    assert read_text(text + INPUTS, inputs_text="x: f32[5]").workload.inputs[0].shape == (5,)


@pytest.mark.parametrize(
    "header",
    [
        "def reference(x):  # x: f32[3,4]\n",
        "def reference( x ) :# x: f32[3,4]\n",
        "def reference(x: torch.Tensor) -> torch.Tensor:  # x: f32[3,4]\n",
        "def reference(\n    x: torch.Tensor,  # as [rows, columns]\n) -> 'dict[str, int]':  # x: f32[3,4]\n",
        "def reference(x, scale={'a': 1}['a']):  # x: f32[3,4], scale: f32[4]\n",
    ],
)
def test_a_comment_at_the_end_of_the_signature_counts_where_nothing_else_does(header: str) -> None:
    assert read_text(header + BODY).workload.inputs[0].shape == (3, 4)


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ("def reference(x):\n    # x: f32[3,4]\n", "of reference.x. are not declared"),
        ("# x: f32[3,4]\ndef reference(x):\n", "of reference.x. are not declared"),
        ("def reference(x):  # x [B, S]\n", r"not declared.*cannot read input 'x \[B, S\]'"),
        ("def reference(x):  # x: f31[3]\n", "not declared.*unknown dtype 'f31'"),
    ],
)
def test_a_comment_that_declares_nothing_is_no_declaration(header: str, says: str) -> None:
    with pytest.raises(ProblemError, match=says):
        read_text(header + BODY)


@pytest.mark.parametrize("text", ["a: f16[8,4]; b: f16[4]", "a: f16[8,4]; b: f16[4];"])
def test_a_semicolon_may_separate_declarations_of_different_arguments(text: str) -> None:
    problem = read_text(f"def reference(a, b):  # {text}\n    return a + b\n")
    assert [str(spec) for spec in problem.workload.inputs] == ["a: f16[8,4]", "b: f16[4]"]
    assert len(problem.workloads) == 1


def test_a_semicolon_separates_workloads_of_the_same_arguments() -> None:
    problem = read_text("def reference(a, b):  # a: f16[8,4], b: f16[4]; a: f16[6,4], b: f16[4]\n    return a + b\n")
    assert [workload.inputs[0].shape for workload in problem.workloads] == [(8, 4), (6, 4)]
    with pytest.raises(ProblemError, match=r"for argument 'b' in each of the workloads, which ';' separates"):
        read_text("def reference(a, b):  # a: f16[8,4]; a: f16[8,4], b: f16[4]\n    return a + b\n")
