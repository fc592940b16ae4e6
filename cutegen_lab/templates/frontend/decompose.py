"""``ExportedProgram.run_decompositions`` for the operators that the templates know, at a tenth of its cost.

PyTorch keeps a composite operator (``aten.layer_norm``) whole by overriding its kernels for the length of the call, and
does so for each of the 600 or so that it has, whatever the program holds: 0.25 s a program that is traced in 0.03 s.
Here the override is for those that the program holds and those that have a rule, which decompositions may lead to; and
a program that holds nothing to decompose is not traced a second time.
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

from cutegen_lab.templates.frontend.operators.rules import RULES
from cutegen_lab.templates.frontend.steps import IN_STEPS

COLLECTS = "_collect_all_valid_cia_ops"  # of torch.export.exported_program: the operators whose kernels are overridden


def decomposed(program: ExportedProgram) -> ExportedProgram:
    """``program`` made functional, with the operators of :data:`IN_STEPS` in steps and every other one whole."""
    if not hasattr(exported_program, COLLECTS):  # a PyTorch that works otherwise: slower, and the same
        return program.run_decompositions(IN_STEPS)
    if _is_final(program.graph):
        return program
    here = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    kept = {op for name, op in _composites().items() if name in here or name in RULES or op in IN_STEPS}
    with mock.patch.object(exported_program, COLLECTS, lambda: kept):
        return program.run_decompositions(IN_STEPS)


def _is_final(graph: torch.fx.Graph) -> bool:
    """Would tracing it again give the same nodes? Where none is unused, writes to a tensor, or is to be decomposed."""
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
