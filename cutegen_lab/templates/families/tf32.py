"""Matrix products of fp32 operands in TF32 on Hopper, if the problem allows TF32. The kernel is that of ``gemm``, with
its own parameter domains."""

from cutegen_lab.templates.families.family import Family
from cutegen_lab.templates.families.gemm import KNOBS, config, default_config, settled, why_not, write
from cutegen_lab.templates.frontend.expr import Graph

__all__ = ["DOMAINS", "FAMILY", "KNOBS", "NAME", "default_config", "matches", "why_not", "write"]

NAME, DOMAINS = config.TF32_NAME, config.TF32_DOMAINS


def matches(graph: Graph) -> bool:
    """Whether the graph is matrix products that may be rounded to TF32, with one output."""
    return config.matches(graph, tf32=True)


FAMILY = Family(NAME, DOMAINS, KNOBS, matches, default_config, why_not, write, settled=settled)
