"""Matrix products on Hopper: TMA, wgmma, warp specialisation, clusters, and an epilogue of any elementwise expression.

A module holds two kernels and chooses at compile time, by its static shapes: the warp-specialised one where TMA can
address both operands (16-bit, pitches of whole 16 bytes), otherwise a plain one that serves any layout and fp32.
"""

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.expr import Graph
from cutegen_lab.templates.families.gemm.config import DOMAINS, KNOBS, NAME, default_config, feasible, matches
from cutegen_lab.templates.families.gemm.module import GemmModule

__all__ = ["DOMAINS", "KNOBS", "NAME", "default_config", "feasible", "matches", "write"]


def write(problem: Problem, graph: Graph, config: Config) -> str:
    """The module's text with ``config`` as defaults."""
    return GemmModule(problem, graph, config).text()
