"""``ExportedProgram.run_decompositions`` for the operators that the templates know; ten times faster than PyTorch's.

To keep composite operators (``aten.layer_norm``) whole, PyTorch overrides the kernels of about 600 operators during the
call: 0.25 s for a program that is traced in 0.03 s. Here only operators of the program, and those with a rule (to which
decompositions may lead), are overridden. A program without anything to decompose is not traced again.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from functools import cache
from typing import Any
from unittest import mock

import torch
from torch._C import DispatchKey
from torch.export import ExportedProgram, exported_program

from cutegen_lab.templates.frontend.operators.registry import RULES
from cutegen_lab.templates.frontend.steps import IN_STEPS

# Name of the function in torch.export.exported_program that lists the operators to override.
COLLECTS = "_collect_all_valid_cia_ops"


def decomposed(program: ExportedProgram) -> ExportedProgram:
    """``program`` in functional form, with the operators of :data:`IN_STEPS` decomposed and all others whole."""
    if not hasattr(exported_program, COLLECTS):  # another PyTorch version: same result, slower
        return program.run_decompositions(IN_STEPS)
    if _is_final(program.graph):
        return program
    here = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    kept = {op for name, op in _composites().items() if name in here or name in RULES or op in IN_STEPS}
    with mock.patch.object(exported_program, COLLECTS, lambda: kept):
        return program.run_decompositions(IN_STEPS)


def _is_final(graph: torch.fx.Graph) -> bool:
    """Whether tracing again would give the same nodes: none is unused, writes to a tensor, or must be decomposed."""
    calls = [node for node in graph.nodes if node.op == "call_function"]
    return all(node.users and _stays(node.target) for node in calls)


@cache
def _stays(op: Any) -> bool:
    if op is operator.getitem:
        return True
    if not isinstance(op, torch._ops.OpOverload) or op._schema.is_mutable or op in IN_STEPS:
        return False
    steps = torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), "CompositeImplicitAutograd")
    python = any(key in op.py_kernels for key in (DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd))
    return not (steps or python) or str(op) in _composites()


@cache
def _composites() -> Mapping[str, Any]:
    """PyTorch's composite operators that can be kept whole, by name."""
    collect = getattr(exported_program, COLLECTS)
    return {str(op): op for op in collect() if isinstance(op, torch._ops.OpOverload)}
