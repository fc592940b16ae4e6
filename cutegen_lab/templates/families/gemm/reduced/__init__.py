"""Matrix products whose rows are reduced before they are written: softmax, norms, sums and maxima of a linear layer.

The main loop is that of :mod:`gemm`'s warp-specialised kernel; the epilogue keeps rows in registers. A row lies in one
tile, or in the tiles of a cluster, whose blocks exchange partial results through distributed shared memory. For wider
rows each tile stores its partial results, and a second kernel combines them.
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
