"""From a matrix product to its result, for tests of the families that compute them."""

from __future__ import annotations

import threading
from typing import Any

import torch

from cutegen_lab.bench import case
from cutegen_lab.compile import CageCompiler
from cutegen_lab.core.artifact import Artifact
from cutegen_lab.core.problem import Problem
from cutegen_lab.devices.emulator import EmulatorDevice
from cutegen_lab.problems.dtypes import TORCH
from cutegen_lab.problems.source import full_precision
from cutegen_lab.problems.tensors import laid_out
from cutegen_lab.templates.reader import read
from cutegen_lab.templates.registry import Family

ROUNDING = {"bf16": 3e-3, "f16": 4e-4, "f32": 1e-6}


def problem_of(expression: str, inputs: str) -> Problem:
    return case.problem_of("product", expression, inputs)


def result_of(
    compiler: CageCompiler, family: Family, problem: Problem, config: dict[str, Any], given: list[torch.Tensor],
    arch: str = "sm_90a",
) -> tuple[torch.Tensor, str]:  # fmt: skip
    """(the result, the kernels that ran), of inputs as they lie in memory."""
    source = family.write(problem, read(problem), config)
    workload = problem.workload
    artifact = compiler.compile(source, {}, [workload], arch, lambda line: None, threading.Event())
    assert isinstance(artifact, Artifact), f"{artifact}\n{source}"
    build = artifact.builds[workload.name]
    (spec,) = workload.outputs
    result = torch.full((spec.numel,), float("nan"), dtype=TORCH[spec.dtype])
    scratch = [torch.full((spec.nbytes,), 0xFF, dtype=torch.uint8) for spec in build.plan.workspace]
    views = [memoryview(t.view(-1).view(torch.uint8).numpy()) for t in (*given, result, *scratch)]
    tensors = (*workload.tensors, *build.plan.workspace)
    fault = EmulatorDevice().execute(build, tensors, views, threading.Event()).fault
    assert fault is None, f"{fault}\n{source}"
    return laid_out(result, spec), "+".join(kernel.name for kernel in build.kernels)


def error_of(
    compiler: CageCompiler, family: Family, problem: Problem, config: dict[str, Any], arch: str = "sm_90a"
) -> tuple[float, str]:
    """(norm-wise error against float64, the kernels that ran)."""
    torch.manual_seed(0)
    given = [torch.randn(spec.cosize).to(TORCH[spec.dtype]) for spec in problem.workload.inputs]
    result, ran = result_of(compiler, family, problem, config, given, arch)
    values = [laid_out(t, s).double() for t, s in zip(given, problem.workload.inputs, strict=True)]
    namespace: dict[str, Any] = {}
    with full_precision():  # the source may ask PyTorch for less
        exec("import torch\nimport torch.nn.functional as F\n" + problem.source, namespace)  # noqa: S102
    expected = namespace["reference"](*values)
    return float((result.double() - expected).norm() / expected.norm()), ran
