"""Definitions of FlashInfer-Bench and SOL-ExecBench as problems. The fixtures follow the schemas in definition.md and
workload.md of flashinfer-ai/flashinfer-bench and NVIDIA/SOL-ExecBench."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from cutegen_lab.core.errors import ProblemError
from cutegen_lab.core.problem import Problem
from cutegen_lab.problems import Reference, read_text
from cutegen_lab.suite.axis_sizes import axis_size
from cutegen_lab.suite.files import problem_files
from cutegen_lab.suite.traces import problem_text

SCALED: dict[str, Any] = {
    "name": "scaled_add_h8", "op_type": "elementwise", "tags": ["status:draft"], "description": "y = s x + w",
    "axes": {"rows": {"type": "var", "description": None}, "hidden": {"type": "const", "value": 8}},
    "inputs": {
        "x": {"shape": ["rows", "hidden"], "dtype": "bfloat16"}, "w": {"shape": ["hidden"], "dtype": "bfloat16"},
        "s": {"shape": None, "dtype": "float32"},
    },
    "outputs": {"y": {"shape": ["rows", "hidden"], "dtype": "bfloat16"}},
    "reference": "import torch\n\n\ndef run(x, w, s):\n    assert x.shape[1] == 8\n    return x * s + w",
    "constraints": [],
}  # fmt: skip


def workload(rows: int, s: float = 2.0, kind: str = "random") -> dict[str, Any]:
    stored = {"type": kind, "path": "blob/x.safetensors", "tensor_key": "x"}
    inputs = {"x": stored, "w": {"type": "random"}, "s": {"type": "scalar", "value": s}}
    return {"uuid": f"u{rows}", "axes": {"rows": rows}, "inputs": inputs}


def flashinfer(folder: Path, definition: dict[str, Any], *workloads: dict[str, Any]) -> Path:
    """A trace set with one definition: workloads are traces without solution."""
    name, op_type = definition["name"], definition.get("op_type", "none")
    path = folder / "definitions" / op_type / f"{name}.json"
    lines = folder / "workloads" / op_type / f"{name}.jsonl"
    for each in (path, lines):
        each.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(definition))
    lines.write_text("".join(
        json.dumps({"definition": name, "workload": w, "solution": None, "evaluation": None}) + "\n" for w in workloads
    ))  # fmt: skip
    return path


def sol(folder: Path, definition: dict[str, Any], *workloads: dict[str, Any]) -> Path:
    """A problem's folder: workloads are the lines."""
    folder.mkdir(parents=True)
    (folder / "definition.json").write_text(json.dumps(definition))
    (folder / "reference.py").write_text(definition["reference"])
    (folder / "workload.jsonl").write_text("".join(json.dumps(w) + "\n" for w in workloads))
    return folder / "definition.json"


def read(path: Path) -> Problem:
    name, text = problem_text(path)
    return read_text(text, name=name)


def shapes(problem: Problem) -> list[tuple[int, ...]]:
    return [workload.inputs[0].shape for workload in problem.workloads]


@pytest.mark.parametrize("form", [flashinfer, sol])
def test_a_definition_is_a_problem_at_its_workloads(tmp_path: Path, form: Any) -> None:
    problem = read(form(tmp_path / "set", SCALED, workload(3), workload(16), workload(3)))
    assert (problem.name, shapes(problem)) == ("scaled_add_h8", [(16, 8), (3, 8)])
    x, w = torch.randn(3, 8, dtype=torch.bfloat16), torch.randn(8, dtype=torch.bfloat16)
    (y,) = Reference(problem).run([x, w])
    assert torch.equal(y, x * 2.0 + w)
    assert read(tmp_path / "set" / path_in(form)).key == problem.key  # so that a suite finds its run again


def path_in(form: Any) -> str:
    return "definition.json" if form is sol else "definitions/elementwise/scaled_add_h8.json"


def test_the_largest_workload_is_the_main_one_and_few_are_kept(tmp_path: Path) -> None:
    path = flashinfer(tmp_path, SCALED, *(workload(rows) for rows in (2, 64, 5, 7, 9)), workload(100, s=3.0))
    assert shapes(read(path)) == [(64, 8), (7, 8), (2, 8)]  # 100 rows have another scale: another problem


def test_axes_may_be_expressions_and_outputs_a_dict(tmp_path: Path) -> None:
    definition = {
        **SCALED, "name": "halves",
        "axes": {"rows": {"type": "var"}, "both": {"type": "expr", "expression": "2 * half"},
                 "half": {"type": "const", "value": 4}},
        "inputs": {"x": {"shape": ["rows", "both"], "dtype": "float32"}},
        "outputs": {"low": {"shape": ["rows", "half"], "dtype": "float32"},
                    "high": {"shape": ["rows", "half"], "dtype": "float32"}},
        "reference": "def run(x):\n    a, b = x.chunk(2, -1)\n    return {'high': b.exp(), 'low': -a}\n",
    }  # fmt: skip
    problem = read(sol(tmp_path / "halves", definition, {"uuid": "u", "axes": {"rows": 5}, "inputs": {}}))
    x = torch.randn(5, 8)
    low, high = Reference(problem).run([x])
    assert torch.equal(low, -x[:, :4]) and torch.equal(high, x[:, 4:].exp())


@pytest.mark.parametrize(
    ("text", "size"), [("a * b + 1", 13), ("a // 2 - -b", 5), ("(a + b) / 7", 1), ("b ** 2 % a", 1), ("+a", 4)]
)
def test_an_axis_is_computed(text: str, size: int) -> None:
    assert axis_size(text, {"a": 4, "b": 3}) == size


@pytest.mark.parametrize("text", ["a / 3", "c", "a +", "f(a)", "a ** b", "2 ** 9 ** 9", "a / 0", "a.b", "1e400", ""])
def test_what_no_axis_is(text: str) -> None:
    with pytest.raises(ProblemError, match="cannot compute the axis"):
        axis_size(text, {"a": 4, "b": 3})


def changed(**values: Any) -> dict[str, Any]:
    return {**SCALED, **values}


INTEGERS = {**SCALED["inputs"], "x": {"shape": ["rows", "hidden"], "dtype": "int32"}}


@pytest.mark.parametrize(
    ("definition", "line", "message"),
    [
        (changed(axes={"rows": {"type": "var"}}), workload(3), "unknown axis 'hidden'"),
        (changed(axes={"rows": {"type": "other"}}), workload(3), "axes.rows: Input tag 'other'"),
        (changed(outputs={"y": {"shape": None, "dtype": "float32"}}), workload(3), "output 'y' of scaled_add_h8 is a"),
        (changed(reference="def walk(x):\n    return x\n"), workload(3), "has no function run"),
        (changed(reference="def run(x:\n"), workload(3), "syntax error at line 1"),
        (changed(inputs={"x": {"shape": ["rows"], "dtype": "float4_e2m1"}}), workload(3), "unknown dtype 'float4"),
        (changed(custom_inputs_entrypoint="make"), workload(3), r"takes its inputs from its function make\(\)"),
        (changed(inputs=INTEGERS), workload(3, kind="safetensors"), "input 'x' of scaled_add_h8 has recorded integers"),
        (SCALED, workload(3, kind="custom"), "input 'x' of scaled_add_h8 is of type 'custom'"),
        (SCALED, {"axes": {}, "inputs": workload(3)["inputs"]}, "has no size of axis 'rows'"),
        (SCALED, {"axes": {"rows": 3}, "inputs": {}}, "has no value for 's'"),
        (SCALED, {"axes": {"rows": "many"}, "inputs": {}}, "line 1: workload.axes.rows: Input should be"),
    ],
)  # fmt: skip
def test_what_is_not_supported_is_named(
    tmp_path: Path, definition: dict[str, Any], line: dict[str, Any], message: str
) -> None:
    with pytest.raises(ProblemError, match=message):
        problem_text(flashinfer(tmp_path, definition, line))


def test_a_definition_without_workloads_is_named(tmp_path: Path) -> None:
    path = flashinfer(tmp_path, SCALED)
    with pytest.raises(ProblemError, match="has no workload"):
        problem_text(path)
    (tmp_path / "workloads" / "elementwise" / "scaled_add_h8.jsonl").unlink()
    with pytest.raises(ProblemError, match=r"no workloads of scaled_add_h8: .*scaled_add_h8\.jsonl does not exist"):
        problem_text(path)


def test_the_definitions_of_a_folder_are_its_problems(tmp_path: Path) -> None:
    flashinfer(tmp_path / "traces", SCALED, workload(3))
    broken = tmp_path / "traces" / "definitions" / "gemm" / "broken.json"
    broken.parent.mkdir()
    broken.write_text("{")
    (tmp_path / "traces" / "solutions").mkdir()
    (tmp_path / "traces" / "solutions" / "other.json").write_text("{}")
    sol(tmp_path / "bench" / "L1" / "scaled", SCALED, workload(3))
    names = [file.name for file in problem_files([tmp_path / "traces", tmp_path / "bench"])]
    assert names == ["definitions/elementwise/scaled_add_h8", "definitions/gemm/broken", "L1/scaled"]
    assert [file.name for file in problem_files([broken])] == ["broken"]
    with pytest.raises(ProblemError, match=r"broken\.json: the text: Invalid JSON"):
        problem_text(broken)
