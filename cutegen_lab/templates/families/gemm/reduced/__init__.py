"""Matrix products whose rows are reduced before they are written: softmax, norms, sums and maxima of a linear layer.

The product is :mod:`gemm`'s warp-specialised kernel; its epilogue keeps rows in registers. A row lies in one tile, or
in the tiles of a cluster of blocks, which exchange what they found through distributed shared memory; of wider rows
each tile leaves what it found, and a second kernel puts that together.
"""

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.families.family import Family
from cutegen_lab.templates.families.gemm.reduced.choice import default_config, slowness
from cutegen_lab.templates.families.gemm.reduced.config import DOMAINS, KNOBS, NAME, matches, settled, why_not
from cutegen_lab.templates.families.gemm.reduced.module import ReducedModule
from cutegen_lab.templates.frontend.expr import Graph

__all__ = ["DOMAINS", "FAMILY", "KNOBS", "NAME", "default_config", "matches", "why_not", "write"]


def write(problem: Problem, graph: Graph, config: Config) -> str:
    """The module's text with ``config`` as defaults."""
    return ReducedModule(problem, graph, config).text()


FAMILY = Family(NAME, DOMAINS, KNOBS, matches, default_config, why_not, write, slowness=slowness, settled=settled)
