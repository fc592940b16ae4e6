"""Operators that change shapes without moving data, and constants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from cutegen_lab.templates.frontend.elements import flipped, gathered, part
from cutegen_lab.templates.frontend.lowering import Lowering, Unsupported, Value
from cutegen_lab.templates.frontend.operators.registry import rule

_TO_THE_END = 2**63 - 1  # the end that the exporter writes for a slice without one


@rule("clone.default", "alias.default", "detach.default", "contiguous.default", "lift_fresh_copy.default")
def same(g: Lowering, a: Value, **_: Any) -> Value:
    return a


@rule("unsqueeze.default")
def unsqueeze(g: Lowering, a: Value, dim: int) -> Value:
    at = dim % (len(a.axes) + 1)
    return Value(a.node, (*a.axes[:at], g.axes.fresh(1, made=True), *a.axes[at:]))


@rule("squeeze.dim", "squeeze.dims", "squeeze.default")
def squeeze(g: Lowering, a: Value, dims: Any = None) -> Value:
    wanted = range(len(a.axes)) if dims is None else [dims] if isinstance(dims, int) else dims
    drop = {d % len(a.axes) for d in wanted if g.axes.size(a.axes[d]) == 1} if a.axes else set()
    return Value(a.node, tuple(s for d, s in enumerate(a.axes) if d not in drop))


@rule("expand.default")
def expand(g: Lowering, a: Value, sizes: Sequence[int], **_: Any) -> Value:
    """An enlarged dimension gets a new symbol, which is later unified with that of the dimension with which it is
    combined."""
    lead = len(sizes) - len(a.axes)
    axes = [g.axes.fresh(int(size)) for size in sizes[:lead]]
    for symbol, size in zip(a.axes, sizes[lead:], strict=True):
        axes.append(symbol if size == -1 or size == g.axes.size(symbol) else g.axes.fresh(int(size)))
    return Value(a.node, tuple(axes))


@rule("permute.default")
def permute(g: Lowering, a: Value, dims: Sequence[int]) -> Value:
    return Value(a.node, tuple(a.axes[d] for d in dims))


@rule("transpose.int")
def transpose(g: Lowering, a: Value, first: int, second: int) -> Value:
    axes = list(a.axes)
    axes[first], axes[second] = axes[second], axes[first]
    return Value(a.node, tuple(axes))


@rule("t.default")
def t(g: Lowering, a: Value) -> Value:
    return Value(a.node, tuple(reversed(a.axes)))


@rule("view.default", "_unsafe_view.default", "reshape.default")
def view(g: Lowering, a: Value, sizes: Sequence[int]) -> Value:
    """Splits and joins dimensions, and adds or drops those of size 1."""
    known = math.prod(size for size in sizes if size != -1)
    shape = [math.prod(map(g.axes.size, a.axes)) // known if size == -1 else int(size) for size in sizes]
    rest = g.axes.regrouped(a.axes, [size for size in shape if size != 1])
    return Value(a.node, tuple(rest.pop(0) if size != 1 else g.axes.fresh(1, made=True) for size in shape))


@rule("slice.Tensor")
def slice_(
    g: Lowering, a: Value, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Value:
    size = g.axes.size(a.axes[dim])
    if step != 1:
        raise Unsupported(f"a slice with step {step}")
    if not start and (end is None or end >= _TO_THE_END):
        return a
    first, last, _ = slice(start, end).indices(size)
    return part(g, a, dim, first, last - first)


@rule("narrow.default")
def narrow(g: Lowering, a: Value, dim: int, start: int, length: int) -> Value:
    return part(g, a, dim, start % g.axes.size(a.axes[dim]), length)


@rule("select.int")
def select(g: Lowering, a: Value, dim: int, index: int) -> Value:
    at = dim % len(a.axes)
    one = part(g, a, at, index % g.axes.size(a.axes[at]), 1)
    return Value(one.node, (*one.axes[:at], *one.axes[at + 1 :]))


@rule("split_with_sizes.default")
def split_with_sizes(g: Lowering, a: Value, sizes: Sequence[int], dim: int = 0) -> tuple[Value, ...]:
    return tuple(part(g, a, dim, sum(sizes[:i]), size) for i, size in enumerate(sizes))


@rule("split.Tensor")
def split(g: Lowering, a: Value, length: int, dim: int = 0) -> tuple[Value, ...]:
    size = g.axes.size(a.axes[dim])
    return split_with_sizes(g, a, [min(length, size - start) for start in range(0, size, length)], dim)


@rule("chunk.default")
def chunk(g: Lowering, a: Value, chunks: int, dim: int = 0) -> tuple[Value, ...]:
    return split(g, a, -(-g.axes.size(a.axes[dim]) // chunks), dim)


@rule("flip.default")
def flip(g: Lowering, a: Value, dims: Sequence[int]) -> Value:
    for dim in dims:
        a = flipped(g, a, dim)
    return a


@rule("cat.default", "concat.default")
def cat(g: Lowering, values: Sequence[Value], dim: int = 0) -> Value:
    """Each element reads all values and selects one. If zeros are concatenated in front of one input, nothing is
    selected: reads outside the input return 0."""
    values = [v for v in values if len(v.axes) != 1 or g.axes.size(v.axes[0])]
    at = dim % len(values[0].axes)
    sizes = [g.axes.size(v.axes[at]) for v in values]
    whole = sum(sizes)
    if len(values) == 2 and g.constant_of(values[0]) == 0 and g.is_input(values[1]):
        return part(g, values[1], at, -sizes[0], whole, beyond=True)
    moved = [part(g, v, at, -sum(sizes[:i]), whole, beyond=True) for i, v in enumerate(values)]
    result = moved[-1]
    for i, value in reversed(list(enumerate(moved[:-1]))):
        result = g.map("where", _before(g, value, at, sum(sizes[: i + 1])), value, result)
    return result


@rule("stack.default")
def stack(g: Lowering, values: Sequence[Value], dim: int = 0) -> Value:
    return cat(g, [unsqueeze(g, value, dim) for value in values], dim)


@rule("pad.default", "constant_pad_nd.default")
def pad(g: Lowering, a: Value, widths: Sequence[int], *rest: Any, value: float | None = None, **_: Any) -> Value:
    mode = [r for r in rest if isinstance(r, str)]
    fill = value or sum(r for r in rest if isinstance(r, int | float))
    if mode not in ([], ["constant"]) or min(widths) < 0:
        raise Unsupported(f"padding in mode {mode[0]}" if mode else "negative padding")
    for dim, (before, after) in enumerate(zip(widths[::2], widths[1::2], strict=True), 1):
        at = len(a.axes) - dim
        size = g.axes.size(a.axes[at])
        if not (before or after):
            continue
        plain = g.is_input(a) and not fill
        a = part(g, a, at, -before, before + size + after, beyond=True)
        if after and not plain:
            a = g.map("where", _before(g, a, at, before + size), a, fill)
        if before and not plain:
            a = g.map("where", _before(g, a, at, before), fill, a)
    return a


@rule("roll.default")
def roll(g: Lowering, a: Value, shifts: Sequence[int] | int, dims: Sequence[int] | int = ()) -> Value:
    pairs = zip(*([x] if isinstance(x, int) else list(x) for x in (shifts, dims)), strict=True)
    if not dims and dims != 0:
        raise Unsupported("a roll over flattened dimensions")
    for shift, dim in pairs:
        size = g.axes.size(a.axes[dim])
        if last := shift % size:
            a = cat(g, [part(g, a, dim, size - last, last), part(g, a, dim, 0, size - last)], dim)
    return a


def _before(g: Lowering, a: Value, dim: int, count: int) -> Value:
    """Whether the index along ``dim`` is less than ``count``."""
    place = g.place(a.axes[dim])
    for _ in a.axes[dim + 1 :]:
        place = unsqueeze(g, place, -1)
    return g.map("lt", place, count)


@rule("gather.default")
def gather(g: Lowering, a: Value, dim: int, index: Value, **_: Any) -> Value:
    """The index may have fewer rows than ``a``; the result has as many rows as the index."""
    at = dim % len(a.axes)
    for d, (mine, its) in enumerate(zip(a.axes, index.axes, strict=True)):
        if d != at:
            g.axes.unify(its, mine)
    return Value(gathered(g, a, at, index), index.axes)


@rule("embedding.default")
def embedding(g: Lowering, table: Value, index: Value, *_: Any) -> Value:
    return Value(gathered(g, table, 0, index), (*index.axes, *table.axes[1:]))


@rule("index_select.default")
def index_select(g: Lowering, a: Value, dim: int, index: Value) -> Value:
    at = dim % len(a.axes)
    return Value(gathered(g, a, at, index), (*a.axes[:at], *index.axes, *a.axes[at + 1 :]))


@rule("index.Tensor")
def index(g: Lowering, a: Value, indices: Sequence[Value | None]) -> Value:
    """``a[:, i]``: an index tensor for one dimension. Negative indices count from the end."""
    found = [(at, each) for at, each in enumerate(indices) if each is not None]
    if len(found) != 1:
        raise Unsupported("index tensors for several dimensions of one tensor")
    at, given = found[0]
    return Value(gathered(g, a, at, given, wraps=True), (*a.axes[:at], *given.axes, *a.axes[at + 1 :]))


@rule("full.default")
def full(g: Lowering, sizes: Sequence[int], value: float, **_: Any) -> Value:
    return Value(g.build.const(value), tuple(g.axes.fresh(int(s)) for s in sizes))


@rule("ones.default")
def ones(g: Lowering, sizes: Sequence[int], **_: Any) -> Value:
    return full(g, sizes, 1.0)


@rule("zeros.default")
def zeros(g: Lowering, sizes: Sequence[int], **_: Any) -> Value:
    return full(g, sizes, 0.0)


@rule("scalar_tensor.default")
def scalar_tensor(g: Lowering, value: float, **_: Any) -> Value:
    return g.const(value)


@rule("zeros_like.default")
def zeros_like(g: Lowering, a: Value, **_: Any) -> Value:
    return Value(g.build.const(0.0), a.axes)


@rule("ones_like.default")
def ones_like(g: Lowering, a: Value, **_: Any) -> Value:
    return Value(g.build.const(1.0), a.axes)


@rule("full_like.default")
def full_like(g: Lowering, a: Value, value: float, **_: Any) -> Value:
    return Value(g.build.const(value), a.axes)


@rule("tril.default")
def tril(g: Lowering, a: Value, diagonal: int = 0) -> Value:
    return g.map("where", _below(g, a, diagonal), a, 0.0)


@rule("triu.default")
def triu(g: Lowering, a: Value, diagonal: int = 0) -> Value:
    return g.map("where", _below(g, a, diagonal - 1), 0.0, a)


def _below(g: Lowering, a: Value, diagonal: int) -> Value:
    """Whether a column's index is at most the row's index plus ``diagonal``."""
    row, column = (g.place(s) for s in a.axes[-2:])
    return g.map("le", column, unsqueeze(g, g.map("add", row, diagonal), -1))


@rule("arange.default", "arange.start", "arange.start_step")
def arange(g: Lowering, *ends: float, **_: Any) -> Value:
    start, end, step = (0, *ends, 1) if len(ends) == 1 else (*ends, 1)[:3]
    count = max(math.ceil((end - start) / step), 0)
    return g.map("add", g.map("mul", g.place(g.axes.fresh(count)), step), start)


@rule("adaptive_avg_pool1d.default", "adaptive_avg_pool2d.default", "_adaptive_avg_pool2d.default",
      "adaptive_avg_pool3d.default", "_adaptive_avg_pool3d.default")  # fmt: skip
def adaptive_avg_pool(g: Lowering, a: Value, sizes: Sequence[int] | int) -> Value:
    wanted = [sizes] if isinstance(sizes, int) else list(sizes)
    if set(wanted) != {1}:
        raise Unsupported(f"pooling to {wanted} other than to one element")
    return g.mean(a, range(-len(wanted), 0), True)


@rule("outer.default", "ger.default")
def outer(g: Lowering, a: Value, b: Value) -> Value:
    return g.map("mul", unsqueeze(g, a, -1), b)


@rule("diag.default")
def diag(g: Lowering, a: Value, diagonal: int = 0) -> Value:
    if len(a.axes) != 1 or diagonal:
        raise Unsupported("a diagonal other than a vector on the main diagonal of a matrix")
    column = g.axes.fresh(g.axes.size(a.axes[0]))
    on = g.map("eq", unsqueeze(g, g.place(a.axes[0]), -1), g.place(column))
    return g.map("where", on, unsqueeze(g, a, -1), 0.0)
