"""A reference as exported by ``torch.export`` for one workload, and regions of it that one kernel computes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch.export.graph_signature import InputKind

from cutegen_lab.core.errors import NotCovered, ProviderError
from cutegen_lab.core.problem import Workload
from cutegen_lab.problems.default_dtype import unchanged
from cutegen_lab.problems.source import is_source
from cutegen_lab.problems.tracing import tracing
from cutegen_lab.templates.frontend.constants import Constants
from cutegen_lab.templates.frontend.decompose import decomposed
from cutegen_lab.templates.frontend.variables import Call, variables

CHECKS = ("aten._assert_tensor_metadata.default", "aten._assert_scalar.default", "aten._assert_async.msg")
ARITHMETIC = {f"aten.{op}.{form}" for op in ("mul", "div", "add", "sub", "rsub") for form in ("Tensor", "Scalar")}
Scalar = tuple[str, int]  # (name of a call, index of the argument)
_LINE = re.compile(r'File "([^"]*)", line (\d+), in \w+\n\s*(.*)')


@dataclass(frozen=True)
class Region:
    """The part of a program that one kernel computes. ``nodes``, ``results``: by name. ``inputs``: tensors in the order
    of the kernel's workload."""

    inputs: tuple[str, ...]
    nodes: frozenset[str]
    results: tuple[str, ...]


class Program:
    """The operators of one workload in order. ``inputs``: placeholders in the order of the workload's inputs. ``tf32``:
    as in the problem. ``source``: text of the reference. ``moving``: positions of numbers that depend on the workload.
    Shapes come from fake tensors, so a problem of any size needs no memory and a few tenths of a second. Raises
    ProviderError."""

    def __init__(
        self, module: torch.nn.Module, args: Sequence[Any], workload: Workload, tf32: bool = False, source: str = ""
    ) -> None:
        try:
            with tracing(), unchanged(), torch.no_grad(), torch.device("meta"), Constants():
                exported = decomposed(torch.export.export(module, tuple(args), strict=False))
        except ProviderError:
            raise
        except Exception as error:  # torch.export raises many types; the reference itself has run already
            first = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise NotCovered(f"torch.export cannot read the reference: {first}") from error
        self.workload, self.tf32, self._source = workload, tf32, source
        self.moving: frozenset[Scalar] = frozenset()
        self.nodes: dict[str, torch.fx.Node] = {node.name: node for node in exported.graph.nodes}
        self.inputs, self.constants = _placeholders(exported, workload)
        (output,) = (node for node in exported.graph.nodes if node.op == "output")
        self.results: tuple[Any, ...] = tuple(output.args[0])

    @property
    def calls(self) -> list[torch.fx.Node]:
        """Operators in order, without the exporter's own checks."""
        return [n for n in self.nodes.values() if n.op == "call_function" and target(n) not in CHECKS]

    @cached_property
    def variables(self) -> dict[str, str]:
        """Names that the reference's text gives to results of operators."""
        items = [node.args[1] if target(node) == "getitem" else None for node in self.calls]
        found = [
            Call(node.name, tuple(line for line, _ in _frames(node)), item)
            for node, item in zip(self.calls, items, strict=True)
        ]
        return variables(found, self._source)

    def scalars(self) -> dict[Scalar, float]:
        """Numbers that are arguments of arithmetic operators."""
        return {
            (node.name, at): float(argument)
            for node in self.calls if target(node) in ARITHMETIC
            for at, argument in enumerate(node.args)
            if isinstance(argument, int | float) and not isinstance(argument, bool)
        }  # fmt: skip

    def whole(self) -> Region:
        """The whole program as a region. Raises ProviderError if a result is not a tensor."""
        if not all(isinstance(result, torch.fx.Node) for result in self.results):
            raise NotCovered("the templates do not cover an output that is not a tensor the kernel computes")
        return Region(self.inputs, frozenset(n.name for n in self.calls), tuple(r.name for r in self.results))


def target(node: torch.fx.Node) -> str:
    """Name of the operator: ``aten.add.Tensor``, or ``getitem``."""
    return "getitem" if getattr(node.target, "__name__", "") == "getitem" else str(node.target)


def place(node: torch.fx.Node) -> str:
    """Position of the node in the text of the reference, such as `` at line 12: y = x.cumsum(-1)``; empty if the
    exporter did not keep it."""
    frames = _frames(node)
    return f" at line {frames[-1][0]}: {frames[-1][1].strip()}" if frames else ""


def _frames(node: torch.fx.Node) -> list[tuple[int, str]]:
    """(line, its text) of each stack frame in the reference, outermost first, as far as the exporter kept them."""
    found = _LINE.findall(node.meta.get("stack_trace") or "")
    return [(int(line), code) for file, line, code in found if is_source(file)]


def _placeholders(exported: torch.export.ExportedProgram, workload: Workload) -> tuple[tuple[str, ...], dict[str, Any]]:
    """(names of placeholders in the order of the workload's inputs, values of tensors that the reference makes, by
    name). torch.export orders placeholders as parameters, buffers, arguments; a problem's inputs are arguments,
    parameters, buffers."""
    specs = exported.graph_signature.input_specs
    placeholders = [n for n in exported.graph.nodes if n.op == "placeholder"]
    order = {InputKind.USER_INPUT: 0, InputKind.PARAMETER: 1, InputKind.BUFFER: 2}
    pairs = list(zip(specs, placeholders, strict=True))
    tensors = [
        (order[spec.kind], node.name)
        for spec, node in pairs
        if spec.kind in order and isinstance(node.meta.get("val"), torch.Tensor)
    ]
    tensors.sort(key=lambda pair: pair[0])
    if len(tensors) != len(workload.inputs):
        raise NotCovered(
            f"the templates do not cover a module with {len(tensors)} tensors where the problem has "
            f"{len(workload.inputs)}"
        )
    constants = {
        node.name: exported.constants[spec.target] for spec, node in pairs if spec.kind is InputKind.CONSTANT_TENSOR
    }
    return tuple(name for _, name in tensors), constants
