"""Every honest kernel passes, and the lint suspects none.

On all draws, of a third of its derived workloads; ``--exhaustive`` and ``benchmarks.judge.judge_cases`` take all.
"""

from __future__ import annotations

import pytest

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.devices.emulator import EmulatorDevice
from cutegen_lab.judge import select_workloads
from cutegen_lab.problems import read_text
from tests.harness.checking import Compiler, answered, every_third
from tests.honest.corpus import FOLDER, REJECTED_TODAY, honest, names

NAMES = names()
CASES = [
    pytest.param(name, marks=pytest.mark.xfail(reason=REJECTED_TODAY[name], strict=True))
    if name in REJECTED_TODAY
    else name
    for name in NAMES
]
# Workloads that its constraints leave out: rows of 16 bytes alone.
UNSERVED = {"tensor_map_by_hand": 4, "one_thread_waits": 4, "two_sync_warps": 4}


@pytest.mark.parametrize("name", CASES)
def test_an_honest_kernel_passes(compiler: Compiler, name: str) -> None:
    kernel = honest(name)
    whole = read_text(kernel.problem, name=name, inputs_text=kernel.inputs)
    problem = whole if compiler.thorough or name in UNSERVED else every_third(whole)
    outcome, artifact = answered(compiler, problem, kernel.source)
    assert outcome.verdict is Verdict.PASSED, outcome.reason
    assert artifact is not None
    selected = {workload.name for workload in select_workloads(problem, EmulatorDevice())}
    assert set(outcome.workloads) == selected - set(artifact.unserved)
    assert len(artifact.unserved) <= UNSERVED.get(name, 1)
    warnings = [note for note in artifact.builds["main"].notes if note.code.startswith("L")]
    assert not warnings, f"the lint suspects an honest kernel: {warnings}"


def test_the_corpus_is_large_and_complete() -> None:
    assert len(NAMES) >= 40
    by_hand = {path.stem for path in (FOLDER / "kernels").glob("*.py")}
    assert by_hand == {path.stem for path in (FOLDER / "problems").glob("*.py")}
    assert len(by_hand) >= 20
    assert set(REJECTED_TODAY) <= set(NAMES)
