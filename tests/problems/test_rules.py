"""Rules for integers: how they are written, what they mean at other sizes, and when they cannot be followed."""

from __future__ import annotations

import pytest
import torch

from cutegen_lab.core.errors import ProblemError
from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.problems import read_text
from cutegen_lab.problems.rules import sample

VARLEN = """
import torch

def reference(x, cu):
    which = torch.searchsorted(cu[1:], torch.arange(x.shape[0], dtype=cu.dtype, device=x.device), right=True)
    sums = torch.zeros(cu.shape[0] - 1, x.shape[1], dtype=x.dtype, device=x.device).index_add(0, which, x)
    return sums
"""


def test_rules_are_read_and_kept() -> None:
    spec = TensorSpec.parse("cu: i32[9] sorted to q[0]")
    assert (spec.rule, spec.bound, spec.below, str(spec)) == ("sorted", ("q", 0), 0, "cu: i32[9]")
    assert TensorSpec.from_dict(spec.to_dict()) == spec
    pages = TensorSpec.parse("pages: i32[2,4]:(1,2) distinct below 1_000")
    assert (pages.rule, pages.below, pages.strides) == ("distinct", 1000, (1, 2))
    assert TensorSpec.parse("n: i64[3] below 7").rule == "range"
    with pytest.raises(ValueError, match="a rule is for integers"):
        TensorSpec.parse("x: f32[9] sorted to 4")
    with pytest.raises(ValueError, match="rules are"):
        TensorSpec.parse("x: i32[9] rising to 4")


@pytest.mark.parametrize(
    "inputs", ["def inputs():\n    return torch.empty(300, 16), 'i32[5] sorted to x[0]'\n",
               "def inputs():\n    return {'x': torch.empty(300, 16), 'cu': 'i32[5] sorted to x[0]'}\n"]
)  # fmt: skip
def test_bounds_follow_the_sizes_of_every_workload(inputs: str) -> None:
    problem = read_text(VARLEN + inputs)
    assert problem.workload.inputs[1].below == 300
    assert problem.check_workloads
    for workload in problem.check_workloads:
        x, cu = workload.inputs
        assert cu.rule == "sorted" and cu.below == x.shape[0] and cu.shape[0] >= 2


def test_rules_stand_in_comments_and_options_too() -> None:
    text = VARLEN.replace("(x, cu):", "(x, cu):  # x: f32[30,8], cu: i32[4] sorted to x[0]")
    assert read_text(text).workload.inputs[1].below == 30
    given = read_text(VARLEN, inputs_text="x: f32[30,8], cu: i32[4] sorted to 30; x: f32[9,8], cu: i32[4] sorted to 9")
    assert [w.inputs[1].below for w in given.workloads] == [30, 9]
    assert given.key != read_text(VARLEN, inputs_text="x: f32[30,8], cu: i32[4] sorted to 20").key


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ("x: f32[30,8], cu: i32[4] sorted to y[0]", r"there is no y\[0\].*The inputs are x\[30, 8\], cu\[4\]"),
        ("x: f32[30,8], cu: i32[4] sorted to x[2]", r"there is no x\[2\]"),
        ("x: f32[30,8], cu: i32[1] sorted to x[0]", "need at least two elements"),
        ("x: f32[30,8], cu: i32[31] distinct below x[0]", "31 distinct numbers below 30 are too many"),
        ("x: f32[300,8], cu: i8[4] sorted to x[0]", r"i8 cannot hold a non-empty range \[0, 300\)"),
        ("x: f32[30,8], cu: i32[4] below 0", r"i32 cannot hold a non-empty range \[0, 0\)"),
    ],
)
def test_rules_that_cannot_be_followed(inputs: str, says: str) -> None:
    with pytest.raises(ProblemError, match=says):
        read_text(VARLEN, inputs_text=inputs)


def test_a_sample_follows_its_rule() -> None:
    cu = sample(TensorSpec.parse("cu: i32[4] sorted to 10"))
    assert cu.tolist() == [0, 3, 6, 10]
    assert sorted(sample(TensorSpec.parse("p: i32[2,3] distinct below 6")).view(-1).tolist()) == list(range(6))
    assert bool(torch.all(sample(TensorSpec.parse("n: i32[30] below 7")) < 7))


def test_a_number_that_bounds_an_index_shrinks_with_what_it_indexes() -> None:
    text = "def reference(x, target):\n    return x.gather(1, target[:, None]).squeeze(1)\n"
    problem = read_text(text, inputs_text="x: bf16[511,4099], target: i64[511] below 4099")
    assert problem.workload.inputs[1].below == 4099
    assert {w.inputs[0].shape[1] for w in problem.check_workloads} >= {257, 1000, 4099}
    for workload in problem.check_workloads:
        assert workload.inputs[1].below == workload.inputs[0].shape[1]
