"""Text of the second kernel's function, for rows wider than a tile: a warp combines the tiles' row partials."""

from __future__ import annotations

from collections.abc import Mapping

from cutegen_lab.templates.emit.cute_text import number
from cutegen_lab.templates.families.kernel_module import COMBINE
from cutegen_lab.templates.families.rows.online import Moments, Online
from cutegen_lab.templates.frontend.expr import NEUTRAL, Graph, Reduce


def put_together(graph: Graph, names: Mapping[int, str], pair: Online | Moments | bool) -> list[str]:
    """The function of that name. ``names`` are those of the reductions, in the order in which tiles leave them."""
    at = {index: place for place, index in enumerate(names)}
    second = None if isinstance(pair, bool) else pair.reductions[1]
    lines = _walk(graph, names, {i: f"mParts[row, t, batch, {at[i]}]" for i in names if i != second})
    if isinstance(pair, Online):
        top, total = pair.reductions
        text = f"mParts[row, t, batch, {at[total]}] * rescale(mParts[row, t, batch, {at[top]}], {names[top]})"
        lines += _walk(graph, names, {total: text})
    elif isinstance(pair, Moments):
        total, squares = pair.reductions
        lines.append(f"middle = centre_of(Float32(n), {names[total]})")
        count = "Float32(cutlass.min(n - t * tile_n, tile_n))"
        about = f"apart({count}, mParts[row, t, batch, {at[total]}], middle)"
        lines += _walk(graph, names, {squares: f"mParts[row, t, batch, {at[squares]}] + {about}"})
    return [
        "@cute.jit",
        "def put_together(mParts, row, batch, lane, n, tile_n):",
        '    """Each value of a row of ``n``, from what its tiles found, by a warp."""',
        "    tiles = cute.size(mParts, mode=[1])",
        *(f"    {line}" for line in lines),
        f"    return {', '.join(names.values())}{',' * (len(names) == 1)}",
    ]


def _walk(graph: Graph, names: Mapping[int, str], terms: Mapping[int, str]) -> list[str]:
    """Folds the ``terms`` of each reduction over tiles ``t``, by a warp."""
    before, inner, after = list[str](), list[str](), list[str]()
    for index, term in terms.items():
        node, name = graph.nodes[index], names[index]
        assert isinstance(node, Reduce)
        before.append(f"{name} = Float32({number(NEUTRAL[node.op])})")
        inner.append(f"    {name} = {COMBINE[node.op]}({name}, {term})")
        after.append(f"{name} = cute.arch.warp_reduction({name}, {COMBINE[node.op]})")
    return [*before, "for t in cutlass.range(lane, tiles, 32, unroll=2):", *inner, *after]
