"""Random layouts and operations on them, as plain data for both evaluations."""

from __future__ import annotations

import itertools
import random
from typing import Any

from cutegen_lab.layouts import algebra
from cutegen_lab.layouts.int_tuple import IntTuple, flatten, idx2crd, like, product
from cutegen_lab.layouts.layout import AnyLayout, Layout, Swizzle, Swizzled

EXTENTS = (1, 2, 2, 3, 4, 4, 5, 6, 8, 8, 16)
MOST = 512  # coordinates
OPERATIONS = (
    "evaluate", "swizzle", "idx2crd", "coalesce", "complement", "right_inverse", "composition",
    "logical_divide", "zipped_divide", "tiled_divide", "logical_product", "blocked_product", "raked_product",
    "thread_value",
)  # fmt: skip


def drawn(seed: int, count: int) -> list[dict[str, Any]]:
    """``count`` cases: an operation, a layout, and what else the operation takes."""
    source = random.Random(seed)  # noqa: S311
    return [_case(source, OPERATIONS[at % len(OPERATIONS)]) for at in range(count)]


def _case(source: random.Random, operation: str) -> dict[str, Any]:
    shape = _shape(source, MOST)
    if operation in ("tiled_divide", "zipped_divide"):
        shape = tuple(_shape(source, 32) for _ in range(source.choice((1, 2, 2, 3))))
    if operation == "swizzle":
        bits, base, shift = source.randrange(4), source.randrange(5), source.randrange(3, 5)
        shift *= source.choice((1, 1, -1))
        parts = [shape, _stride(source, shape), [bits, base, shift], source.choice((0, 0, 8, 100))]
        return {"operation": "evaluate", "layout": parts}
    apart = operation in ("complement", "right_inverse")  # they are defined for such layouts only
    stride = _dense(source, shape, source.choice((1, 1, 1, 2, 3))) if apart else _stride(source, shape)
    case: dict[str, Any] = {"operation": operation, "layout": [shape, stride]}
    if operation == "complement":
        case["second"] = source.choice((1, 2, 3)) * source.choice((8, 24, 64, 100))
    elif operation in ("composition", "logical_divide"):
        case["second"] = _tiler(source, shape, depth=source.choice((0, 0, 1)))
    elif operation in ("zipped_divide", "tiled_divide"):
        case["second"] = _tiler(source, shape, depth=1)
    elif operation.endswith("_product") or operation == "thread_value":
        flat = operation == "thread_value"
        part = (lambda: source.choice((1, 2, 4, 8))) if flat else (lambda: _shape(source, 8, 1))
        block, again = (part(), part()), (part(), part())
        case["layout"] = [block, _dense(source, block)]
        case["second"] = {"layout": [again, _dense(source, again)]}
    return case


def _shape(source: random.Random, most: int, depth: int = 2) -> IntTuple:
    if depth == 0 or source.random() < 0.25:
        return source.choice([extent for extent in EXTENTS if extent <= most])
    parts: list[IntTuple] = []
    for _ in range(source.choice((1, 2, 2, 3))):
        parts.append(_shape(source, max(1, most // max(1, product(tuple(parts)))), depth - 1))
    return tuple(parts)


def _stride(source: random.Random, shape: IntTuple) -> IntTuple:
    """Dense in a random order, dense with gaps, or anything."""
    if source.random() < 0.6:
        return _dense(source, shape, source.choice((1, 1, 1, 2, 3)))
    if isinstance(shape, int):
        return source.choice((0, 1, 2, 3, 4, 7, 8, 16, 17))
    return tuple(_stride(source, part) for part in shape)


def _dense(source: random.Random, shape: IntTuple, first: int = 1) -> IntTuple:
    leaves = flatten(shape)
    order = list(range(len(leaves)))
    if source.random() < 0.7:
        source.shuffle(order)
    strides, step = [0] * len(leaves), first
    for at in order:
        strides[at] = step
        step *= leaves[at]
    return like(shape, iter(strides))


def _tiler(source: random.Random, shape: IntTuple, depth: int) -> Any:
    if depth and isinstance(shape, tuple):
        return [_tiler(source, part, 0) for part in shape[: source.randint(1, len(shape))]]
    size = product(shape)
    divisors = [n for n in range(1, size + 1) if size % n == 0]
    extent = source.choice(divisors) if source.random() < 0.85 else source.randint(1, 8)
    if source.random() < 0.4:
        return extent
    stride = source.choice([n for n in divisors if size // extent % n == 0] or [1]) if extent > 1 else 1
    if source.random() < 0.3 and extent % 2 == 0:
        return {"layout": [[2, extent // 2], [stride, 2 * stride]]}
    return {"layout": [extent, stride]}


def defined(case: dict[str, Any]) -> list[int | None]:
    """Indices of a division or composition by its definition, layout(inner(i)); None where that is beyond the layout.

    Raises InputError where not even the complement of a tile exists.
    """
    operation, layout = case["operation"], _made(case["layout"])
    assert isinstance(layout, Layout)
    tiler = _tiler_of(case["second"])
    by_mode = isinstance(tiler, tuple)
    if by_mode and operation == "composition":
        parts = list(zip(layout.modes, tiler, strict=False))
    elif by_mode:
        rest = [(mode, None) for mode in layout.modes[len(tiler) :]]
        parts = [*zip(layout.modes, tiler, strict=False), *rest]
    else:
        parts = [(layout, tiler)]
    pieces: list[list[list[int | None]]] = []  # of each mode: what is in the tile, what is not
    for mode, part in parts:
        tile = Layout.dense(part) if isinstance(part, int) else part
        if tile is None:
            pieces.append([[mode(at)] for at in range(mode.size)])
            continue
        inner = [tile] if operation == "composition" else [tile, algebra.complement(tile, mode.size)]
        whole = Layout.joined(*inner)
        found = [mode(whole(at)) if whole(at) < mode.size else None for at in range(whole.size)]
        pieces.append([found[at : at + tile.size] for at in range(0, len(found), tile.size)])
    return _in_order(pieces, zipped=operation in ("zipped_divide", "tiled_divide"))


def _in_order(pieces: list[list[list[int | None]]], zipped: bool) -> list[int | None]:
    """Sums over modes, leftmost fastest; ``zipped``: all tiles before what is not in tiles."""
    tables = [[(at, to, value) for to, row in enumerate(part) for at, value in enumerate(row)] for part in pieces]
    found = []
    for chosen in itertools.product(*reversed(tables)):
        values = [value for _, _, value in chosen]
        key = ([to for _, to, _ in chosen], [at for at, _, _ in chosen]) if zipped else ()
        found.append((key, None if None in values else sum(value for value in values if value is not None)))
    if zipped:
        found.sort(key=lambda entry: entry[0])
    return [value for _, value in found]


def ours(case: dict[str, Any]) -> dict[str, Any]:
    """Our answer, in the form of the DSL's."""
    operation, layout = case["operation"], _made(case["layout"])
    if operation == "evaluate":
        return _told(layout)
    assert isinstance(layout, Layout)
    if operation == "idx2crd":
        return {"coordinates": [idx2crd(index, layout.shape) for index in range(layout.size)]}
    if operation == "complement":
        return _told(algebra.complement(layout, case["second"]))
    if "second" not in case:
        return _told(getattr(algebra, operation)(layout))
    if operation == "thread_value":
        tile, result = algebra.thread_value(layout, _tiler_of(case["second"]))
        return {"tile": tile, **_told(result)}
    return _told(getattr(algebra, operation)(layout, _tiler_of(case["second"])))


def _made(parts: list[Any]) -> AnyLayout:
    layout = Layout(nested(parts[0]), nested(parts[1]))
    return layout if len(parts) == 2 else Swizzled(Swizzle(*parts[2]), parts[3], layout)


def nested(value: Any) -> Any:
    return tuple(map(nested, value)) if isinstance(value, list | tuple) else value


def _tiler_of(value: Any) -> Any:
    if isinstance(value, dict):
        return _made(value["layout"])
    return tuple(map(_tiler_of, value)) if isinstance(value, list) else value


def _told(layout: AnyLayout) -> dict[str, Any]:
    plain = layout.layout if isinstance(layout, Swizzled) else layout
    return {
        "cosize": layout.cosize,
        "indices": [layout(at) for at in range(layout.size)], "shape": plain.shape, "stride": plain.stride,
    }  # fmt: skip
