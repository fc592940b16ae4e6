"""Removes results that no caller reads."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from cutegen_lab.templates.emit.displays import display, tuple_of
from cutegen_lab.templates.emit.names import Quick, dotted, functions, loads, target_names, within
from cutegen_lab.templates.emit.parameters import ENTRIES, calls_of


def with_read_results_only(module: cst.Module) -> cst.Module:
    """Rewrites ``a, b = f()`` and ``return x, y`` to ``a = f()`` and ``return x``, if no caller reads ``b``. Returns
    ``module`` itself if every result is read."""
    calls, targets = calls_of(module), _targets(module)
    kept = dict[str, list[int]]()
    for name, function in functions(module).items():
        count = _count_returned(function)
        taken = [targets.get(id(call), []) for call in calls.get(name, [])]
        if name in ENTRIES or count < 2 or not taken or any(len(names) != count for names in taken):
            continue
        read = [at for at in range(count) if any(names[at] for names in taken)]
        if 0 < len(read) < count:
            kept[name] = read
    if not kept:
        return module
    changed = module.visit(_Kept(kept))
    assert isinstance(changed, cst.Module)
    return changed


def with_results_of_one_open(module: cst.Module) -> cst.Module:
    """Rewrites ``return (x,)`` and ``f()`` to ``return x`` and ``(f(),)``."""
    calls = calls_of(module)
    one = {name for name, f in functions(module).items() if name in calls and _count_returned(f) == 1} - ENTRIES
    if not one:
        return module
    changed = module.visit(_Open(one))
    assert isinstance(changed, cst.Module)
    return changed


def _count_returned(function: cst.FunctionDef) -> int:
    """Number of values in the tuple of its only ``return``; 0 if there is none."""
    returns = [each for each in within(function) if isinstance(each, cst.Return)]
    nested = any(isinstance(each, cst.FunctionDef | cst.Lambda) for each in within(function.body))
    whole = display(returns[0].value) if len(returns) == 1 and not nested else None
    compiled = {dotted(decorator.decorator) for decorator in function.decorators} <= {"cute.jit"}
    return len(whole.elements) if isinstance(whole, cst.Tuple) and compiled else 0


def _targets(module: cst.Module) -> dict[int, list[str]]:
    """Names that each call's result is assigned to, by call; "" for a name that is never read."""
    found = dict[int, list[str]]()
    for function in functions(module).values():
        read = loads(function)
        for each in within(function):
            if isinstance(each, cst.Assign) and isinstance(each.value, cst.Call) and _is_flat(each):
                found[id(each.value)] = [name if read[name] else "" for name in target_names(each)]
    return found


def _is_flat(assign: cst.Assign) -> bool:
    """Whether its target is a tuple of names: ``a, b = …``."""
    target = assign.targets[0].target
    plain = isinstance(target, cst.Tuple) and all(
        isinstance(each, cst.Element) and isinstance(each.value, cst.Name) for each in target.elements
    )
    return plain and len(assign.targets) == 1


class _Open(Quick):
    """Returns the single element instead of a tuple, in functions named in ``one`` and at their calls."""

    def __init__(self, one: set[str]) -> None:
        super().__init__()
        self._one, self._function = one, ""

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._function = node.name.value

    def leave_Return(self, original_node: cst.Return, updated_node: cst.Return) -> cst.Return:
        if self._function not in self._one:
            return updated_node
        return updated_node.with_changes(value=cst.ensure_type(updated_node.value, cst.Tuple).elements[0].value)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        return tuple_of([updated_node]) if dotted(updated_node.func) in self._one else updated_node


class _Kept(Quick):
    """Keeps only those results of each function whose indices ``kept`` lists."""

    def __init__(self, kept: dict[str, list[int]]) -> None:
        super().__init__()
        self._kept, self._function = kept, ""

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._function = node.name.value

    def leave_Return(self, original_node: cst.Return, updated_node: cst.Return) -> cst.Return:
        if self._function not in self._kept:
            return updated_node
        whole = cst.ensure_type(updated_node.value, cst.Tuple)
        return updated_node.with_changes(value=_chosen(whole, self._kept[self._function]))

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        name = dotted(updated_node.value.func) if isinstance(updated_node.value, cst.Call) else ""
        if name not in self._kept:
            return updated_node
        target = _chosen(cst.ensure_type(updated_node.targets[0].target, cst.Tuple), self._kept[name])
        return updated_node.with_changes(targets=[cst.AssignTarget(target)])  # type: ignore[arg-type]


def _chosen(whole: cst.Tuple, kept: Sequence[int]) -> cst.BaseExpression:
    values = [whole.elements[at].value for at in kept]
    if len(values) == 1:
        return values[0]
    return whole.with_changes(elements=[cst.Element(value) for value in values])
