"""Functions of the second kernel, which combines the tiles' partial results of rows that are wider than a cluster."""

from __future__ import annotations

from collections.abc import Mapping

from cutegen_lab.templates.emit.cute_text import number, tuple_text
from cutegen_lab.templates.emit.module import signature
from cutegen_lab.templates.families.kernel_module import COMBINE
from cutegen_lab.templates.families.rows.online import Moments, Online
from cutegen_lab.templates.frontend.expr import NEUTRAL, Graph, Reduce


def from_parts(
    graph: Graph, names: Mapping[int, str], parts: Mapping[int, str], pair: Online | Moments | bool
) -> list[str]:
    """A function for each pass over the tiles, and their description ``FROM_PARTS`` for the kernel. ``names``: names of
    the reductions, in the order in which tiles store them. ``parts``: names of a tile's partial results. The second
    reduction of a ``pair`` is computed in the last pass."""
    walks = [(dict(parts), [*names])]
    if not isinstance(pair, bool):
        one, other = pair.reductions
        walks = [({i: parts[i] for i in names if i != other}, [i for i in names if i != other])]
        walks.append(({other: _second_term(names, parts, pair)}, [other, one]))
    lines, known, entries, places = list[str](), list[str](), list[str](), [*names]
    for at, (terms, read) in enumerate(walks):
        lines += [
            "@cute.jit",
            *signature(f"from_parts_{at}", [*(parts[index] for index in read), *known, "columns", "n"]),
            '    """Terms to fold, from partial results of a row in a tile of ``columns`` columns."""',
            f"    return {tuple_text([*terms.values()])}",
            "",
            "",
        ]
        folds, numbers = [_fold(graph, index) for index in terms], [str(places.index(index)) for index in read]
        entries.append(f"    (from_parts_{at}, {tuple_text(numbers)}, {tuple_text(folds)}),")
        known += [names[index] for index in terms]
    says = [
        "# Each pass over the partial results of a row: (function, indices of the partial results that it takes,",
        "# (combine function, neutral element) for each of its terms).",
    ]
    return [*lines, *says, "FROM_PARTS = (", *entries, ")", "", ""]


def _second_term(names: Mapping[int, str], parts: Mapping[int, str], pair: Online | Moments) -> str:
    """The term of one tile for the second reduction of a pair, once the first is known."""
    one, other = pair.reductions
    if isinstance(pair, Online):
        return f"{parts[other]} * rescale({parts[one]}, {names[one]})"
    return f"{parts[other]} + apart(columns, {parts[one]}, centre_of(n, {names[one]}))"


def _fold(graph: Graph, index: int) -> str:
    node = graph.nodes[index]
    assert isinstance(node, Reduce)
    return f"({COMBINE[node.op]}, {number(NEUTRAL[node.op])})"
