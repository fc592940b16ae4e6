"""No cheat is accepted, and each ends with a verdict that says why: gate, cage and compiler, then the judge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from cutegen_lab.attacks import NotApplicable, catalogue
from cutegen_lab.compile import CompileJob, Limits
from cutegen_lab.core.artifact import CompileFailure
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator import Options
from cutegen_lab.problems import read_text
from tests.cheats import corpus
from tests.cheats.corpus import CAGE_VICTIM, FOLDER, NOT_APPLICABLE, VICTIMS, Cheat, cheat, honest, victim_problem
from tests.harness.checking import Compiler, answered, every_third

NAMES = corpus.names()
OPTIONS = Options(budget=200_000)  # one cheat spins for ever, another computes for ever in the cage
LIMITS = Limits(cpu_seconds=3, wall_seconds=20.0)
# Issue 3's classes, and where each stands. L2 residency shows in times alone, and is the timing's to find.
CLASSES = {
    "skips work on large inputs", "writes half", "hard-codes an answer", "returns its input", "reads stale output",
    "caches across launches in the workspace", "caches across launches in device globals", "keys on pointer values",
    "tests for zeros", "tests for the poison", "tells a check from a timed run",
    "tests for the distribution's moments", "lower precision", "reads the neighbour buffer", "spoils the next launch",
    "out-of-bounds reads that happen to work", "races that mostly win", "forged artifact or plan",
    "the cage: environment", "the cage: files", "the cage: network", "the cage: sys.modules", "the cage: ctypes",
    "the cage: subprocess", "the cage: signals", "the cage: patched compiler", "the cage: symlinks",
    "the cage: os._exit", "the cage: output flood", "the cage: endless work",
}  # fmt: skip


def marked(name: str) -> object:
    reason = corpus.open_reason(name)
    return pytest.param(name, marks=pytest.mark.xfail(reason=reason, strict=True)) if reason else name


@pytest.fixture(scope="module")
def cage(compiler: Compiler) -> Iterator[Compiler]:
    """Its builds end soon."""
    with Compiler(compiler.folder, LIMITS, compiler.thorough) as made:
        yield made


def small_problem(found: Cheat) -> Problem:
    """As many of the problem's small workloads as its class needs: the rarest distributions come with the fourth."""
    victim = found.name.partition("@")[2]
    problem = victim_problem(victim) if victim else read_text(found.problem, name=found.name)
    few = victim and not found.kind.startswith("tests for")
    return replace(problem, check_workloads=problem.check_workloads[: 1 if few else 4])


@pytest.mark.parametrize("name", [marked(name) for name in NAMES])
def test_a_cheat_is_rejected(cage: Compiler, name: str) -> None:
    found = cheat(name)
    outcome, _ = answered(cage, small_problem(found), found.source, OPTIONS)
    assert outcome.verdict in found.expect, f"{outcome.verdict.value}: {outcome.reason}"
    assert outcome.reason


@pytest.mark.parametrize("name", [attack.name for attack in catalogue() if attack.behind_gate])
def test_the_cage_holds_without_the_gate(cage: Compiler, name: str) -> None:
    attack = corpus.attacks()[name]
    source = cheat(f"{name}@{CAGE_VICTIM}").source + "\n# not seen by the gate\n"
    problem = victim_problem(CAGE_VICTIM)
    result = cage.compile_ungated(CompileJob(source, {}, (problem.workload,), "sm_90a"), lambda line: None)
    assert isinstance(result, CompileFailure), "it compiled"
    assert result.verdict in attack.behind_gate, result


@pytest.mark.parametrize("victim", VICTIMS)
def test_the_victims_are_honest(compiler: Compiler, victim: str) -> None:
    whole = victim_problem(victim)
    outcome, _ = answered(compiler, whole if compiler.thorough else every_third(whole), honest(victim))
    assert outcome.verdict is Verdict.PASSED, outcome.reason


def test_the_corpus_is_large_and_every_class_is_there() -> None:
    assert len({name.partition("@")[0] for name in NAMES}) >= 40
    assert {corpus.kind(name) for name in NAMES} == CLASSES
    by_hand = {path.stem for path in (FOLDER / "kernels").glob("*.py")}
    assert by_hand == {path.stem for path in (FOLDER / "problems").glob("*.py")}


def test_nothing_is_left_out_without_a_reason() -> None:
    for name, reason in NOT_APPLICABLE.items():
        with pytest.raises(NotApplicable, match=reason):
            cheat(name)
    mounted = {name.partition("@")[0] for name in NAMES}
    assert mounted >= {attack.name for attack in catalogue()}
