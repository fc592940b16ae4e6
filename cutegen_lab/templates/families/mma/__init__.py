"""Matrix products on GPUs before Hopper: cp.async, ldmatrix, mma.sync, and an epilogue of any elementwise expression.

A module chooses at compile time, by its static shapes: operands of one type and one length along k go through the
tensor cores, whatever their layouts; a plain kernel serves the rest. Where tiles are few, blocks share k.
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
    """For one GPU, whose limits and rates its configs follow."""
    smem_bytes, sms = gpu.max_smem_per_block, gpu.sm_count

    def why_not(graph: Graph, config_: Config) -> str:
        return config.why_not(graph, config_, smem_bytes, sms)

    def write(problem: Problem, graph: Graph, config_: Config) -> str:
        return MmaModule(problem, graph, config_, smem_bytes, sms).text()

    default = partial(choice.default_config, gpu=gpu)
    return Family(config.NAME, config.DOMAINS, config.KNOBS, config.matches, default, why_not, write)
