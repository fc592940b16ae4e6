"""No honest kernel is rejected: gate, cage and compiler, then the judge on the emulator, for the whole corpus."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from cutegen_lab.compile import CageCompiler
from cutegen_lab.core.artifact import Artifact
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.devices.emulator import EmulatorDevice
from cutegen_lab.judge import StandardJudge, select_workloads
from cutegen_lab.problems import read_text
from tests.honest.corpus import FOLDER, REJECTED_TODAY, honest, names

NAMES = names()
CASES = [
    pytest.param(name, marks=pytest.mark.xfail(reason=REJECTED_TODAY[name], strict=True))
    if name in REJECTED_TODAY
    else name
    for name in NAMES
]


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CageCompiler]:
    with CageCompiler(tmp_path_factory.mktemp("cache")) as made:
        yield made


@pytest.mark.parametrize("name", CASES)
def test_an_honest_kernel_passes(compiler: CageCompiler, name: str) -> None:
    kernel = honest(name)
    problem = read_text(kernel.problem, name=name, inputs_text=kernel.inputs)
    device, cancel = EmulatorDevice(), threading.Event()
    workloads = select_workloads(problem, device)
    artifact = compiler.compile(kernel.source, {}, workloads, "sm_90a", lambda line: None, cancel)
    assert isinstance(artifact, Artifact), artifact.reason
    warnings = [note for note in artifact.builds["main"].notes if note.code.startswith("L")]
    assert not warnings, f"the lint suspects an honest kernel: {warnings}"
    result = StandardJudge().check(problem, artifact, device, lambda line: None, cancel)
    assert result.verdict is Verdict.PASSED, result.reason
    assert {check.workload for check in result.checks} == {workload.name for workload in workloads}


def test_the_corpus_is_large_and_complete() -> None:
    assert len(NAMES) >= 40
    by_hand = {path.stem for path in (FOLDER / "kernels").glob("*.py")}
    assert by_hand == {path.stem for path in (FOLDER / "problems").glob("*.py")}
    assert len(by_hand) >= 20
    assert set(REJECTED_TODAY) <= set(NAMES)
