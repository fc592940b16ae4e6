"""Reads a reference, or a region of one, into an expression graph.

Shapes come from fake tensors, so a problem of any size needs no memory and a few tenths of a second.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.errors import NotCovered
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.problems import Reference
from cutegen_lab.templates.frontend import operators
from cutegen_lab.templates.frontend.axes import Misfit
from cutegen_lab.templates.frontend.expr import Const, Elementwise, Graph, Node, Size
from cutegen_lab.templates.frontend.lowering import Lowering, Unsupported, Value
from cutegen_lab.templates.frontend.names import apart
from cutegen_lab.templates.frontend.operators.registry import RULES
from cutegen_lab.templates.frontend.program import Program, Region, Scalar, place, target
from cutegen_lab.templates.frontend.ranges import range_of
from cutegen_lab.templates.frontend.resolve import resolve, with_extents
from cutegen_lab.templates.frontend.shape_exprs import (
    Slice,
    fitted,
    fitted_constant,
    fitted_factor,
    fitted_power,
    perhaps_of_shape,
)

COMPUTED = (DType.BF16, DType.F16, DType.F32)
INDICES = (DType.I64, DType.I32)
SMALL = (DType.I16, DType.I8)  # fp32 represents all their values. u8 is not among them: CuTe reads it as signed
WRAPPING = {"add", "sub", "mul", "neg", "abs", "trunc"}
CASTS = ("aten._to_copy.default", "aten.to.dtype", "aten.to.dtype_layout", "prims.convert_element_type.default")

_ = operators  # importing the module registers its rules


class Programs:
    """The exported programs of a problem, by workload name; exported on first use. ``arch``: target of their
    kernels."""

    def __init__(self, problem: Problem, arch: str = "sm_90a") -> None:
        self.problem, self.arch = apart(problem), arch
        self._reference = Reference(problem)
        self._made: dict[str, Program] = {}

    def of(self, workload: str) -> Program:
        """The program of ``workload``. Raises ProviderError."""
        program = self._exported(workload)
        program.moving = self._moving
        return program

    def _exported(self, workload: str) -> Program:
        if workload not in self._made:
            found = self.problem.workload_named(workload)
            module, args = self._reference.module_and_args(found)
            self._made[workload] = Program(module, args, found, self.problem.tf32, self.problem.source)
        return self._made[workload]

    @cached_property
    def _moving(self) -> frozenset[Scalar]:
        """Numbers in the program that depend on a shape, such as ``x.shape[-1] ** -0.5``."""
        main, *others = (*self.problem.workloads, *self.problem.check_workloads)
        numbers = self._exported(main.name).scalars()
        asked = {at: number for at, number in numbers.items() if perhaps_of_shape(number, main)}
        found = [self._exported(workload.name).scalars() for workload in others] if asked else []
        return frozenset(at for at, number in asked.items() if any(s.get(at, number) != number for s in found))


def read(problem: Problem, programs: Programs | None = None) -> Graph:
    """Graph of ``problem``. Raises ProviderError that names the operator the templates do not know."""
    programs = programs or Programs(problem)

    def whole(workload: Workload) -> Graph:
        program = programs.of(workload.name)
        return read_region(program, program.whole(), workload)

    return agreed(problem.workloads + problem.check_workloads, whole)


def agreed(workloads: Sequence[Workload], read_one: Callable[[Workload], Graph]) -> Graph:
    """Graph of the first workload, with formulas in place of sizes that differ between workloads. Raises ProviderError
    if their graphs differ."""
    main, *rest = workloads
    graph = read_one(main)
    graphs = [(main, graph)]
    readings, ambiguous = [(main, graph.slices)], list[Workload]()
    for workload in rest:
        if _degenerate(workload, main):
            ambiguous.append(workload)
            continue
        other = read_one(workload)
        if _has_thin_slice(other.slices, graph.slices):
            ambiguous.append(workload)
            continue
        readings.append((workload, other.slices))
        graphs.append((workload, other))
        if (_shape_free(other), other.outputs, other.reduced) != (_shape_free(graph), graph.outputs, graph.reduced):
            raise NotCovered(
                f"the templates need one expression for all workloads, and {workload.name!r} differs from "
                f"{main.name!r} (a constant or broadcast that depends on the shape)"
            )
    slices = fitted(readings, ambiguous)
    if slices is None:
        raise NotCovered("the templates find no formula for the bounds of the reference's slices")
    moving = any(isinstance(node, Const) and node.source for node in graph.nodes)
    extra = [(workload, read_one(workload)) for workload in ambiguous] if moving or _perhaps_sizes(graph, main) else []
    shapes = [type(node) for node in graph.nodes]
    graphs += [(workload, other) for workload, other in extra if [type(node) for node in other.nodes] == shapes]
    nodes = _with_sizes(graphs, [*graphs, *(pair for pair in extra if pair not in graphs)])
    return _with_parts(with_extents(replace(graph, slices=slices, nodes=nodes), len(main.inputs)), graphs)


def _with_parts(graph: Graph, graphs: Sequence[tuple[Workload, Graph]]) -> Graph:
    """``graph`` with formulas for the sizes of dimensions that views split. Raises ProviderError."""
    found = list(graph.extent_from)
    for d, length in enumerate(found):
        if length.tensor is None and length.plus == graph.space[d]:
            load = next(load for _, load in graph.loads() if load.dims[d] is not None)
            numbers = [(workload, other.space[d]) for workload, other in graphs]
            fitting = fitted_factor(numbers, load.tensor, load.dims[d] or 0)
            if fitting is None:
                raise NotCovered("the templates find no formula for the sizes into which a view splits a dimension")
            found[d] = fitting
    return replace(graph, extent_from=tuple(found))


def _perhaps_sizes(graph: Graph, workload: Workload) -> bool:
    """Whether a constant might be the size of a dimension. If so, workloads with dimensions or slices of size 1 are
    read too, to decide."""
    return any(isinstance(node, Const) and fitted_constant([(workload, node.value)]) for node in graph.nodes)


def _shape_free(graph: Graph) -> tuple[Node, ...]:
    """Nodes without the values of constants that may depend on shapes: integers, and those with a source."""
    whole = [isinstance(node, Const) and (node.source != "" or node.value.is_integer()) for node in graph.nodes]
    return tuple(Const(0.0) if known else node for node, known in zip(graph.nodes, whole, strict=True))


def _with_sizes(graphs: Sequence[tuple[Workload, Graph]], every: Sequence[tuple[Workload, Graph]]) -> tuple[Node, ...]:
    """Nodes of the first graph, in which constants that depend on the workload become :class:`Size`. ``every``:
    ``graphs``, and graphs with other nodes, whose constants are matched by source. Raises ProviderError."""
    nodes = list(graphs[0][1].nodes)
    for index, node in enumerate(nodes):
        if not isinstance(node, Const):
            continue
        if node.source:
            pairs = [(w, other) for w, graph in every for other in graph.nodes]
            values = [(w, o.value) for w, o in pairs if isinstance(o, Const) and o.source == node.source]
        else:
            values = [(workload, other.value) for workload, g in graphs if isinstance(other := g.nodes[index], Const)]
        if all(value == node.value for _, value in values):
            continue
        fitting = fitted_power(values)
        if fitting is None:
            raise NotCovered("the templates do not cover a constant that depends on the shape")
        nodes[index] = Size(f"size{index}", *fitting)
    return tuple(nodes)


def _degenerate(workload: Workload, main: Workload) -> bool:
    """Whether a dimension has size 1, but is larger in ``main``: a trace then does not distinguish indexing from
    broadcasting."""
    sizes = zip(workload.inputs, main.inputs, strict=True)
    return any(a == 1 < b for mine, theirs in sizes for a, b in zip(mine.shape, theirs.shape, strict=True))


def _has_thin_slice(slices: Sequence[Slice], main: Sequence[Slice]) -> bool:
    """Whether a slice has one element, but more in ``main``."""
    return len(slices) != len(main) or any(
        a.length.plus == 1 < b.length.plus for a, b in zip(slices, main, strict=True)
    )


def read_region(program: Program, region: Region, workload: Workload) -> Graph:
    """Graph of a region; ``workload`` is that of the region. Raises ProviderError."""
    try:
        return _Reader(program, region, workload).graph()
    except Unsupported as error:
        raise NotCovered(f"the templates do not cover {error}") from error


def _largest(node: torch.fx.Node) -> float:
    value = node.meta.get("val")
    known = isinstance(value, torch.Tensor) and value.dtype.is_floating_point
    return torch.finfo(value.dtype).max if known else math.inf


def _wraps(node: torch.fx.Node) -> bool:
    """Whether the result is of 8-bit or 16-bit integers, whose arithmetic may wrap around."""
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dtype in (torch.int8, torch.uint8, torch.int16)


class _Reader:
    """Reads one region, operator by operator."""

    def __init__(self, program: Program, region: Region, workload: Workload) -> None:
        self.program, self.region = program, region
        self.workload = workload
        self.lowering = Lowering()
        self.values: dict[str, Any] = {}

    def graph(self) -> Graph:
        self._bind_inputs()
        for name, node in self.program.nodes.items():
            if name in self.region.nodes and name not in self.values:
                self.values[name] = value = self._call(node)
                if isinstance(value, Value) and (variable := self.program.variables.get(name)):
                    self.lowering.build.set_name(value.node, variable)
        results = [self._argument(self.program.nodes[name]) for name in self.region.results]
        if not all(isinstance(r, Value) for r in results):
            raise Unsupported("an output that is not a tensor the kernel computes")
        if any(spec.dtype.is_float8 for spec in self.workload.outputs):
            raise Unsupported("a result of 8-bit floats")
        graph = resolve(self.lowering, results, self.workload, self.program.tf32)
        for _, load in graph.loads():
            if self.workload.inputs[load.tensor].strides:
                spec = self.workload.inputs[load.tensor]
                raise Unsupported(
                    f"an input that is not row-major and dense, other than an operand of a matrix product ({spec})"
                )
        return graph

    def _bind_inputs(self) -> None:
        for position, name in enumerate(self.region.inputs):
            spec = self.workload.inputs[position]
            if not self.program.nodes[name].users:
                continue
            if spec.dtype not in (*COMPUTED, *INDICES, *SMALL, DType.BOOL) and not spec.dtype.is_float8:
                known = ", ".join(dtype.value for dtype in (*COMPUTED, *INDICES, *SMALL, DType.BOOL))
                raise Unsupported(
                    f"input {spec.name} of dtype {spec.dtype.value} (supported: {known}, and 8-bit floats)"
                )
            self.values[name] = self.lowering.load(position, spec.shape)
        for name, constant in self.program.constants.items():
            if constant.numel() != 1:
                raise Unsupported(f"a tensor made inside the reference ({list(constant.shape)})")
            self.values[name] = self.lowering.const(float(constant))

    def _call(self, node: torch.fx.Node) -> Any:
        name = target(node)
        args: list[Any] = [self._number(node, at) or self._argument(a) for at, a in enumerate(node.args)]
        named = {k: self._argument(v) for k, v in node.kwargs.items()}
        where = place(node)
        if name == "getitem":
            return args[0][args[1]]
        if name in CASTS:
            return self._cast(args[0], node)
        self.lowering.largest = _largest(node)
        rule = RULES.get(name)
        if rule is None:
            raise Unsupported(f"{name}{where}")
        named = {k: v for k, v in named.items() if not isinstance(v, torch.dtype | torch.device | torch.layout)}
        try:
            result = rule(self.lowering, *args, **named)
            if (
                _wraps(node)
                and isinstance(made := self.lowering.build.nodes[result.node], Elementwise)
                and made.op in WRAPPING
            ):
                raise Unsupported("integer arithmetic that may wrap around")
            return result
        except (Unsupported, Misfit) as error:
            raise Unsupported(f"{error}: {name}{where}") from error
        except TypeError as error:
            raise Unsupported(f"these arguments of {name}{where}") from error

    def _number(self, node: torch.fx.Node, at: int) -> Value | None:
        """Argument ``at`` of ``node``, if it is a number that depends on the workload, as a constant with its source;
        else None."""
        if (node.name, at) not in self.program.moving:
            return None
        return Value(self.lowering.build.add(Const(float(node.args[at]), f"{node.name} {at}")), ())

    def _argument(self, argument: Any) -> Any:
        if isinstance(argument, torch.fx.Node):
            if argument.name not in self.values:
                raise Unsupported(f"the value {argument.name}{place(argument)}")
            return self.values[argument.name]
        if isinstance(argument, list | tuple):
            return [self._argument(a) for a in argument]
        return argument

    def _cast(self, value: Value, node: torch.fx.Node) -> Value:
        """Converts a value. All values are fp32, so a cast matters only if it changes more than precision."""
        result = node.meta["val"].dtype
        truth = self.lowering.is_truth(value, self.workload)
        if result is torch.bool:
            return value if truth else self.lowering.map("ne", value, 0.0)
        if truth:
            return self.lowering.map("where", value, 1.0, 0.0)
        before = node.args[0].meta["val"].dtype
        if not result.is_floating_point and before.is_floating_point:
            self._check_holds(result, value)
            return self.lowering.map("trunc", value)
        if result.is_floating_point and not before.is_floating_point and self.lowering.is_input(value):
            return self.lowering.map("number", value)
        return value

    def _check_holds(self, kind: torch.dtype, value: Value) -> None:
        """Raises Unsupported if ``value`` may be outside the range of the 8-bit or 16-bit type ``kind``: PyTorch leaves
        the result undefined."""
        least, largest = range_of(self.lowering.build.nodes, value.node)
        limits = torch.iinfo(kind)
        if limits.bits < 32 and not limits.min - 1 < least <= largest < limits.max + 1:
            name = str(kind).removeprefix("torch.")
            raise Unsupported(
                f"a cast to {name} of floats that may be beyond {limits.min} to {limits.max}, where PyTorch's results "
                "are undefined (clamp them first)"
            )
