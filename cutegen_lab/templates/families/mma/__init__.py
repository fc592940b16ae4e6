"""Matrix products on GPUs before Hopper: cp.async, ldmatrix, mma.sync, and an epilogue of any elementwise expression.

A module chooses its kernel at compile time, by its static shapes. The tensor cores multiply operands of one dtype and
one length along k, in any layout; a plain kernel serves all others. If there are few tiles, blocks share k (split-K).
"""

from __future__ import annotations

from functools import partial

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.templates.families.family import Family
from cutegen_lab.templates.families.mma import choice, config
from cutegen_lab.templates.families.mma.module import MmaModule
from cutegen_lab.templates.frontend.expr import Graph

__all__ = ["family"]


def family(gpu: GpuSpec) -> Family:
    """The family for one GPU, whose limits and rates determine its configs."""
    smem_bytes, sms = gpu.max_smem_per_block, gpu.sm_count

    def why_not(graph: Graph, config_: Config) -> str:
        return config.why_not(graph, config_, smem_bytes, sms)

    def write(problem: Problem, graph: Graph, config_: Config) -> str:
        return MmaModule(problem, graph, config_, smem_bytes, sms).text()

    default = partial(choice.default_config, gpu=gpu)
    return Family(config.NAME, config.DOMAINS, config.KNOBS, config.matches, default, why_not, write)
