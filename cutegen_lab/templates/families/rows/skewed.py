"""Contiguous rows whose length is not a multiple of the vector width: vectors are aligned in memory, not in the row.

The first and the last vector of a row may hold elements of the adjacent rows: see ``kernels/skewed_rows.py``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from cutegen_lab.templates.emit.views import Views
from cutegen_lab.templates.frontend.expr import Graph
from cutegen_lab.templates.kernels.limits import row_reduction as limits

FROM = 256  # shorter rows are read element by element


def width_of(graph: Graph, vec: int) -> int:
    """Elements of a vector, at most ``vec``."""
    n, run = (math.prod(graph.space[d] for d in dims) for dims in (graph.reduced, run_of(graph)))
    width: int = limits.width_of(vec, n, run, skewed(graph))
    return width


def run_of(graph: Graph) -> Sequence[int]:
    """The innermost reduced dimensions through which each view has a single stride."""
    return Views.nameless(graph).run(graph.reduced)


def skewed(graph: Graph) -> bool:
    """Whether rows are long enough, and every tensor that varies along rows is a whole, dense one."""
    everywhere = range(len(graph.space))
    along = [view for view in Views.nameless(graph) if any(view.dims[d] is not None for d in graph.reduced)]
    whole = all(view.dense(everywhere) and not view.starts and view.picked is None for view in along)
    return whole and math.prod(graph.space[d] for d in graph.reduced) >= FROM
