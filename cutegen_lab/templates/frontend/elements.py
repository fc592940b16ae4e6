"""Values computed from other elements of their inputs: a slice, a flipped dimension, or an indexed element. The loads
change; the nodes between the loads and the value are copied."""

from __future__ import annotations

from dataclasses import replace

from cutegen_lab.templates.frontend.expr import Elementwise, Gather, Iota, Load, ReducedIota, Scan
from cutegen_lab.templates.frontend.lowering import REGROUPED, Lowering, Unsupported, Value
from cutegen_lab.templates.frontend.shape_exprs import fixed


def part(g: Lowering, value: Value, dim: int, start: int, length: int, beyond: bool = False) -> Value:
    """``value`` sliced to ``length`` elements from ``start`` along ``dim``. ``beyond``: elements outside of an input
    are 0."""
    symbol = g.whole(value.axes[dim])
    new = g.axes.fresh(length, made=length == 1)
    node = _part(g, value.node, symbol, new, start, beyond)
    return Value(node, tuple(new if g.axes.find(s) == symbol else s for s in value.axes))


def _part(g: Lowering, index: int, symbol: int, new: int, start: int, beyond: bool) -> int:
    node = g.build.nodes[index]
    if symbol not in g.depends(index):
        return index
    if isinstance(node, Elementwise):
        return g.build.map(node.op, *(_part(g, a, symbol, new, start, beyond) for a in node.args))
    if isinstance(node, Iota):
        return g.build.map("add", g.build.add(Iota(new)), g.build.const(start))
    if not isinstance(node, Load):
        raise Unsupported("a slice of the result of a reduction or a matrix product")
    dims, slices = list(node.dims), list(node.slices or (None,) * len(node.dims))
    for axis in _walks(g, node, symbol):
        before = slices[axis]
        first = start + (0 if before is None else g.slices[before].start.plus)
        outside = beyond or (before is not None and g.slices[before].beyond)
        part = fixed(node.tensor, axis, first, g.axes.size(new), outside)
        if part not in g.slices:
            g.slices.append(part)
        dims[axis], slices[axis] = new, g.slices.index(part)
    return g.build.add(Load(node.tensor, tuple(dims), tuple(slices)))


def gathered(g: Lowering, value: Value, dim: int, at: Value, wraps: bool = False) -> int:
    """Node of the element of ``value`` at index ``at`` along ``dim``. ``wraps``: negative indices count from the
    end."""
    return _gathered(g, value.node, g.counted(g.whole(value.axes[dim])), at.node, wraps)


def _gathered(g: Lowering, index: int, symbol: int, at: int, wraps: bool) -> int:
    node = g.build.nodes[index]
    if symbol not in g.depends(index):
        return index
    if isinstance(node, Elementwise):
        return g.build.map(node.op, *(_gathered(g, a, symbol, at, wraps) for a in node.args))
    if isinstance(node, ReducedIota | Iota) and not wraps:
        return at
    if not isinstance(node, Load) or node.slices:
        raise Unsupported("an indexed element of a value other than a whole input or one row of it")
    axis = _walks(g, node, symbol)[0]
    dims = tuple(None if s is None or g.axes.find(s) == symbol else s for s in node.dims)
    return g.build.add(Gather(node.tensor, axis, dims, (at,), wraps))


def flipped(g: Lowering, value: Value, dim: int) -> Value:
    """``value`` reversed along a dimension: its inputs are read in reverse, and scans change direction."""
    return Value(_flipped(g, value.node, g.whole(value.axes[dim])), value.axes)


def _flipped(g: Lowering, index: int, symbol: int) -> int:
    node = g.build.nodes[index]
    if symbol not in g.depends(index):
        return index
    if isinstance(node, Elementwise):
        return g.build.map(node.op, *(_flipped(g, a, symbol) for a in node.args))
    if isinstance(node, Scan):
        again = symbol in g.axes.resolve(g.reduced or ())
        return g.build.add(Scan(node.op, (_flipped(g, node.args[0], symbol),), node.reverse != again))
    if not isinstance(node, Load) or node.slices:
        raise Unsupported("a flip of a value other than a whole input")
    axis = _walks(g, node, symbol)[0]
    return g.build.add(replace(node, flipped=tuple(sorted({axis} ^ set(node.flipped)))))


def _walks(g: Lowering, load: Load, symbol: int) -> list[int]:
    """Dimensions of the load's tensor that correspond to ``symbol``."""
    found = [axis for axis, s in enumerate(load.dims) if s is not None and g.axes.find(s) == symbol]
    if not found:
        raise Unsupported(REGROUPED)
    return found
