"""Matrix products on Hopper: TMA, wgmma, warp specialisation, clusters, and an epilogue of any elementwise expression.

A module chooses at compile time, by its static shapes. The warp-specialised kernel multiplies operands of 16 or 8 bits
that TMA can address; several products of one result in one go (SwiGLU). A kernel before it brings fp32 operands, as two
halves each, and 16-bit ones of odd pitches into that form, 8-bit ones as wgmma reads them; one after it adds up results
cut into parts along k. A plain kernel serves small products and the layouts that are left.
"""

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.families.family import Family
from cutegen_lab.templates.families.gemm.choice import default_config, estimate_us
from cutegen_lab.templates.families.gemm.config import DOMAINS, KNOBS, NAME, matches, settled, why_not
from cutegen_lab.templates.families.gemm.module import GemmModule
from cutegen_lab.templates.frontend.expr import Graph

__all__ = [
    "DOMAINS", "FAMILY", "KNOBS", "NAME", "default_config", "estimate_us", "matches", "settled", "why_not", "write",
]  # fmt: skip


def write(problem: Problem, graph: Graph, config: Config) -> str:
    """The module's text with ``config`` as defaults."""
    return GemmModule(problem, graph, config).text()


FAMILY = Family(NAME, DOMAINS, KNOBS, matches, default_config, why_not, write, estimate_us, settled=settled)
