"""From an expression or a text to a kernel that was compiled and checked."""

from __future__ import annotations

import hashlib
import itertools
import pickle
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from cutegen_lab.compile import CageCompiler, Limits
from cutegen_lab.core.artifact import Artifact, CompileFailure
from cutegen_lab.core.candidate import Config
from cutegen_lab.core.hashing import canonical_json, sha256
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.core.roofline import target_gpu
from cutegen_lab.core.trial import WorkloadCheck
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.devices.emulator import EmulatorDevice
from cutegen_lab.emulator import Options, run_plan
from cutegen_lab.judge import StandardJudge, select_workloads
from cutegen_lab.judge.checks.case import Case
from cutegen_lab.judge.draws.names import AROUND
from cutegen_lab.judge.draws.schedule import draws
from cutegen_lab.judge.execution.buffers import POISONS, Buffers
from cutegen_lab.problems import Reference, read_text
from cutegen_lab.problems.dtypes import TORCH
from cutegen_lab.problems.source import default_precision
from cutegen_lab.problems.tensors import laid_out
from cutegen_lab.problems.workloads import NAMES
from cutegen_lab.templates.families.family import Family
from cutegen_lab.templates.frontend.expr import Graph
from cutegen_lab.templates.frontend.reader import read
from cutegen_lab.templates.registry import family_for
from tests.harness.keeping import Outcome, Outcomes, folders, put
from tests.harness.pace import PACE

ARCH = "sm_90a"
NEVER = threading.Event()
ROUNDING = {"bf16": 3e-3, "f16": 4e-4, "f32": 1e-6}  # norm-wise errors that a product's rounding stays below
# Of generated text that is to be right. Which of its derived workloads and which draws are taken turns from problem to
# problem, so that every family meets all of them.
MOST_DERIVED = 1  # workloads beside the analyst's own
MORE_DRAWS = 3  # beside the normal one, of each workload


class Compiler(CageCompiler):
    """Builds are kept in ``folder`` for the next run, and so is what checks say of them. ``thorough``: every check is
    the judge's, on all its draws, and nothing that was said before is believed."""

    def __init__(self, folder: Path, limits: Limits | None = None, thorough: bool = False) -> None:
        kept = {kind: folder / name for kind, name in folders().items()}
        super().__init__(kept["builds"], workers=1, limits=limits)  # other tests have the other cores
        self.folder, self.limits, self.thorough = folder, limits or Limits(), thorough
        self.outcomes, self._graphs = Outcomes(kept["outcomes"]), kept["graphs"]

    def graph(self, problem: Problem) -> Graph:
        """What the reader finds. Raises ProviderError."""
        path = self._graphs / sha256(repr(problem))
        with suppress(OSError, pickle.PickleError, EOFError, AttributeError):
            return pickle.loads(path.read_bytes())  # noqa: S301 - written below
        found = read(problem)
        put(path, pickle.dumps(found))
        return found


@lru_cache(maxsize=512)
def problem_of(
    expression: str, inputs: str, *, checks: tuple[str, ...] | None = ("prime", "tail"), name: str = "tested"
) -> Problem:
    """``expression`` of ``inputs``, or a whole reference, as a problem with those of its derived workloads that
    ``checks`` names (None: all of them; not every problem has each): few keep a test short."""
    source = expression
    if "def reference" not in expression:
        arguments = ", ".join(re.findall(r"(\w+):", inputs.partition(";")[0]))
        source = f"def reference({arguments}):\n    return {expression}\n"
    assert not (unknown := {*(checks or ())} - NAMES), f"no derived workload is called {', '.join(sorted(unknown))}"
    problem = read_text(source, name=name, inputs_text=inputs)
    if checks is None:
        return problem
    return replace(problem, check_workloads=tuple(w for w in problem.check_workloads if w.name in checks))


def product_of(expression: str, inputs: str) -> Problem:
    """A matrix product, with all derived workloads."""
    return problem_of(expression, inputs, checks=None, name="product")


def built(
    compiler: CageCompiler, text: str, workloads: Sequence[Workload], arch: str = ARCH, config: Config | None = None
) -> Artifact:
    artifact = compiler.compile(text, config or {}, workloads, arch, lambda line: None, NEVER)
    assert isinstance(artifact, Artifact), f"{text}\n\n{artifact.verdict.value}: {artifact.reason}"
    return artifact


def compiled(compiler: Compiler, problem: Problem, **config: Any) -> tuple[str, Artifact]:
    """The family that serves it, and the artifact; ``config`` changes the family's default."""
    graph = compiler.graph(problem)
    family = family_for(graph)
    default = family.default_config(graph, problem.workload)
    assert not (unknown := config.keys() - default.keys()), f"{family.name} has no {', '.join(sorted(unknown))}"
    text = family.write(problem, graph, {**default, **config})
    return family.name, built(compiler, text, checked_workloads(compiler, problem))


def judged(compiler: Compiler, problem: Problem, **config: Any) -> tuple[str, Artifact]:
    """As :func:`compiled`; the artifact is :func:`right`, by a few draws."""
    family, artifact = compiled(compiler, problem, **config)
    right(compiler, problem, artifact)
    return family, artifact


def passed(compiler: Compiler, problem: Problem, text: str, arch: str = ARCH) -> Artifact:
    """The kernel of ``text``, which is right."""
    artifact = built(compiler, text, checked_workloads(compiler, problem), arch)
    right(compiler, problem, artifact)
    return artifact


def right(compiler: Compiler, problem: Problem, artifact: Artifact) -> None:
    """Generated text is right, as :func:`outcome` tells."""
    found = outcome(compiler, problem, artifact)
    assert found.verdict is Verdict.PASSED, f"{found.verdict.value}: {found.reason}"


def outcome(compiler: Compiler, problem: Problem, artifact: Artifact) -> Outcome:
    """Of generated text. A few draws tell, since it was not written to deceive; ``--exhaustive`` asks the judge for
    all."""
    if compiler.thorough:
        return _judged(problem, artifact, EmulatorDevice(), StandardJudge())
    key = _key(problem, "a few draws", artifact.source_sha256, artifact.config, artifact.arch)
    found = compiler.outcomes.get(key)
    if found is None:
        PACE.before_work()
        found = _on_few_draws(problem, artifact)
        if found.verdict.passed:
            compiler.outcomes.put(key, found)
    return found


def answered(
    compiler: Compiler, problem: Problem, text: str, options: Options | None = None
) -> tuple[Outcome, Artifact | None]:
    """What gate, cage, compiler and judge say of a text on all draws, which are the same each time (``--exhaustive``:
    other ones); and its artifact, None where there is none or it was not needed. ``options`` are the emulator's."""
    key = _key(problem, "all draws", sha256(text), repr(options), repr(compiler.limits))
    found = None if compiler.thorough else compiler.outcomes.get(key)
    device = EmulatorDevice(options)
    workloads = select_workloads(problem, device)
    if found is not None and not found.workloads:
        return found, None
    result = compiler.compile(text, {}, workloads, ARCH, lambda line: None, NEVER)
    artifact = result if isinstance(result, Artifact) else None
    if found is None:
        PACE.before_work()
        if isinstance(result, CompileFailure):
            found = Outcome(result.verdict, result.reason)
        else:
            seeds = itertools.count(1)
            judge = StandardJudge() if compiler.thorough else StandardJudge(lambda: next(seeds))
            found = _judged(problem, result, device, judge)
        if not compiler.thorough:
            compiler.outcomes.put(key, found)
    return found, artifact


def outputs(problem: Problem, artifact: Artifact, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """What the kernel makes of ``inputs`` (the main workload's); it must do no harm."""
    buffers = Buffers(problem.workload, artifact.builds["main"], inputs, POISONS[0])
    ran = EmulatorDevice().execute(buffers.build, buffers.tensors, buffers.views, NEVER)
    assert ran.fault is None, ran.fault
    assert buffers.modified_input() is None
    return buffers.outputs


def result_of(
    compiler: Compiler, family: Family, problem: Problem, config: Config, given: list[torch.Tensor], arch: str = ARCH
) -> tuple[torch.Tensor, str]:
    """(the one result, names of the kernels that ran), of inputs as they lie in memory."""
    text = family.write(problem, compiler.graph(problem), config)
    artifact = built(compiler, text, [problem.workload], arch)
    (result,) = outputs(
        problem, artifact, [laid_out(t.view(-1), s) for t, s in zip(given, problem.workload.inputs, strict=True)]
    )
    return result, "+".join(kernel.name for kernel in artifact.builds["main"].kernels)


def error_of(
    compiler: Compiler, family: Family, problem: Problem, config: Config, arch: str = ARCH
) -> tuple[float, str]:
    """(norm-wise error against float64 on normal values, names of the kernels that ran)."""
    generator = torch.Generator().manual_seed(0)
    given = [torch.randn(spec.cosize, generator=generator).to(TORCH[spec.dtype]) for spec in problem.workload.inputs]
    result, ran = result_of(compiler, family, problem, config, given, arch)
    values = [laid_out(t, s).double() for t, s in zip(given, problem.workload.inputs, strict=True)]
    namespace: dict[str, Any] = {}
    with default_precision():  # the source may ask PyTorch for less
        exec("import torch\nimport torch.nn.functional as F\n" + problem.source, namespace)  # noqa: S102
    expected = namespace["reference"](*values)
    return float((result.double() - expected).norm() / expected.norm()), ran


def counted(problem: Problem, artifact: Artifact) -> dict[str, float]:
    """The emulator's counters of the main workload, from a sample of its blocks; of several launches
    ``load_bytes_in_flight`` is the most."""
    build = artifact.builds["main"]
    buffers = Buffers(problem.workload, build, _zeros(problem), POISONS[0])
    sample = Options(shadow=False, races=False, sample_blocks=64)
    result = run_plan(build, buffers.tensors, buffers.views, NEVER, sample)
    assert result.execution.fault is None, result.execution.fault
    in_flight = max(counters["load_bytes_in_flight"] for counters in result.per_launch)
    return {**result.execution.counters, "load_bytes_in_flight": in_flight}


def read_times(problem: Problem, artifact: Artifact) -> float:
    """How often the kernels read the inputs: bytes loaded over those of all inputs."""
    size = sum(spec.nbytes for spec in problem.workload.inputs)
    return counted(problem, artifact)["global_load_bytes"] / size


def load_width(problem: Problem, artifact: Artifact, kind: str = "load") -> float:
    """Bytes that a warp's average global load (or "store") moves: 512 where every lane has a full vector."""
    counters = counted(problem, artifact)
    return counters[f"global_{kind}_bytes"] / counters[f"global_{kind}_requests"]


def checked_workloads(compiler: Compiler, problem: Problem) -> tuple[Workload, ...]:
    """Those that generated text is built for and checked on: the analyst's own and a few derived ones, or all."""
    every = select_workloads(problem, EmulatorDevice())
    derived = [workload for workload in every if workload.derived]
    if compiler.thorough or len(derived) <= MOST_DERIVED:
        return every
    first = _turn(problem) % len(derived)
    chosen = [*derived, *derived][first : first + MOST_DERIVED]
    return tuple(workload for workload in every if not workload.derived or workload in chosen)


def every_third(problem: Problem) -> Problem:
    """``problem`` with a third of its derived workloads: the first, fourth, … or the second, fifth, … or the third,
    sixth, …, so that a corpus meets all kinds."""
    return replace(problem, check_workloads=problem.check_workloads[_turn(problem) % 3 :: 3])


def few_draws(workload: Workload, turn: int, turns: int, problem: Problem) -> Iterator[str]:
    """Normal values and :data:`MORE_DRAWS` kinds more, the next ones for each of a problem's workloads."""
    first, *others = (name for name in draws(workload, turn, turns, 0.5, problem.tf32) if not name.startswith(AROUND))
    others.sort()
    yield first
    begin = _turn(problem) + MORE_DRAWS * turn
    yield from ([*others, *others][begin % len(others) :])[: min(MORE_DRAWS, len(others))]


def _turn(problem: Problem) -> int:
    """A number that differs from problem to problem."""
    return int(sha256(problem.source + problem.inputs_text)[:8], 16)


def _on_few_draws(problem: Problem, artifact: Artifact) -> Outcome:
    device, reference, gpu = EmulatorDevice(), Reference(problem), target_gpu(artifact.arch)
    workloads = [w for w in select_workloads(problem, device) if w.name in artifact.builds]
    assert workloads, "constraints() rules out every workload"
    for turn, workload in enumerate(workloads):
        case = Case(problem, reference, workload, artifact.builds[workload.name], device, gpu, NEVER)
        for number, distribution in enumerate(few_draws(workload, turn, len(workloads), problem)):
            seed = int.from_bytes(hashlib.sha256(f"{workload.name} {distribution}".encode()).digest()[:7], "big")
            check: WorkloadCheck | None = case.run(distribution, seed, first=number == 0)
            if check is not None and not check.verdict.passed:
                where = f"{workload.name} {workload.describe()}, {distribution} inputs"
                return Outcome(check.verdict, f"{check.reason} on {where}")
    return Outcome(Verdict.PASSED, "", tuple(w.name for w in workloads))


def _judged(problem: Problem, artifact: Artifact, device: EmulatorDevice, judge: StandardJudge) -> Outcome:
    result = judge.check(problem, artifact, device, lambda line: None, NEVER)
    return Outcome(result.verdict, result.reason, tuple(dict.fromkeys(check.workload for check in result.checks)))


def _key(problem: Problem, *rest: Any) -> str:
    return sha256(canonical_json([repr(problem), *rest]))


def _zeros(problem: Problem) -> list[torch.Tensor]:
    return [laid_out(torch.zeros(spec.cosize, dtype=TORCH[spec.dtype]), spec) for spec in problem.workload.inputs]
