"""Reads a reference through ``torch.export`` into an expression graph: the one file of the templates that knows torch.

Shapes come from fake tensors, so reading a problem of any size takes no memory and a few tenths of a second.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.export.graph_signature import InputKind

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.errors import ProviderError
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.problems import Reference
from cutegen_lab.templates import operators
from cutegen_lab.templates.expr import Const, Graph, Node, Size
from cutegen_lab.templates.lowering import RULES, Lowering, Unsupported, Value
from cutegen_lab.templates.resolve import resolve, with_extents
from cutegen_lab.templates.spans import Span, fitted, fitted_constant

ELSEWHERE = "Try --provider openai (a model writes the kernel), manual (paste one) or replay:FILE."
COMPUTED = (DType.BF16, DType.F16, DType.F32)
_CASTS = ("aten._to_copy.default", "aten.to.dtype", "aten.to.dtype_layout", "prims.convert_element_type.default")
_CHECKS = ("aten._assert_tensor_metadata.default", "aten._assert_scalar.default", "aten._assert_async.msg")
_LINE = re.compile(r'File "[^"]*", line (\d+), in (\w+)\n\s*(.*)')

_ = operators  # importing the module registers its rules


def read(problem: Problem) -> Graph:
    """What ``problem`` computes. Raises ProviderError naming the operator the templates do not know."""
    reference = Reference(problem)
    graph = read_workload(*reference.module_and_args(problem.workload), problem.workload)
    graphs = [(problem.workload, graph)]
    readings, poor = [(problem.workload, graph.spans)], list[Workload]()
    for workload in problem.workloads[1:] + problem.check_workloads:
        if _degenerate(workload, problem.workload):
            poor.append(workload)
            continue
        other = read_workload(*reference.module_and_args(workload), workload)
        if _thin(other.spans, graph.spans):
            poor.append(workload)
            continue
        readings.append((workload, other.spans))
        graphs.append((workload, other))
        if (_shape_free(other), other.outputs, other.reduced) != (_shape_free(graph), graph.outputs, graph.reduced):
            raise ProviderError(
                f"the templates need one expression for all workloads, and {workload.name!r} differs from "
                f"{problem.workload.name!r} (a constant or broadcast that depends on the shape)",
                ELSEWHERE,
            )
    spans = fitted(readings, poor)
    if spans is None:
        raise ProviderError("the templates find no rule for where the reference's slices begin and end", ELSEWHERE)
    if _perhaps_sizes(graph, problem.workload):
        for workload in poor:
            other = read_workload(*reference.module_and_args(workload), workload)
            if [type(node) for node in other.nodes] == [type(node) for node in graph.nodes]:
                graphs.append((workload, other))
    return with_extents(replace(graph, spans=spans, nodes=_with_sizes(graphs)))


def _perhaps_sizes(graph: Graph, workload: Workload) -> bool:
    """Is a constant what a dimension is, too? Then small workloads must tell which of both it is."""
    return any(isinstance(node, Const) and fitted_constant([(workload, node.value)]) for node in graph.nodes)


def _shape_free(graph: Graph) -> tuple[Node, ...]:
    """The nodes without the values of whole-numbered constants, which may be sizes."""
    whole = [isinstance(node, Const) and node.value.is_integer() for node in graph.nodes]
    return tuple(Const(0.0) if known else node for node, known in zip(graph.nodes, whole, strict=True))


def _with_sizes(graphs: Sequence[tuple[Workload, Graph]]) -> tuple[Node, ...]:
    """The first graph's nodes, constants that differ between workloads as sizes. Raises ProviderError."""
    nodes = list(graphs[0][1].nodes)
    for index, node in enumerate(nodes):
        values = [(workload, other.value) for workload, g in graphs if isinstance(other := g.nodes[index], Const)]
        if isinstance(node, Const) and any(value != node.value for _, value in values):
            length = fitted_constant(values)
            if length is None or any(graphs[0][1].dots()):
                beside = "" if length is None else " beside a matrix product"
                raise ProviderError(
                    f"the templates do not cover a constant that depends on the shape{beside}", ELSEWHERE
                )
            nodes[index] = Size(f"size{index}", length)
    return tuple(nodes)


def _degenerate(workload: Workload, main: Workload) -> bool:
    """Has it a dimension of 1 where ``main`` has more? Walking along it and broadcasting it are then the same."""
    sizes = zip(workload.inputs, main.inputs, strict=True)
    return any(a == 1 < b for mine, theirs in sizes for a, b in zip(mine.shape, theirs.shape, strict=True))


def _thin(spans: Sequence[Span], main: Sequence[Span]) -> bool:
    """Has it a part of one element where ``main`` has more?"""
    return len(spans) != len(main) or any(a.length.plus == 1 < b.length.plus for a, b in zip(spans, main, strict=True))


def read_workload(module: torch.nn.Module, args: Sequence[Any], workload: Workload) -> Graph:
    """The graph of one workload. Raises ProviderError."""
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch.export warns about its own internals
            program = torch.export.export(module.eval(), tuple(args), strict=False).run_decompositions({})
    except ProviderError:
        raise
    except Exception as error:  # torch.export raises many types; the reference itself was run and is sound
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ProviderError(f"torch.export cannot read the reference: {first}", ELSEWHERE) from error
    try:
        return _Reader(program, workload).graph()
    except Unsupported as error:
        raise ProviderError(f"the templates do not cover {error}", ELSEWHERE) from error


class _Reader:
    """Walks one exported program, operator by operator."""

    def __init__(self, program: torch.export.ExportedProgram, workload: Workload) -> None:
        self.program = program
        self.workload = workload
        self.lowering = Lowering()
        self.values: dict[str, Any] = {}
        self.line = ""

    def graph(self) -> Graph:
        self._bind_inputs()
        outputs: Sequence[Any] = ()
        for node in self.program.graph.nodes:
            if node.op == "call_function":
                self.values[node.name] = self._call(node)
            elif node.op == "output":
                outputs = node.args[0]
        results = [self._argument(o) for o in outputs]
        if not all(isinstance(r, Value) for r in results):
            raise Unsupported("an output that is not a tensor the kernel computes")
        graph = resolve(self.lowering, results, self.workload)
        for _, load in graph.loads():
            if self.workload.inputs[load.tensor].strides:
                spec = self.workload.inputs[load.tensor]
                raise Unsupported(
                    f"an input that is not row-major and dense, but as a matrix product's operand ({spec})"
                )
        return graph

    def _bind_inputs(self) -> None:
        """Placeholders come as parameters, buffers, arguments; a problem's inputs as arguments, parameters, buffers."""
        specs = self.program.graph_signature.input_specs
        placeholders = [n for n in self.program.graph.nodes if n.op == "placeholder"]
        order = {InputKind.USER_INPUT: 0, InputKind.PARAMETER: 1, InputKind.BUFFER: 2}
        tensors = [
            (order[spec.kind], node)
            for spec, node in zip(specs, placeholders, strict=True)
            if spec.kind in order and isinstance(node.meta.get("val"), torch.Tensor)
        ]
        tensors.sort(key=lambda pair: pair[0])
        if len(tensors) != len(self.workload.inputs):
            raise Unsupported(
                f"a module with {len(tensors)} tensors where the problem names {len(self.workload.inputs)}"
            )
        for position, (_, node) in enumerate(tensors):
            spec = self.workload.inputs[position]
            if not node.users:
                continue
            if spec.dtype not in (*COMPUTED, DType.BOOL):
                raise Unsupported(f"input {spec.name} of dtype {spec.dtype.value}")
            self.values[node.name] = self.lowering.load(position, spec.shape)
        for spec, node in zip(specs, placeholders, strict=True):
            if spec.kind is InputKind.CONSTANT_TENSOR:
                constant = self.program.constants[spec.target]
                if constant.numel() != 1:
                    raise Unsupported(f"a tensor made inside the reference ({list(constant.shape)})")
                self.values[node.name] = self.lowering.const(float(constant))

    def _call(self, node: torch.fx.Node) -> Any:
        name = _name(node.target)
        args = [self._argument(a) for a in node.args]
        named = {k: self._argument(v) for k, v in node.kwargs.items()}
        place = _place(node)
        if name == "getitem":
            return args[0][args[1]]
        if name in _CHECKS:
            return None
        if name in _CASTS:
            return self._cast(args[0], node)
        rule = RULES.get(name)
        if rule is None:
            raise Unsupported(f"{name}{place}")
        named = {k: v for k, v in named.items() if not isinstance(v, torch.dtype | torch.device | torch.layout)}
        try:
            return rule(self.lowering, *args, **named)
        except Unsupported as error:
            raise Unsupported(f"{error}: {name}{place}") from error
        except TypeError as error:
            raise Unsupported(f"this form of {name}{place}") from error

    def _argument(self, argument: Any) -> Any:
        if isinstance(argument, torch.fx.Node):
            if argument.name not in self.values:
                raise Unsupported(f"the value {argument.name}{_place(argument)}")
            return self.values[argument.name]
        if isinstance(argument, list | tuple):
            return [self._argument(a) for a in argument]
        return argument

    def _cast(self, value: Value, node: torch.fx.Node) -> Value:
        """Everything is computed in fp32; a cast matters only where it drops more than precision."""
        result = node.meta["val"].dtype
        truth = self.lowering.is_truth(value, self.workload)
        if result is torch.bool:
            return value if truth else self.lowering.map("ne", value, 0.0)
        if truth:
            return self.lowering.map("where", value, 1.0, 0.0)
        if not result.is_floating_point and node.args[0].meta["val"].dtype.is_floating_point:
            return self.lowering.map("trunc", value)
        return value


def _name(target: Any) -> str:
    return "getitem" if getattr(target, "__name__", "") == "getitem" else str(target)


def _place(node: torch.fx.Node) -> str:
    """`` at line 12: y = x.cumsum(-1)``, where the exporter kept it."""
    frames = _LINE.findall(node.meta.get("stack_trace") or "")
    if not frames:
        return ""
    line, _, code = frames[-1]
    return f" at line {line}: {code.strip()}"
