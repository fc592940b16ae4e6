"""Matrix products on Hopper: TMA, wgmma, warp specialisation, clusters, and an epilogue of any elementwise expression.

A module chooses its kernels at compile time, by its static shapes. The warp-specialised kernel multiplies 16-bit or
8-bit operands that TMA can address, and several products of one result together (SwiGLU). If necessary, another kernel
runs first: it converts fp32 operands to split fp16, and copies 16-bit operands with unaligned pitches and 8-bit
operands that wgmma cannot read. A last kernel adds the partial results of split-K. A plain kernel serves small products
and all other layouts.
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
