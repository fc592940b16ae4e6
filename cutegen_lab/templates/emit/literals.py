"""Replaces names that only stand for a literal, a constant of the module or another name."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from cutegen_lab.templates.emit.branches import Renamed
from cutegen_lab.templates.emit.evaluate import UNKNOWN, Constants, evaluate, literal
from cutegen_lab.templates.emit.names import (
    Quick,
    assignments,
    bindings,
    dotted,
    loads,
    names_of,
    pairs,
    parameters,
    target_names,
    top_assignments,
)

_COUNTING = {"len", "min", "max", "sum", "math.prod"}


def with_literals_in_place(function: cst.FunctionDef, constants: Constants) -> cst.FunctionDef:
    """Replaces names that are bound once: to 0, 1, a boolean, None, a constant of the module, or a number read at most
    twice. Also elements of tuples of these, and names that are copies of one other name, which is bound once. Returns
    ``function`` itself if there are none."""
    bound, read = bindings(function), loads(function)
    found: dict[str, cst.BaseExpression] = {}
    tuples: dict[str, cst.Tuple] = {}
    for assign in assignments(function):
        for name, value in pairs(assign):
            constant = isinstance(value, cst.Name) and value.value in constants
            short = constant or _is_short(value) or (_is_number(value) and read[name] <= 2)
            if bound[name] == 1 and (short or (_is_empty_list(value) and read[name] == 1)):
                found[name] = value
            elif bound[name] == 1 and isinstance(value, cst.Tuple) and evaluate(value, constants) is not UNKNOWN:
                tuples[name] = value
    found = found or _copies(function, bound)
    changed = _with_tuples_in_place(function, tuples, constants)
    if not found:
        return changed
    body = changed.body.visit(ReadsReplaced(found))
    assert isinstance(body, cst.BaseSuite)
    return changed.with_changes(body=body)


def _with_tuples_in_place(
    function: cst.FunctionDef, tuples: Mapping[str, cst.Tuple], constants: Constants
) -> cst.FunctionDef:
    if not tuples:
        return function
    placing = _Tuples(tuples, constants)
    changed = function.visit(placing)
    assert isinstance(changed, cst.FunctionDef)
    return changed if placing.placed else function


class _Tuples(Quick):
    """Replaces expressions that index, unpack or count a known tuple."""

    def __init__(self, tuples: Mapping[str, cst.Tuple], constants: Constants) -> None:
        super().__init__()
        self._tuples, self.placed = tuples, 0
        self._known = {**constants, **{name: evaluate(value, constants) for name, value in tuples.items()}}

    def leave_Comparison(self, original_node: cst.Comparison, updated_node: cst.Comparison) -> cst.BaseExpression:
        return self._decided(updated_node)

    def leave_ListComp(self, original_node: cst.ListComp, updated_node: cst.ListComp) -> cst.BaseExpression:
        return self._decided(updated_node)

    def _decided(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """The value of an expression that reads a tuple, if known."""
        read = loads(node)
        value = evaluate(node, self._known) if any(read[name] for name in self._tuples) else UNKNOWN
        if value is UNKNOWN or not (isinstance(value, int | bool) or value == ()):
            return node
        self.placed += 1
        return literal(value)

    def leave_Subscript(self, original_node: cst.Subscript, updated_node: cst.Subscript) -> cst.BaseExpression:
        whole = self._of(updated_node.value)
        index = updated_node.slice[0].slice
        at = evaluate(index.value, {}) if isinstance(index, cst.Index) else UNKNOWN
        if whole is None or type(at) is not int or not 0 <= at < len(whole.elements):
            return updated_node
        self.placed += 1
        return whole.elements[at].value.deep_clone()

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        if len(updated_node.targets) != 1:
            return updated_node
        value = self._unpacked(updated_node.targets[0].target, updated_node.value)
        if value is not updated_node.value and isinstance(value, cst.Tuple) and len(value.elements) > 1:
            value = value.with_changes(lpar=(), rpar=())
        return updated_node.with_changes(value=value)

    def _unpacked(self, target: cst.CSTNode, value: cst.BaseExpression) -> cst.BaseExpression:
        """``value`` with tuples in place of names where ``target`` is a tuple."""
        if not isinstance(target, cst.Tuple):
            return value
        whole = self._of(value)
        if whole is not None and len(whole.elements) == len(target.elements):
            self.placed += 1
            return whole.deep_clone()
        if not isinstance(value, cst.Tuple) or len(value.elements) != len(target.elements):
            return value
        both = zip(target.elements, value.elements, strict=True)
        return value.with_changes(
            elements=[each.with_changes(value=self._unpacked(one.value, each.value)) for one, each in both]
        )

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        counted = dotted(updated_node.func) in _COUNTING
        decided = self._decided(updated_node) if counted else updated_node
        if decided is not updated_node:
            return decided
        args = list[cst.Arg]()
        for argument in updated_node.args:
            whole = self._of(argument.value)
            if whole is not None and argument.star == "*":
                self.placed += 1
                args += [cst.Arg(element.value.deep_clone()) for element in whole.elements]
            elif whole is not None and counted and not argument.star:
                self.placed += 1
                args.append(argument.with_changes(value=whole.deep_clone()))
            else:
                args.append(argument)
        return updated_node.with_changes(args=args)

    def _of(self, node: cst.CSTNode) -> cst.Tuple | None:
        return self._tuples.get(node.value) if isinstance(node, cst.Name) else None


def _is_empty_list(value: cst.BaseExpression) -> bool:
    return isinstance(value, cst.List) and not value.elements


def _is_number(value: cst.BaseExpression) -> bool:
    return type(evaluate(value, {})) is int


def _copies(function: cst.FunctionDef, bound: Mapping[str, int]) -> dict[str, cst.BaseExpression]:
    """Names whose only value is another name, which is bound once: a parameter, or bound outside of branches."""
    steady = {name for assign in top_assignments(function) for name in target_names(assign)} | {*parameters(function)}
    assigned: dict[str, list[cst.BaseExpression]] = {}
    for node in assignments(function):
        for name, value in pairs(node):
            assigned.setdefault(name, []).append(value)
    found: dict[str, cst.BaseExpression] = {}
    for name, values in assigned.items():
        (other, *more) = {value.value if isinstance(value, cst.Name) else "" for value in values}
        same = not more and len(values) == bound[name] and other != name
        if same and bound[other] == 1 and other in steady and other not in found:
            found[name] = values[0]
    return found


def _is_short(value: cst.BaseExpression) -> bool:
    found = evaluate(value, {})
    return found is None or isinstance(found, bool) or (type(found) is int and found in (0, 1))


class ReadsReplaced(Renamed):
    """Replaces reads only. The assignments stay until unread names are removed."""

    def leave_AssignTarget(self, original_node: cst.AssignTarget, updated_node: cst.AssignTarget) -> cst.AssignTarget:
        return original_node if names_of(original_node.target) else updated_node

    def leave_AugAssign(self, original_node: cst.AugAssign, updated_node: cst.AugAssign) -> cst.AugAssign:
        return updated_node.with_changes(target=original_node.target)

    def leave_For(self, original_node: cst.For, updated_node: cst.For) -> cst.For:
        return updated_node.with_changes(target=original_node.target)

    def leave_CompFor(self, original_node: cst.CompFor, updated_node: cst.CompFor) -> cst.CompFor:
        return updated_node.with_changes(target=original_node.target)
