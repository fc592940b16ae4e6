"""Configs of one family at one shape, whose predicted order is compared with a GPU's.

The time model's constants are chosen with the groups to *fit* in sight. The *held out* ones have other shapes, configs
and types; they say how far the model can be trusted. Whoever changes the model after a look at what it gets wrong of
those moves them to the others and thinks of new ones.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from cutegen_lab.bench.case import problem_of
from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.templates.frontend.reader import read
from cutegen_lab.templates.registry import family_for
from tests.honest import corpus

CONFIGS, FIRST = 24, 12  # of a template's group; the first are those that were profiled before there were more


@dataclass(frozen=True)
class Group:
    """``expression`` of ``inputs`` by the template that serves it."""

    name: str
    expression: str
    inputs: str
    held_out: bool = False

    @property
    def problem(self) -> Problem:
        return problem_of(self.name, self.expression, self.inputs)

    def kernels(self) -> Iterator[tuple[Workload, str, Config]]:
        """(workload, text, config): the family's default and a sample of its feasible configs, each time the same."""
        problem = self.problem
        graph = read(problem)
        family = family_for(graph)
        default = dict(family.default_config(graph, problem.workload))
        every = [dict(zip(family.domains, values, strict=True)) for values in product(*family.domains.values())]
        every = [c for c in every if c != default and not family.why_not(graph, c)]
        draw = random.Random(self.name)  # noqa: S311 - the same every time
        chosen = draw.sample(every, min(FIRST - 1, len(every)))
        rest = [c for c in every if c not in chosen]
        for config in [default, *chosen, *draw.sample(rest, min(CONFIGS - FIRST, len(rest)))]:
            yield problem.workload, family.write(problem, graph, config), config


@dataclass(frozen=True)
class Gemm(Group):
    """A kernel of ``tests/honest`` with other constants (in capitals) and other keywords of its ``launch``."""

    kernel: str = ""
    domains: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Values of each; the first config has the kernel's own, which are the first of each."""

    def kernels(self) -> Iterator[tuple[Workload, str, Config]]:
        workload, source = self.problem.workload, corpus.honest(self.kernel).source
        every: list[dict[str, Any]] = [
            dict(zip(self.domains, values, strict=True)) for values in product(*self.domains.values())
        ]
        others = random.Random(self.name).sample(every[1:], min(CONFIGS, len(every)) - 1)  # noqa: S311
        for config in [every[0], *others]:
            text = source
            for name, value in config.items():
                if name.isupper():
                    text = _with_constant(text, name, value)
            yield workload, text, config


def _with_constant(text: str, name: str, value: int) -> str:
    """``text`` with one of its module's constants set anew after the line that sets it."""
    lines = text.splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if name in line.partition(" = ")[0].split(", "))
    return "".join([*lines[: at + 1], f"{name} = {value}\n", *lines[at + 1 :]])


_WGMMA: Mapping[str, Sequence[int]] = {"clusters": (66, 50, 33, 16), "STAGES": (3, 2, 4, 5), "BLOCK_N": (128, 64)}
_MMA_SYNC: Mapping[str, Sequence[int]] = {"TILE": (64, 32, 128), "TILE_K": (32, 64), "STAGES": (3, 2, 4)}
GROUPS: Sequence[Group] = (
    Group("softmax-4096x4096", "torch.softmax(x, -1)", "x: bf16[4096,4096]"),
    Group("softmax-32768x1024", "torch.softmax(x, -1)", "x: bf16[32768,1024]"),
    Group("softmax-1024x32768", "torch.softmax(x, -1)", "x: bf16[1024,32768]"),
    Group("rms_norm-8192x8192", "F.rms_norm(x, w.shape, w, 1e-6)", "x: bf16[8192,8192], w: bf16[8192]"),
    Group("row_sum-f32-8192x2048", "x.sum(-1)", "x: f32[8192,2048]"),
    Group("column_sum-8192x4096", "x.sum(0)", "x: f32[8192,4096]"),
    Group("column_sum-65536x512", "x.sum(0)", "x: bf16[65536,512]"),
    Group("column_mean-2048x16384", "x.mean(0)", "x: bf16[2048,16384]"),
    Group("gelu-8192x4096", "F.gelu(x)", "x: bf16[8192,4096]"),
    Group("add-16M", "x + y", "x: f32[16777216], y: f32[16777216]"),
    Group("gate-4096x11008", "F.silu(x) * y", "x: f16[4096,11008], y: f16[4096,11008]"),
    Gemm("gemm_tma_wgmma-1024", "a @ b", "a: bf16[1024,1024], b: bf16[1024,1024]", False, "gemm_tma_wgmma", _WGMMA),
    Gemm("gemm_tma_wgmma-2048", "a @ b", "a: bf16[2048,2048], b: bf16[2048,2048]", False, "gemm_tma_wgmma", _WGMMA),
    Gemm("tensor_core_matmul-1024", "a @ b.T", "a: bf16[1024,1024], b: bf16[1024,1024]", False, "tensor_core_matmul",
         _MMA_SYNC),
    Gemm("tensor_core_matmul-2048", "a @ b.T", "a: bf16[2048,2048], b: bf16[2048,2048]", False, "tensor_core_matmul",
         _MMA_SYNC),
    Group("softmax-f32-8192x2048", "torch.softmax(x, -1)", "x: f32[8192,2048]"),
    Group("softmax-2048x16384", "torch.softmax(x, -1)", "x: bf16[2048,16384]"),
    Group("rms_norm-16384x5120", "F.rms_norm(x, w.shape, w, 1e-6)", "x: bf16[16384,5120], w: bf16[5120]"),
    Group("row_sum-16384x4096", "x.sum(-1)", "x: bf16[16384,4096]"),
    Group("column_sum-f32-4096x8192", "x.sum(0)", "x: f32[4096,8192]"),
    Group("column_mean-16384x2048", "x.mean(0)", "x: bf16[16384,2048]"),
    Group("gelu-f32-4096x4096", "F.gelu(x)", "x: f32[4096,4096]"),
    Group("add-bf16-32M", "x + y", "x: bf16[33554432], y: bf16[33554432]"),
    Group("gate-bf16-8192x5504", "F.silu(x) * y", "x: bf16[8192,5504], y: bf16[8192,5504]"),
    Gemm("gemm_tma_wgmma-1536x3072", "a @ b", "a: bf16[1536,1024], b: bf16[1024,3072]", False, "gemm_tma_wgmma",
         _WGMMA),
    Gemm("tensor_core_matmul-1536", "a @ b.T", "a: bf16[1536,768], b: bf16[1536,768]", False, "tensor_core_matmul",
         _MMA_SYNC),
    Group("gemm-1024", "a @ b", "a: bf16[1024,1024], b: bf16[1024,1024]"),
    Group("gemm-2048x1536x1024", "a @ b", "a: bf16[2048,1024], b: bf16[1024,1536]"),
    Group("gemm-1280x3072x768", "a @ b", "a: bf16[1280,768], b: bf16[768,3072]"),
    Group("gemm-512x4096x2048", "a @ b.T", "a: bf16[512,2048], b: bf16[4096,2048]"),
    Group("softmax-16384x2048", "torch.softmax(x, -1)", "x: bf16[16384,2048]", True),
    Group("softmax-f32-2048x8192", "torch.softmax(x, -1)", "x: f32[2048,8192]", True),
    Group("rms_norm-f32-4096x4096", "F.rms_norm(x, w.shape, w, 1e-6)", "x: f32[4096,4096], w: f32[4096]", True),
    Group("row_sum-f16-4096x16384", "x.sum(-1)", "x: f16[4096,16384]", True),
    Group("column_sum-32768x1024", "x.sum(0)", "x: bf16[32768,1024]", True),
    Group("column_mean-f32-8192x3072", "x.mean(0)", "x: f32[8192,3072]", True),
    Group("gelu-f16-16384x3072", "F.gelu(x)", "x: f16[16384,3072]", True),
    Group("add-f32-4096x6144", "x + y", "x: f32[4096,6144], y: f32[4096,6144]", True),
    Group("gate-f32-2048x11008", "F.silu(x) * y", "x: f32[2048,11008], y: f32[2048,11008]", True),
    Group("gemm-768x3072x1536", "a @ b.T", "a: bf16[768,1536], b: bf16[3072,1536]", True),
    Group("gemm-1792x2048x512", "a @ b", "a: f16[1792,512], b: f16[512,2048]", True),
    Gemm("gemm_tma_wgmma-2560x1536", "a @ b", "a: bf16[2560,2048], b: bf16[2048,1536]", True, "gemm_tma_wgmma", _WGMMA),
    Gemm("tensor_core_matmul-1280", "a @ b.T", "a: bf16[1280,1536], b: bf16[1280,1536]", True, "tensor_core_matmul",
         _MMA_SYNC),
)  # fmt: skip
