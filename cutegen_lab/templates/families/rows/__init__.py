"""Row reductions: the reduced dimensions are the last ones; a row stays in registers between its reductions.

A row is split over ``threads_per_row`` threads of each of ``cluster_n`` blocks. Each thread reduces its share; then
partial results are combined within each warp, over the warps of the row through shared memory, and over the blocks of
the cluster through distributed shared memory.

``loads``: maximum number of a thread's vector loads in flight, all issued before the first is used. If they cover the
thread's share, the row is read once and stays in registers. A longer share is read in steps, and again for every
reduction except those that share a pass: a maximum and a sum of exponentials, a mean and a sum of squared deviations.
Tensors that all rows share, such as a norm's weights, are loaded before the row and kept in registers or in shared
memory.

A row's length need not be a multiple of the vector width: see ``skewed``.
"""

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.families.family import Family
from cutegen_lab.templates.families.rows.config import DOMAINS, KNOBS, NAME, default_config, matches, slowness, why_not
from cutegen_lab.templates.families.rows.module import RowModule
from cutegen_lab.templates.frontend.expr import Graph

__all__ = ["DOMAINS", "FAMILY", "KNOBS", "NAME", "default_config", "matches", "why_not", "write"]


def write(problem: Problem, graph: Graph, config: Config) -> str:
    """The module's text with ``config`` as defaults."""
    return RowModule(problem, graph, config).text()


FAMILY = Family(NAME, DOMAINS, KNOBS, matches, default_config, why_not, write, slowness=slowness)
