"""Matrix products on GPUs before Hopper: cp.async, ldmatrix, mma.sync, and an epilogue of any elementwise expression.

A module chooses at compile time, by its static shapes: operands of one type and one length along k go through the
tensor cores, whatever their layouts; a plain kernel serves the rest. Where tiles are few, blocks share k.
"""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.templates.expr import Graph
from cutegen_lab.templates.families.mma import choice, config
from cutegen_lab.templates.families.mma.module import MmaModule

__all__ = ["Mma"]


@dataclass(frozen=True)
class Mma:
    """The family for one GPU, whose limits and rates its configs follow."""

    gpu: GpuSpec

    NAME = config.NAME
    DOMAINS = config.DOMAINS
    KNOBS = config.KNOBS

    def matches(self, graph: Graph) -> bool:
        return config.matches(graph)

    def default_config(self, graph: Graph, workload: Workload) -> Config:
        return choice.default_config(graph, workload, self.gpu)

    def why_not(self, graph: Graph, config_: Config) -> str:
        return config.why_not(graph, config_, self.gpu.max_smem_per_block, self.gpu.sm_count)

    def write(self, problem: Problem, graph: Graph, config_: Config) -> str:
        """The module's text with ``config_`` as defaults."""
        return MmaModule(problem, graph, config_, self.gpu.max_smem_per_block, self.gpu.sm_count).text()
