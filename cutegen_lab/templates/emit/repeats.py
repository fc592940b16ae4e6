"""Removes statements that single-iteration loops leave behind: repeated computations, and names for values that are
returned immediately."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import libcst as cst

from cutegen_lab.templates.emit.branches import Renamed
from cutegen_lab.templates.emit.displays import is_steady
from cutegen_lab.templates.emit.evaluate import UNKNOWN, evaluate
from cutegen_lab.templates.emit.expand import is_made
from cutegen_lab.templates.emit.names import (
    Quick,
    bindings,
    dotted,
    loads,
    names_of,
    only_part,
    pairs,
    parameters,
    parts,
    within,
)
from cutegen_lab.templates.emit.unread import assignment_of

_METHODS = {"load", "to"}  # methods of a tensor or vector without side effects
_FUNCTIONS = ("cute.math.", "Float32")


class Repeats(Quick):
    """Removes ``x = …`` if ``x`` already has that value, and turns ``x = …; return x`` into ``return …``."""

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        body = _without_dead(_without_overwritten(_without_repeats(list(updated_node.body))))
        return updated_node.with_changes(body=_returned(body))


def _without_repeats(body: list[cst.BaseStatement]) -> list[cst.BaseStatement]:
    kept = list[cst.BaseStatement]()
    blank = False  # whether a blank line preceded a removed statement
    for statement in body:
        assign, above = _only_assign(statement), getattr(statement, "leading_lines", ())
        if assign is not None and _is_known(assign, kept):
            blank = blank or any(line.comment is None for line in above)
            continue
        if blank and not above:
            statement = statement.with_changes(leading_lines=[cst.EmptyLine(indent=False)])
        kept.append(statement)
        blank = False
    return kept


def _without_overwritten(body: list[cst.BaseStatement]) -> list[cst.BaseStatement]:
    """``body`` without ``x = 0`` if the next statement assigns ``x`` again. That statement gets the comment, and 0 in
    place of ``x``."""
    kept = list[cst.BaseStatement]()
    for statement in body:
        before, now = (_only_assign(kept[-1]) if kept else None), _only_assign(statement)
        if before is not None and now is not None and _overwrites(before, now):
            first = cst.ensure_type(kept.pop(), cst.SimpleStatementLine)
            line = cst.ensure_type(statement, cst.SimpleStatementLine)
            behind = line.trailing_whitespace if line.trailing_whitespace.comment else first.trailing_whitespace
            above = [*first.leading_lines, *line.leading_lines]
            value = now.value.visit(Renamed(dict(pairs(before))))
            body_now = [now.with_changes(value=value)]
            statement = line.with_changes(body=body_now, leading_lines=above, trailing_whitespace=behind)
        kept.append(statement)
    return kept


def _without_dead(body: list[cst.BaseStatement]) -> list[cst.BaseStatement]:
    """``body`` without ``x = None`` if the block assigns ``x`` again before it is read."""
    kept = list[cst.BaseStatement]()
    for at, statement in enumerate(body):
        assign = _only_assign(statement)
        found = parts(assign.targets[0].target, assign.value) if assign is not None else []
        live = [part for part in found if not _is_dead(*part, body[at + 1 :])]
        if len(live) == len(found):
            kept.append(statement)
        elif live:
            kept.append(cst.ensure_type(statement, cst.SimpleStatementLine).with_changes(body=[assignment_of(live)]))
    return kept


def _is_dead(target: cst.CSTNode, value: cst.BaseExpression, behind: Sequence[cst.BaseStatement]) -> bool:
    if not isinstance(target, cst.Name) or evaluate(value, {}) is UNKNOWN:
        return False
    for statement in behind:
        assign = _only_assign(statement)
        if loads(statement)[target.value]:
            return False
        if bindings(statement)[target.value]:
            return assign is not None and target.value in names_of(assign.targets[0].target)
    return False


def _overwrites(before: cst.Assign, now: cst.Assign) -> bool:
    """Whether ``now`` assigns the name that ``before`` assigns, so that the value of ``before`` is not needed."""
    first, second = before.targets[0].target, now.targets[0].target
    if not isinstance(first, cst.Name) or first.value not in names_of(second):
        return False
    unread = not loads(now.value)[first.value]
    return evaluate(before.value, {}) is not UNKNOWN or (unread and is_steady(before.value))


def _is_known(assign: cst.Assign, before: Sequence[cst.BaseStatement]) -> bool:
    target = assign.targets[0].target
    return isinstance(target, cst.Name) and _known_as(assign, before, {target.value}) == target.value


def _known_as(assign: cst.Assign, before: Sequence[cst.BaseStatement], names: Collection[str]) -> str | None:
    """The name among ``names`` that already has the assigned value, if the value's operands have not changed since."""
    loaded = _loaded(assign.value) if isinstance(assign.targets[0].target, cst.Name) else None
    if loaded is None:
        return None
    read, bound = set(loads(assign.value)), set[str]()
    for statement in reversed(before):
        earlier = _only_assign(statement)
        found = pairs(earlier) if earlier is not None else []
        if len(found) == 1 and found[0][1].deep_equals(assign.value) and found[0][0] in {*names} - bound:
            return found[0][0]
        bound |= bindings(statement).keys()
        if read & bound or any(_may_write(statement, each) for each in loaded):
            return None
    return None


def computed_once(module: cst.Module) -> cst.Module:
    """Removes second names for a value that a function already has, if both names are bound once."""
    body = [_computed_once(each) if isinstance(each, cst.FunctionDef) else each for each in module.body]
    return module.with_changes(body=body)


def _computed_once(function: cst.FunctionDef) -> cst.FunctionDef:
    while (found := _second_name(function)) is not None:
        renamed = function.visit(Renamed({found[0]: cst.Name(found[1])}))
        function = cst.ensure_type(cst.ensure_type(renamed, cst.FunctionDef).visit(Repeats()), cst.FunctionDef)
    return function


def _second_name(function: cst.FunctionDef) -> tuple[str, str] | None:
    """(name, earlier name with the same value), if folding made one of them, or None."""
    bound = bindings(function)
    once = {name for name, times in bound.items() if times == 1} - set(parameters(function))
    for block in within(function):
        if not isinstance(block, cst.IndentedBlock):
            continue
        for at, statement in enumerate(block.body):
            assign = _only_assign(statement)
            target = assign.targets[0].target if assign is not None else None
            if assign is None or not isinstance(target, cst.Name) or target.value not in once:
                continue
            first = _known_as(assign, block.body[:at], once)
            if first is not None and first != target.value and (is_made(first) or is_made(target.value)):
                return target.value, first
    return None


def _loaded(value: cst.BaseExpression) -> set[str] | None:
    """Tensors that the expression loads; None if it does more than load and compute."""
    found = set[str]()
    calls = [each for each in within(value) if isinstance(each, cst.Call)]
    subscripts = any(isinstance(each, cst.Subscript) for each in within(value))  # a subscript may load
    if subscripts or not (calls or isinstance(value, cst.BinaryOperation)):
        return None
    for call in calls:
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in _METHODS:
            if call.func.attr.value == "load":
                if not isinstance(call.func.value, cst.Name):
                    return None
                found.add(call.func.value.value)
        elif not dotted(call.func).startswith(_FUNCTIONS):
            return None
    return found


def _may_write(statement: cst.CSTNode, tensor: str) -> bool:
    """Whether the tensor occurs other than as ``tensor.load``, ``.element_type`` or ``.shape``."""
    reads = sum(
        isinstance(each, cst.Attribute)
        and dotted(each.value) == tensor
        and each.attr.value in ("load", "element_type", "shape")
        for each in within(statement)
    )
    return loads(statement)[tensor] > reads


def _returned(body: list[cst.BaseStatement]) -> list[cst.BaseStatement]:
    """``return x`` merged with the assignment of ``x`` before it."""
    if len(body) < 2:
        return body
    assign, last = _only_assign(body[-2]), body[-1]
    if assign is None or not isinstance(last, cst.SimpleStatementLine) or len(last.body) > 1:
        return body
    returned, target = last.body[0], assign.targets[0].target
    if not isinstance(returned, cst.Return) or not isinstance(target, cst.Name):
        return body
    if not isinstance(returned.value, cst.Name) or returned.value.value != target.value:
        return body
    line = body[-2].with_changes(body=[returned.with_changes(value=assign.value)])
    return [*body[:-2], line]


def _only_assign(statement: cst.CSTNode) -> cst.Assign | None:
    only = only_part(statement)
    return only if isinstance(only, cst.Assign) and len(only.targets) == 1 else None
