"""Last step of reading: chooses one iteration space for the graph and the dimensions of every load in it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import Workload
from cutegen_lab.templates.frontend.axes import Axes
from cutegen_lab.templates.frontend.by_rows import by_rows
from cutegen_lab.templates.frontend.expr import (
    TRUTH_OPS,
    Const,
    Dims,
    Dot,
    Elementwise,
    Gather,
    Graph,
    Iota,
    Load,
    Node,
    Output,
    Pool,
    Reduce,
    ReducedIota,
    Scan,
)
from cutegen_lab.templates.frontend.lowering import Lowering, Unsupported, Value
from cutegen_lab.templates.frontend.shape_exprs import ShapeExpr


def resolve(lowering: Lowering, results: Sequence[Value], workload: Workload, tf32: bool = False) -> Graph:
    """The finished graph. ``tf32``: products may round fp32 operands to TF32. Raises Unsupported if the values do not
    share one iteration space."""
    axes = lowering.axes
    nodes = lowering.build.nodes
    candidates = [axes.resolve(a) for a in [*lowering.spaces, *(r.axes for r in results)]]
    folded = set(axes.resolve(lowering.reduced or ()))
    space = max(
        candidates, key=lambda a: (folded <= set(a), len({s for s in a if axes.size(s) > 1}), -len(a)), default=()
    )
    if not lowering.reduced:
        space = max((axes.resolve(r.axes) for r in results), key=lambda a: len([s for s in a if axes.size(s) > 1]))
    space = tuple(s for s in space if not axes.is_made(s))
    if len(set(space)) != len(space):
        raise Unsupported("a tensor combined with its own transpose")
    reduced = axes.resolve(lowering.reduced or ())
    if any(s not in space for s in reduced):
        raise Unsupported("reductions over dimensions that the result does not share")
    walked, space = space, _together(space, reduced)
    if lowering.totalled is not None and {*reduced, *axes.resolve(lowering.totalled)} != set(space):
        raise Unsupported("reductions over different dimensions in one reference")

    for node in (nodes[index] for index in lowering.tested):
        if not isinstance(node, Load) or workload.inputs[node.tensor].dtype is not DType.BOOL:
            raise Unsupported("an operation on the bits of numbers")

    where = {s: d for d, s in enumerate(space)}
    resolved, live = [], _live(nodes, results)
    for index, node in enumerate(nodes):
        if isinstance(node, Dot):
            if not all(axes.whole(s) for s in lowering.products[index]):
                raise Unsupported("a view that regroups dimensions of a matrix product's result")
            node = _placed(node, axes.resolve(lowering.products[index]), space)
            kinds = [workload.inputs[t].dtype for t in (node.first, node.second)]
            if kinds[0].is_float8 != kinds[1].is_float8:
                raise Unsupported(f"a matrix product of {kinds[0].value} and {kinds[1].value}")
            f8, fine = kinds[0].is_float8, any(t.dtype.eps < DType.BF16.eps for t in workload.outputs)
            f32 = set(kinds) == {DType.F32}
            node = replace(node, f32=f32, tf32=f32 and tf32, f8=f8 and not fine, as_f16=f8 and fine)
        if isinstance(node, Load | Gather):
            walks = [() if s is None else axes.parts(s) for s in node.dims]
            stray = [s for s in itertools.chain(*walks) if s not in where and axes.size(s) > 1]
            if stray and index in live:
                raise Unsupported(
                    f"input {workload.inputs[node.tensor].name} with a dimension that the result does not have"
                )
            if index in live and any(not _in_order(parts, where) for parts in walks):
                raise Unsupported("the parts into which a view splits a dimension, in another order")
            node = replace(node, dims=_dims(walks, space))
            if isinstance(node, Load) and node.flipped and index in live:
                raise Unsupported("a flip other than before and after a scan")
        if isinstance(node, Pool):
            if not all(axes.whole(s) for s in lowering.products[index]):
                raise Unsupported("a view that regroups dimensions of a pooled value")
            node = replace(node, dims=_dims([axes.parts(s) for s in lowering.products[index]], space))
        if isinstance(node, Iota):
            node = _positioned(node, axes, where, tuple(where[s] for s in reduced), index in live)
        resolved.append(node)

    outputs = []
    for position, result in enumerate(results):
        symbols, walks = axes.resolve(result.axes), [axes.parts(s) for s in result.axes]
        apart = [[s for s in symbols if s in reduced], [s for s in symbols if s not in reduced]]
        if not all(_in_order(some, where) for some in (*walks, *([symbols] if space == walked else apart))):
            raise Unsupported(f"output {position} with its dimensions in another order")
        if any(s not in where and axes.size(s) > 1 for s in symbols):
            raise Unsupported(f"output {position} larger than the computed value")
        if list(map(axes.size, result.axes)) != list(workload.outputs[position].shape):
            raise Unsupported(f"output {position} with fewer rows than the tensor that a gather reads")
        outputs.append(Output(result.node, _dims(walks, space)))

    graph = Graph(
        nodes=tuple(resolved),
        outputs=tuple(outputs),
        space=tuple(axes.size(s) for s in space),
        extent_from=(),
        reduced=tuple(sorted(where[s] for s in reduced)),
        names=tuple(sorted(lowering.build.names.items())),
        slices=tuple(lowering.slices),
    ).pruned()
    _only_indices(graph, workload)
    _exact_sums(graph, workload)
    for _, load in graph.loads():
        if workload.inputs[load.tensor].dtype.is_float8:
            spec = workload.inputs[load.tensor]
            raise Unsupported(
                f"input {spec.name} of dtype {spec.dtype.value} other than as an operand of a matrix product"
            )
        beyond = [n for n in load.slices if n is not None and graph.slices[n].beyond]
        if graph.reduced and len(beyond) > (graph.padding(load) > 0 and any(graph.scans())):
            raise Unsupported("concatenation or padding in one kernel with a reduction")
    if any(graph.dots()) and any(graph.iotas()):
        raise Unsupported("torch.arange (indices) in one kernel with a matrix product")
    if any(graph.dots()) and any(load.slices for _, load in graph.loads()):
        raise Unsupported("a slice of an input in one kernel with a matrix product")
    return with_extents(by_rows(graph), len(workload.inputs))


def _only_indices(graph: Graph, workload: Workload) -> None:
    """Checks that integers, which are fp32 values here, are only used as indices or in comparisons that are exact in
    fp32."""
    whole = {i for i, load in graph.loads() if workload.inputs[load.tensor].dtype in (DType.I64, DType.I32)}
    for index, node in enumerate(graph.nodes):
        used = whole.intersection(node.args)
        if not used or isinstance(node, Gather):
            continue
        others = [graph.nodes[a] for a in node.args if a not in used]
        small = all(isinstance(other, Const) and abs(other.value) < 1 << 24 for other in others)
        if isinstance(node, Elementwise) and (
            node.op == "number" or (node.op in TRUTH_OPS and len(used) == 1 and small)
        ):
            continue
        if not (isinstance(node, Elementwise) and node.op == "where" and node.args[0] not in used):
            name = next(workload.inputs[load.tensor].name for i, load in graph.loads() if i in whole)
            raise Unsupported(
                f"integer input {name} other than as an index, in a comparison with a number below 2**24, or "
                "after conversion to float"
            )
        whole.add(index)
    if whole & {output.node for output in graph.outputs}:
        raise Unsupported("integers as a result")


def _exact_sums(graph: Graph, workload: Workload) -> None:
    """Checks that sums of 8-bit and 16-bit integers are exact in fp32."""
    short = [t.dtype.itemsize for t in workload.inputs if t.dtype in (DType.I8, DType.I16)]
    largest = 1 << 8 * max(short) - 1 if short else 0
    folded = math.prod(graph.space if any(graph.full_reductions()) else (graph.space[d] for d in graph.reduced))
    sums = any(isinstance(node, Reduce | Scan) and node.op in ("add", "mul") for node in graph.nodes)
    if sums and largest * folded > 1 << 24 and not all(t.dtype.is_float for t in workload.outputs):
        raise Unsupported(f"sums of {folded} integers of up to {largest} (exact only up to 2**24)")


def _live(nodes: Sequence[Node], results: Sequence[Value]) -> set[int]:
    """Nodes on which the results depend. Operands of a matrix product are inputs, not nodes."""
    live, stack = set[int](), [r.node for r in results]
    while stack:
        index = stack.pop()
        if index not in live:
            live.add(index)
            stack.extend(nodes[index].args)
    return live


def _placed(dot: Dot, symbols: tuple[int, ...], space: tuple[int, ...]) -> Dot:
    """``dot`` with dimensions of ``space``. ``symbols``: axes of its result."""

    def over(dims: Dims) -> Dims:
        return (*(dims[symbols.index(s)] if s in symbols else None for s in space), dims[-1])

    lost = [
        s
        for at, s in enumerate(symbols)
        if s not in space and (dot.first_dims[at], dot.second_dims[at]) != (None, None)
    ]
    if lost:
        raise Unsupported("a matrix product with a dimension that the result does not have")
    return replace(dot, first_dims=over(dot.first_dims), second_dims=over(dot.second_dims))


def _positioned(
    node: Iota, axes: Axes, where: Mapping[int, int], reduced: tuple[int, ...], live: bool
) -> Iota | ReducedIota | Const:
    symbol = axes.find(node.dim)
    if symbol not in where:
        if live and axes.size(symbol) > 1:
            raise Unsupported("torch.arange (indices) along a dimension that the result does not have")
        return Const(0.0)
    dim = where[symbol]
    if dim not in reduced:
        return Iota(dim)
    if len(reduced) > 1:
        raise Unsupported("torch.arange (indices) along one of several reduced dimensions")
    return ReducedIota()


def _together(space: tuple[int, ...], reduced: tuple[int, ...]) -> tuple[int, ...]:
    """``space`` with its reduced dimensions next to each other: at the end if the last dimension is reduced, otherwise
    at the position of the first reduced one."""
    places = [d for d, s in enumerate(space) if s in reduced]
    if not places or places == list(range(places[0], places[-1] + 1)):
        return space
    kept = [s for s in space if s not in reduced]
    at = len(kept) if space[-1] in reduced else places[0]
    return (*kept[:at], *(space[d] for d in places), *kept[at:])


def _in_order(symbols: Sequence[int], where: Mapping[int, int]) -> bool:
    places = [where[s] for s in symbols if s in where]
    return places == sorted(places)


def _dims(walks: Sequence[Sequence[int]], space: Sequence[int]) -> Dims:
    """For each dimension of the space, the dimension of the tensor that corresponds to it or contains it."""
    axis_of = {s: axis for axis, parts in reversed(list(enumerate(walks))) for s in parts}
    return tuple(axis_of.get(s) for s in space)


def with_extents(graph: Graph, inputs: int) -> Graph:
    """``graph`` with formulas for the sizes of its dimensions: from whole inputs, else from slices, else from results.
    Dimensions split by views keep this workload's sizes. ``inputs``: number of inputs."""
    found = []
    # tried last: an index may have fewer rows than the tensor that it indexes
    indices = {arg for _, gather in graph.gathers() for arg in gather.args}
    for d in range(len(graph.space)):
        walks: list[tuple[int, int | None, int | None]] = []
        for _, dot in graph.dots():
            walks += [(dot.first, dot.first_dims[d], None), (dot.second, dot.second_dims[d], None)]
        part = False
        for _, load in sorted(graph.loads(), key=lambda pair: pair[0] not in indices):
            axis = load.dims[d]
            if load.dims.count(axis) == 1:
                number = load.slices[axis] if load.slices and axis is not None else None
                if number is None or not graph.slices[number].beyond or any(graph.scans()):
                    walks.append((load.tensor, axis, number))
            part = part or (axis is not None and load.dims.count(axis) > 1)
        walks += [
            (gather.tensor, axis, None)
            for _, gather in graph.gathers()
            if gather.dims.count(axis := gather.dims[d]) == 1
        ]
        walks.sort(key=lambda walk: walk[2] is not None)  # whole inputs before slices
        source = next((walk for walk in walks if walk[1] is not None), None)
        if source is None or source[1] is None:
            found.append(ShapeExpr(plus=graph.space[d]) if part else _of_output(graph, d, inputs))
            continue
        tensor, _, number = source
        found.append(ShapeExpr(tensor, source[1]) if number is None else graph.slices[number].length)
    return replace(graph, extent_from=tuple(found))


def _of_output(graph: Graph, dim: int, inputs: int) -> ShapeExpr:
    for at, output in enumerate(graph.outputs):
        axis = output.dims[dim]
        if axis is not None and output.dims.count(axis) == 1 and not any(graph.dots()):
            return ShapeExpr(inputs + at, axis)
    raise Unsupported("a result larger than every input (a size that comes from expand)")
