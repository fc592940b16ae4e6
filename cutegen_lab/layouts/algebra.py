"""The algebra of layouts, exactly as CuTe has it (CUTLASS, media/docs/cpp/cute/02_layout_algebra.md; cute/layout.hpp).

``tests/layouts`` compares each operation with the DSL's own evaluation. An operation that has no result (extents or
strides that do not divide) raises InputError.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import itemgetter, mul
from typing import TypeAlias

from cutegen_lab.core.errors import InputError
from cutegen_lab.layouts.int_tuple import IntTuple, written
from cutegen_lab.layouts.layout import AnyLayout, Layout, Swizzled, plain_part

Tiler: TypeAlias = "int | Layout | tuple[Tiler, ...]"
"""Divisor of a layout: a number n is n:1; a tuple has a tiler for each of the first modes."""


def coalesce(layout: Layout) -> Layout:
    """A layout that is the same function of an index, with as few modes as possible."""
    found: list[tuple[int, int]] = []
    for extent, step in layout.pairs():
        if extent == 1:
            continue
        if found and found[-1][0] * found[-1][1] == step:
            found[-1] = found[-1][0] * extent, found[-1][1]
        else:
            found.append((extent, step))
    return _of_pairs(found) if found else Layout(1, 0)


def composition(outer: Layout, inner: Tiler) -> Layout:
    """``coordinate → outer(inner(coordinate))``, shaped as ``inner``; mode by mode if ``inner`` is a tuple (the DSL
    drops modes that it has no tile for; C++ keeps them)."""
    if isinstance(inner, int):
        return composition(outer, Layout.dense(inner))
    if isinstance(inner, tuple):
        return Layout.joined(*_by_mode(composition, outer, inner))
    if not isinstance(inner.shape, int):
        return Layout.joined(*(composition(outer, mode) for mode in inner.modes))
    if not isinstance(inner.stride, int):
        raise AssertionError(inner)
    if inner.stride == 0 or inner.shape == 1:
        return Layout(inner.shape, 0)
    return _of_one_mode(outer, inner.shape, inner.stride)


def _of_one_mode(outer: Layout, extent: int, stride: int) -> Layout:
    """CuTe's composition of ``outer`` with ``extent:stride``: every ``stride``-th element of ``outer``, the first
    ``extent`` of these."""
    pairs = list(_extensible(outer).pairs())
    found: list[tuple[int, int]] = []
    left, step = extent, stride
    for at, (size, out) in enumerate(pairs):
        if at == len(pairs) - 1 or (left - 1) * step < size:  # the remaining elements are in this mode
            if left != 1 or not found:
                found.append((left, step * out))
            break
        if size % step and step % size:
            raise _undefined(
                outer, extent, stride, f"its mode of {size} and the stride {step} do not divide each other"
            )
        here = min(max(1, size // step), left)
        if left % here:
            raise _undefined(outer, extent, stride, f"{here} elements of a mode do not divide the {left} to take")
        if here != 1:
            found.append((here, step * out))
        left //= here
        step = -(-step // size)
    return _of_pairs(found)


def _extensible(layout: Layout) -> Layout:
    """The coalesced layout, with a last mode of extent 1 extended to 2, so that its stride is kept beyond the
    layout."""
    *firsts, (extent, step) = layout.pairs()
    return coalesce(_of_pairs([*firsts, (max(extent, 2), step)]))


def _undefined(outer: Layout, extent: int, stride: int, why: str) -> InputError:
    return InputError(f"{outer} has no composition with {extent}:{stride}: {why}", "Use a tile that divides its modes.")


def complement(layout: Layout, size: int) -> Layout:
    """CuTe's complement of ``layout`` in 0 … ``size`` - 1, sorted. Raises InputError if modes of ``layout`` overlap."""
    found, reached = [], 1
    for step, extent in sorted((step, extent) for extent, step in coalesce(layout).pairs()):
        if step == 0 or extent == 1:
            continue
        if step < reached:
            raise InputError(f"{layout} has no complement: its modes overlap", "Use strides that keep them apart.")
        found.append((step // reached, reached))
        reached = step * extent
    found.append((-(-size // reached), reached))
    return coalesce(_of_pairs(found))


def right_inverse(layout: Layout) -> Layout:
    """A layout with ``layout(result(i)) == i``, the longest if the indices of ``layout`` are all different."""
    found, reached = [], 1
    for step, extent, place in sorted(_with_places(layout), key=itemgetter(0)):
        if extent == 1 or step != reached:
            continue
        found.append((extent, place))
        reached = step * extent
    return coalesce(_of_pairs(found)) if found else Layout(1, 0)


def logical_divide(layout: Layout, tiler: Tiler) -> Layout:
    """(coordinate in a tile, tile index), mode by mode if ``tiler`` is a tuple."""
    if isinstance(tiler, tuple):
        return Layout.joined(*_by_mode(logical_divide, layout, tiler), *layout.modes[len(tiler) :])
    tile = Layout.dense(tiler) if isinstance(tiler, int) else tiler
    return composition(layout, Layout.joined(tile, complement(tile, layout.size)))


def zipped_divide(layout: Layout, tiler: Tiler) -> Layout:
    """((coordinates in a tile), (tile indices)), with an entry of both for each mode."""
    if not isinstance(tiler, tuple):
        return logical_divide(layout, tiler)
    parts = [zipped_divide(mode, part) for mode, part in _zip(layout, tiler)]
    tile = Layout.joined(*(part.modes[0] for part in parts))
    return Layout.joined(tile, Layout.joined(*(part.modes[1] for part in parts), *layout.modes[len(tiler) :]))


def tiled_divide(layout: Layout, tiler: Tiler) -> Layout:
    """((coordinates in a tile), tile index of the first mode, tile index of the second, …)."""
    tile, rest = zipped_divide(layout, tiler).modes
    return Layout.joined(tile, *rest.modes)


def logical_product(layout: Layout, tiler: Layout) -> Layout:
    """(``layout``, its repetitions by ``tiler``)."""
    rest = complement(layout, layout.size * tiler.cosize)
    return Layout.joined(layout, composition(rest, tiler))


def blocked_product(layout: Layout, tiler: Layout) -> Layout:
    """Each mode is (coordinate in the block, block index)."""
    block, repeats = _padded(layout, tiler)
    return Layout.joined(*map(Layout.joined, block, repeats))


def raked_product(layout: Layout, tiler: Layout) -> Layout:
    """Each mode is (block index, coordinate in the block), coalesced: blocks interleave."""
    block, repeats = _padded(layout, tiler)
    return Layout.joined(*(coalesce(Layout.joined(*both)) for both in zip(repeats, block, strict=True)))


def thread_value(threads: Layout, values: Layout) -> tuple[IntTuple, Layout]:
    """(the tile's shape, (thread, value) → column-major element number), as the DSL's ``make_layout_tv`` returns
    them for tiled copies."""
    tile = raked_product(threads, values)
    shape = tuple(mode.size for mode in tile.modes)
    return shape, composition(right_inverse(tile), Layout.dense((threads.size, values.size)))


def swizzle_kept(layout: AnyLayout, change: Callable[[Layout], Layout]) -> AnyLayout:
    """Applies ``change`` to the layout inside a swizzle, and keeps the swizzle."""
    changed = change(plain_part(layout))
    return Swizzled(layout.swizzle, layout.offset, changed) if isinstance(layout, Swizzled) else changed


def _of_pairs(pairs: Sequence[tuple[int, int]]) -> Layout:
    """A layout of these extents and strides; one pair makes a layout without a tuple."""
    if len(pairs) == 1:
        return Layout(*pairs[0])
    return Layout(tuple(extent for extent, _ in pairs), tuple(step for _, step in pairs))


def _with_places(layout: Layout) -> list[tuple[int, int, int]]:
    """(stride, extent, product of the extents before it) of each leaf."""
    pairs = list(layout.pairs())
    before = accumulate((extent for extent, _ in pairs[:-1]), mul, initial=1)
    return [(step, extent, place) for (extent, step), place in zip(pairs, before, strict=True)]


def _zip(layout: Layout, tiler: tuple[Tiler, ...]) -> list[tuple[Layout, Tiler]]:
    if len(tiler) > layout.rank:
        message = f"a tiler of {len(tiler)} modes does not fit {layout}, which has {layout.rank}"
        raise InputError(message, "Give at most one tile for each mode.")
    return list(zip(layout.modes, tiler, strict=False))


def _by_mode(operation: Callable[[Layout, Tiler], Layout], layout: Layout, tiler: tuple[Tiler, ...]) -> list[Layout]:
    return [operation(mode, part) for mode, part in _zip(layout, tiler)]


def _padded(layout: Layout, tiler: Layout) -> tuple[tuple[Layout, ...], tuple[Layout, ...]]:
    """(modes of the block, modes of its repetitions) of the logical product, padded to the same number of modes."""
    rank = max(layout.rank, tiler.rank)
    one, other = (Layout.joined(*x.modes, *[Layout(1, 0)] * (rank - x.rank)) for x in (layout, tiler))
    block, repeats = logical_product(one, other).modes
    return block.modes, repeats.modes


def tiler_text(tiler: Tiler) -> str:
    """``tiler`` as CuTe prints it."""
    return written(tiler)
