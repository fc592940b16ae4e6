"""Solutions of flashinfer-bench and SOL-ExecBench are as their published schemas say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from cutegen_lab.core.errors import InputError
from cutegen_lab.exports import FORMATS, Subject
from cutegen_lab.exports.solutions import sol_execbench
from cutegen_lab.session.handle import RunHandle
from tests.exports.solution_schemas import FlashinferBench, SolExecbench

pytestmark = pytest.mark.kernel  # the run behind the fixtures
SCHEMAS: dict[str, type[BaseModel]] = {"flashinfer-bench": FlashinferBench, "sol-execbench": SolExecbench}


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_solution_is_as_its_schema_says(name: str, run: RunHandle, tmp_path: Path) -> None:
    (path,) = run.export_as(tmp_path / "solution.json", name)
    data = json.loads(path.read_text())
    SCHEMAS[name].model_validate(data)
    assert data["definition"] == "soft_max" and "verdict: passed on emulator" in data["description"]
    entry, _, function = data["spec"]["entry_point"].partition("::")
    (source,) = data["sources"]
    assert source["path"] == entry and f"def {function}(x, output_0):" in source["content"]
    assert data["spec"]["destination_passing_style"] is True
    of = {"flashinfer-bench": ("language", "python"), "sol-execbench": ("languages", ["cute_dsl"])}
    key, value = of[name]
    assert data["spec"][key] == value


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("spec", "entry_point"), "main.py:run"), (("spec", "entry_point"), "other.py::run"), (("author",), ""),
        (("sources",), []), (("sources", 0, "path"), "../main.py"), (("spec", "target_hardware"), []),
        (("spec", "speed"), 1), (("spec", "languages"), ["cute"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", SCHEMAS)
def test_the_schema_refuses_what_is_wrong(name: str, place: tuple[Any, ...], value: Any, subject: Subject) -> None:
    data = json.loads(FORMATS[name].make(subject)[".json"])
    SCHEMAS[name].model_validate(data)
    at = data
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    with pytest.raises(ValidationError):
        SCHEMAS[name].model_validate(data)


def test_hardware_has_the_names_that_sol_execbench_knows(subject: Subject) -> None:
    named = {gpu: json.loads(sol_execbench(replace(subject, gpu=gpu))[".json"]) for gpu in ("H200", "B200")}
    for data in named.values():
        SolExecbench.model_validate(data)
    hardware = {gpu: data["spec"]["target_hardware"] for gpu, data in named.items()}
    assert hardware == {"H200": ["LOCAL"], "B200": ["B200", "LOCAL"]}


def test_their_suffix_alone_chooses_neither(run: RunHandle, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"or give a format too"):
        run.export_as(tmp_path / "which.json")
    assert {FORMATS[name].suffix for name in SCHEMAS} == {".json"}
