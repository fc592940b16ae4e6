"""From an expression to a judged kernel, for tests of families."""

from __future__ import annotations

import re
import threading
from dataclasses import replace

import torch

from cutegen_lab.bench import case
from cutegen_lab.compile import CageCompiler
from cutegen_lab.core.artifact import Artifact
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.devices.emulator import EmulatorDevice
from cutegen_lab.judge import StandardJudge, select_workloads
from cutegen_lab.judge.buffers import POISONS, Buffers
from cutegen_lab.templates.reader import read
from cutegen_lab.templates.registry import family_for


def problem_of(expression: str, inputs: str, *, checks: tuple[str, ...] = ("prime", "tail")) -> Problem:
    """With only the derived workloads that ``checks`` name, which keeps a test short."""
    problem = case.problem_of("tested", expression, inputs)
    return replace(problem, check_workloads=tuple(w for w in problem.check_workloads if w.name in checks))


def compiled(compiler: CageCompiler, problem: Problem, **config: int) -> tuple[str, Artifact]:
    """The family that serves it, and the artifact; ``config`` changes the family's default."""
    graph = read(problem)
    family = family_for(graph)
    text = family.write(problem, graph, {**family.default_config(graph, problem.workload), **config})
    return family.NAME, _built(compiler, problem, text)


def judged(compiler: CageCompiler, problem: Problem, **config: int) -> tuple[str, Artifact]:
    """As :func:`compiled`; the artifact passed."""
    family, artifact = compiled(compiler, problem, **config)
    _check(problem, artifact)
    return family, artifact


def passed(compiler: CageCompiler, problem: Problem, text: str) -> None:
    """The kernel of ``text`` passes."""
    _check(problem, _built(compiler, problem, text))


def _built(compiler: CageCompiler, problem: Problem, text: str) -> Artifact:
    workloads = select_workloads(problem, EmulatorDevice())
    artifact = compiler.compile(text, {}, workloads, "sm_90a", lambda line: None, threading.Event())
    assert isinstance(artifact, Artifact), f"{artifact}\n{text}"
    return artifact


def _check(problem: Problem, artifact: Artifact) -> None:
    result = StandardJudge().check(problem, artifact, EmulatorDevice(), lambda line: None, threading.Event())
    assert result.verdict is Verdict.PASSED, result.reason


def wide_loads(artifact: Artifact) -> int:
    """How many instructions load 16 bytes."""
    return len(re.findall(r"ld\.global(?:\.L2::cache_hint)?\.v4", artifact.builds["main"].ptx))


def outputs(problem: Problem, artifact: Artifact, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """What the kernel makes of ``inputs`` (the main workload's); it must do no harm."""
    buffers = Buffers(problem.workload, artifact.builds["main"], inputs, POISONS[0])
    ran = EmulatorDevice().execute(buffers.build, buffers.tensors, buffers.views, threading.Event())
    assert ran.fault is None, ran.fault
    assert buffers.modified_input() is None
    return buffers.outputs
