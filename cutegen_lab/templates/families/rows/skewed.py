"""Rows whose length no vector divides, one right after another: vectors are aligned in memory and not in the row.

The first and the last vector that a row touches may be partly its neighbours': see ``kernels/skewed_rows.py``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from cutegen_lab.templates.emit.views import Views
from cutegen_lab.templates.frontend.expr import Graph
from cutegen_lab.templates.kernels.rules import row_reduction as rules

FROM = 256  # shorter rows are read element by element


def width_of(graph: Graph, vec: int) -> int:
    """Values of a vector, of ``vec`` at most."""
    n, run = (math.prod(graph.space[d] for d in dims) for dims in (graph.reduced, run_of(graph)))
    width: int = rules.width_of(vec, n, run, skewed(graph))
    return width


def run_of(graph: Graph) -> Sequence[int]:
    """Those of the reduced dimensions that one stride leads through."""
    return Views.nameless(graph).run(graph.reduced)


def skewed(graph: Graph) -> bool:
    """Long enough, and every tensor that walks along rows has all of them, and nothing between."""
    everywhere = range(len(graph.space))
    along = [view for view in Views.nameless(graph) if any(view.dims[d] is not None for d in graph.reduced)]
    whole = all(view.dense(everywhere) and not view.starts and view.picked is None for view in along)
    return whole and math.prod(graph.space[d] for d in graph.reduced) >= FROM
