"""Modules with CuTe text: the real DSL makes of them the machine code and the launches that were judged."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from cutegen_lab.compile import dsl
from cutegen_lab.compile.plan import Recording, build_plan
from cutegen_lab.compile.ptx import entries
from cutegen_lab.compile.standin import standin_library
from cutegen_lab.core.artifact import LaunchPlan
from cutegen_lab.core.errors import InputError
from cutegen_lab.exports import Subject, dsl_host
from cutegen_lab.exports.model_new import model_new
from cutegen_lab.exports.solutions import flashinfer_bench, sol_execbench
from cutegen_lab.problems.dtypes import TORCH
from cutegen_lab.session.handle import RunHandle
from cutegen_lab.session.kernels import is_unmodified
from cutegen_lab.tuning.refactor.template import same_machine_code
from tests.exports.conftest import MODEL, subject_of

pytestmark = pytest.mark.kernel  # the run behind the fixtures
AS_KERNELBENCH = "(lambda model: model(*module.get_inputs()))(module.ModelNew(*module.get_init_inputs()))"


def recorded(text: str, call: str, folder: Path) -> dict[str, Any]:
    (folder / "module.py").write_text(text)
    script, library = Path(__file__).with_name("recorded.py"), standin_library(folder)
    command = [sys.executable, str(script), str(library), str(folder / "module.py"), call]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": str(script.parents[2])}
    done = subprocess.run(  # noqa: S603
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=250
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def check(found: dict[str, Any], subject: Subject) -> None:
    """What was recorded is the main workload's build."""
    workload, build = subject.builds[0]
    (ptx,) = found["ptx"]  # compiled once for all calls
    tensors = (*workload.tensors, *build.plan.workspace)
    recordings = [Recording(tuple(call["bases"]), 0, call["log"]) for call in found["calls"]]
    plan = build_plan(recordings, entries(ptx), tensors, build.plan.workspace)
    assert unnamed(plan) == unnamed(build.plan)
    assert same_machine_code(build, replace(build, ptx=ptx, plan=plan))


def unnamed(plan: LaunchPlan) -> LaunchPlan:
    return replace(plan, launches=tuple(replace(launch, kernel="") for launch in plan.launches))


def test_model_new_of_a_model(model: RunHandle, tmp_path: Path) -> None:
    (path,) = model.export_as(tmp_path / "new.py", "kernelbench")
    assert is_unmodified(path.read_text()) and "# verdict: passed on emulator" in path.read_text()
    check(recorded(path.read_text(), AS_KERNELBENCH, tmp_path), subject_of(model))


def test_model_new_of_a_function(subject: Subject, tmp_path: Path) -> None:
    check(recorded(model_new(subject)[".py"].decode(), AS_KERNELBENCH, tmp_path), subject)


def test_its_parameters_are_those_of_the_reference(model: RunHandle, tmp_path: Path) -> None:
    """KernelBench sets one seed before it makes each of the two models."""
    (path,) = model.export_as(tmp_path / "new.py", "kernelbench")
    text, torch_part = path.read_text(), "def _reference"
    there: dict[str, Any] = {"_kernel": lambda: None}
    exec(text[text.index(torch_part) :], there)  # noqa: S102
    own: dict[str, Any] = {}
    exec(MODEL, own)  # noqa: S102
    new, old = there["ModelNew"](*there["get_init_inputs"]()), own["Model"](*own["get_init_inputs"]())
    assert {n: t.tolist() for n, t in new.state_dict().items()} == {n: t.tolist() for n, t in old.state_dict().items()}
    assert isinstance(new, torch.nn.Module) and new.scale == 1.5


def test_a_kernel_whose_names_are_those_of_the_module(subject: Subject, tmp_path: Path) -> None:
    mine = "Served = Kernel = Model = torch = ModelNew = 7\n"
    odd = replace(subject, source=f'"""Mine."""\nfrom __future__ import annotations\n{subject.source}\n{mine}')
    if "from __future__" in subject.source:
        odd = replace(subject, source=f"{subject.source}\n{mine}")
    check(recorded(model_new(odd)[".py"].decode(), AS_KERNELBENCH, tmp_path), subject)


def test_a_reference_that_cannot_stand_in_a_function(subject: Subject) -> None:
    problem = replace(subject.problem, kind="kernelbench", source="from math import *\nclass Model: ...\n")
    with pytest.raises(InputError, match=r"import \* only allowed|cannot be in a function"):
        model_new(replace(subject, problem=problem))


@pytest.mark.parametrize("make", [flashinfer_bench, sol_execbench])
def test_a_solution_writes_into_what_it_is_given(make: Any, subject: Subject, tmp_path: Path) -> None:
    data = json.loads(make(subject)[".json"])
    (source,) = data["sources"]
    assert source["path"] == "main.py" and data["spec"]["entry_point"] == "main.py::run"
    call = "module.run(torch.randn(16, 256).bfloat16(), torch.empty(16, 256).bfloat16())"
    check(recorded(source["content"], call, tmp_path), subject)


def test_types_are_those_that_the_cage_compiles_for() -> None:
    assert {TORCH[dtype]: name for dtype, name in dsl._NUMERIC.items()} == dsl_host._TYPES
    assert dsl.ALIGNMENT_BYTES == dsl_host._ALIGNMENT_BYTES
