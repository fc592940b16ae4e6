"""No cheat is accepted, and each ends with a verdict that says why: gate, cage and compiler, then the judge."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import count

import pytest

from cutegen_lab.attacks import catalogue
from cutegen_lab.compile import CageCompiler, CompileJob, Limits
from cutegen_lab.core.artifact import Artifact, CompileFailure
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.devices.emulator import EmulatorDevice
from cutegen_lab.emulator import Options
from cutegen_lab.judge import StandardJudge, select_workloads
from cutegen_lab.problems import read_text
from tests.cheats.corpus import (
    CAGE_VICTIM,
    FOLDER,
    VICTIMS,
    Cheat,
    cheat,
    honest,
    names,
    not_applicable,
    victim_problem,
)

NAMES = names()
DEVICE = EmulatorDevice(Options(budget=200_000))  # one cheat spins for ever, another computes for ever in the cage
LIMITS = Limits(cpu_seconds=3, wall_seconds=20.0)
# Issue 3's classes, and where each stands. L2 residency shows in times alone, and is the timing's to find.
CLASSES = {
    "skips work on large inputs", "writes half", "hard-codes an answer", "returns its input", "reads stale output",
    "caches across launches in the workspace", "caches across launches in device globals", "keys on pointer values",
    "tests for zeros", "tests for the poison",
    "tests for the distribution's moments", "lower precision", "reads the neighbour buffer", "spoils the next launch",
    "out-of-bounds reads that happen to work", "races that mostly win", "forged artifact or plan",
    "the cage: environment", "the cage: files", "the cage: network", "the cage: sys.modules", "the cage: ctypes",
    "the cage: subprocess", "the cage: signals", "the cage: patched compiler", "the cage: symlinks",
    "the cage: os._exit", "the cage: output flood", "the cage: endless work",
}  # fmt: skip


def marked(name: str) -> object:
    reason = cheat(name).open_reason
    return pytest.param(name, marks=pytest.mark.xfail(reason=reason, strict=True)) if reason else name


@dataclass(frozen=True)
class Compiling:
    """One cheat on its way through the compiler."""

    cheat: Cheat
    problem: Problem
    result: Future[Artifact | CompileFailure]


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CageCompiler]:
    with CageCompiler(tmp_path_factory.mktemp("cache"), limits=LIMITS) as compiler:
        yield compiler


@pytest.fixture(scope="module")
def cheats(request: pytest.FixtureRequest, compiler: CageCompiler) -> Iterator[Mapping[str, Compiling]]:
    """The cheats chosen to be tested. Later ones compile while earlier ones are judged."""
    tests = [item for item in request.session.items if isinstance(item, pytest.Function)]
    chosen = [t.callspec.params["name"] for t in tests if t.module is request.module and "cheats" in t.fixturenames]
    with ThreadPoolExecutor(2) as threads:

        def compiling(name: str) -> Compiling:
            found = cheat(name)
            problem = small_problem(found)
            workloads = select_workloads(problem, DEVICE)
            arguments = (found.source, {}, workloads, "sm_90a", lambda line: None, threading.Event())
            return Compiling(found, problem, threads.submit(compiler.compile, *arguments))

        yield {name: compiling(name) for name in chosen}
        threads.shutdown(cancel_futures=True)


def small_problem(found: Cheat) -> Problem:
    """As many of the problem's small workloads as its class needs: the rarest distributions come with the fourth."""
    victim = found.name.partition("@")[2]
    problem = victim_problem(victim) if victim else read_text(found.problem, name=found.name)
    few = victim and not found.kind.startswith("tests for")
    return replace(problem, check_workloads=problem.check_workloads[: 1 if few else 4])


@pytest.mark.parametrize("name", [marked(name) for name in NAMES])
def test_a_cheat_is_rejected(cheats: Mapping[str, Compiling], name: str) -> None:
    one = cheats[name]
    result = one.result.result()
    verdict, reason = Verdict.PASSED, ""
    if isinstance(result, CompileFailure):
        verdict, reason = result.verdict, result.reason
    else:
        seeds = count(1)  # the same draws each time: CI must not depend on luck
        check = StandardJudge(lambda: next(seeds)).check(
            one.problem, result, DEVICE, lambda line: None, threading.Event()
        )
        verdict, reason = check.verdict, check.reason
    assert verdict in one.cheat.expect, f"{verdict.value}: {reason}"
    assert reason


@pytest.mark.parametrize("name", [attack.name for attack in catalogue() if attack.behind_gate])
def test_the_cage_holds_without_the_gate(compiler: CageCompiler, name: str) -> None:
    attack = {a.name: a for a in catalogue()}[name]
    source = cheat(f"{name}@{CAGE_VICTIM}").source + "\n# not seen by the gate\n"
    problem = victim_problem(CAGE_VICTIM)
    result = compiler.compile_ungated(CompileJob(source, {}, (problem.workload,), "sm_90a"), lambda line: None)
    assert isinstance(result, CompileFailure), "it compiled"
    assert result.verdict in attack.behind_gate, result


@pytest.mark.parametrize("victim", VICTIMS)
def test_the_victims_are_honest(compiler: CageCompiler, victim: str) -> None:
    problem = victim_problem(victim)
    workloads = select_workloads(problem, DEVICE)
    artifact = compiler.compile(honest(victim), {}, workloads, "sm_90a", lambda line: None, threading.Event())
    assert isinstance(artifact, Artifact), artifact
    result = StandardJudge().check(problem, artifact, DEVICE, lambda line: None, threading.Event())
    assert result.verdict is Verdict.PASSED, result.reason


def test_the_corpus_is_large_and_every_class_is_there() -> None:
    assert len({name.partition("@")[0] for name in NAMES}) >= 40
    assert {cheat(name).kind for name in NAMES} == CLASSES
    by_hand = {path.stem for path in (FOLDER / "kernels").glob("*.py")}
    assert by_hand == {path.stem for path in (FOLDER / "problems").glob("*.py")}


def test_nothing_is_left_out_without_a_reason() -> None:
    left_out = not_applicable()
    assert set(left_out.values()) <= {
        "it needs a float32 input", "it needs a float32 output", "it needs a 16-bit floating-point output",
    }  # fmt: skip
    mounted = {name.partition("@")[0] for name in NAMES}
    assert mounted >= {attack.name for attack in catalogue()}
