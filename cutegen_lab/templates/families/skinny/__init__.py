"""Matrix products in which one operand has few rows: a matrix times a vector, a linear layer on a few tokens.

The kernel takes about the time of one pass over the large operand; see ``kernels/skinny_matmul.py``. fp32 operands are
not rounded.
"""

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.families.family import Family
from cutegen_lab.templates.families.skinny.config import DOMAINS, KNOBS, NAME, default_config, matches, why_not
from cutegen_lab.templates.families.skinny.module import SkinnyModule
from cutegen_lab.templates.frontend.expr import Graph

__all__ = ["DOMAINS", "FAMILY", "KNOBS", "NAME", "default_config", "matches", "why_not", "write"]


def write(problem: Problem, graph: Graph, config: Config) -> str:
    """The module's text with ``config`` as defaults."""
    return SkinnyModule(problem, graph, config).text()


FAMILY = Family(NAME, DOMAINS, KNOBS, matches, default_config, why_not, write)
