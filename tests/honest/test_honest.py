"""No honest kernel is rejected: gate, cage and compiler, then the judge on the emulator, for the whole corpus."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from cutegen_lab.compile import CageCompiler
from cutegen_lab.core.artifact import Artifact, CompileFailure
from cutegen_lab.core.problem import Problem, Workload
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
DEVICE = EmulatorDevice()


@dataclass(frozen=True)
class Compiling:
    """One kernel on its way through the compiler."""

    problem: Problem
    workloads: tuple[Workload, ...]
    result: Future[Artifact | CompileFailure]


@pytest.fixture(scope="module")
def kernels(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, Compiling]]:
    """The kernels chosen to be tested. Later ones compile while earlier ones are judged."""
    tests = [
        item for item in request.session.items if isinstance(item, pytest.Function) and "name" in item.fixturenames
    ]
    chosen = [test.callspec.params["name"] for test in tests if test.module is request.module]
    with CageCompiler(tmp_path_factory.mktemp("cache")) as compiler, ThreadPoolExecutor(2) as threads:

        def compiling(name: str) -> Compiling:
            kernel = honest(name)
            problem = read_text(kernel.problem, name=name, inputs_text=kernel.inputs)
            workloads = select_workloads(problem, DEVICE)
            arguments = (kernel.source, {}, workloads, "sm_90a", lambda line: None, threading.Event())
            return Compiling(problem, workloads, threads.submit(compiler.compile, *arguments))

        yield {name: compiling(name) for name in chosen}
        threads.shutdown(cancel_futures=True)


@pytest.mark.parametrize("name", CASES)
def test_an_honest_kernel_passes(kernels: Mapping[str, Compiling], name: str) -> None:
    kernel = kernels[name]
    artifact = kernel.result.result()
    assert isinstance(artifact, Artifact), artifact.reason
    warnings = [note for note in artifact.builds["main"].notes if note.code.startswith("L")]
    assert not warnings, f"the lint suspects an honest kernel: {warnings}"
    result = StandardJudge().check(kernel.problem, artifact, DEVICE, lambda line: None, threading.Event())
    assert result.verdict is Verdict.PASSED, result.reason
    assert {check.workload for check in result.checks} == {workload.name for workload in kernel.workloads}


def test_the_corpus_is_large_and_complete() -> None:
    assert len(NAMES) >= 40
    by_hand = {path.stem for path in (FOLDER / "kernels").glob("*.py")}
    assert by_hand == {path.stem for path in (FOLDER / "problems").glob("*.py")}
    assert len(by_hand) >= 20
    assert set(REJECTED_TODAY) <= set(NAMES)
