"""The second kernel, where rows are wider than tiles: a warp puts together what the tiles found of a row."""

from __future__ import annotations

from collections.abc import Mapping

from cutegen_lab.templates.cute_text import number
from cutegen_lab.templates.expr import NEUTRAL, Graph, Reduce
from cutegen_lab.templates.families.kernel_module import COMBINE
from cutegen_lab.templates.families.rows.online import Moments, Online

_KERNEL = '''
@cute.kernel
def combine_kernel(
    mParts: cute.Tensor,
    mC: cute.Tensor,
    $parameters
    tile_n: cutlass.Constexpr,
):
    """A warp for each row of ``mParts`` (m, tiles, batch, values): what its tiles found, put together and finished."""
    m, n, batches = (cute.size(mC, mode=[d]) for d in range(3))
    tiles = cute.size(mParts, mode=[1])
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    index, lane = bidx * 8 + tidx // 32, tidx % 32
    inside = cutlass.min(index, m * batches - 1)
    row, batch = inside % m, inside // m
    $walks
    extras = (
        $tensors
    )
    work, reads, held = FINISH
    if lane == 0 and index < m * batches:
        loaded = [Float32(extras[o][row, 0, batch]) for o, along in reads]
        mC[row, 0, batch] = mC.element_type(work($found, *loaded, $sizes, Float32(n)))
'''

LAUNCH = """
@cute.jit
def combine(
    mParts: cute.Tensor,
    mC: cute.Tensor,
    $parameters
    stream: cuda.CUstream,
    tile_n: cutlass.Constexpr,
):
    rows = cute.size(mC, mode=[0]) * cute.size(mC, mode=[2])
    combine_kernel(mParts, mC, $names tile_n).launch(
        grid=[cute.ceil_div(rows, 8), 1, 1], block=[256, 1, 1], stream=stream
    )
"""


def kernel(graph: Graph, names: Mapping[int, str], pair: Online | Moments | bool) -> str:
    """``names`` are those of the reductions, in the order in which tiles leave them."""
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
    walks = "\n    ".join(lines)
    return _KERNEL.replace("$walks", walks).replace("$found", ", ".join(names.values()))


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
