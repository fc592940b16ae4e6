"""Removes arithmetic without effect, decided tests, names of literals and unused names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import libcst as cst

from cutegen_lab.templates.emit.branches import Branches, Renamed, is_pass, parenthesised
from cutegen_lab.templates.emit.evaluate import UNKNOWN, Constants, evaluate, literal
from cutegen_lab.templates.emit.names import (
    bindings,
    dotted,
    is_range,
    loads,
    names_of,
    pairs,
    parameters,
    target_names,
    top_assignments,
    within,
)

# Calls that may be removed if their result is unused: they have no side effects.
_PURE = {
    "min", "max", "len", "sum", "any", "all", "tuple", "math.gcd", "math.prod", "cute.ceil_div", "cute.size",
    "cute.make_layout", "cute.make_identity_tensor", "cute.arch.thread_idx", "cute.arch.block_idx",
    "cute.arch.lane_idx", "cute.arch.warp_idx", "cutlass.min", "cutlass.max", "cutlass.const_expr", "Float32",
}  # fmt: skip
_MOST_ROUNDS = 8


class Simplify(Branches):
    """One pass over a module. ``constants``: those of the module. ``pure``: functions without side effects."""

    def __init__(self, constants: Constants, pure: set[str]) -> None:
        super().__init__()
        self._constants, self._pure = constants, _PURE | pure

    def test(self, original: cst.If | cst.IfExp, updated: cst.If | cst.IfExp) -> bool | None:
        value = evaluate(updated.test, self._constants)
        return None if value is UNKNOWN else bool(value)

    def trips(self, original: cst.For, updated: cst.For) -> range | None:
        if not is_range(updated.iter):
            return None
        assert isinstance(updated.iter, cst.Call)
        values = [evaluate(a.value, self._constants) for a in updated.iter.args if a.keyword is None]
        return range(*values) if values and all(isinstance(v, int) for v in values) else None

    def leave_Comparison(self, original_node: cst.Comparison, updated_node: cst.Comparison) -> cst.BaseExpression:
        return self._decided(updated_node)

    def leave_UnaryOperation(
        self, original_node: cst.UnaryOperation, updated_node: cst.UnaryOperation
    ) -> cst.BaseExpression:
        return self._decided(updated_node) if isinstance(updated_node.operator, cst.Not) else updated_node

    def leave_BooleanOperation(
        self, original_node: cst.BooleanOperation, updated_node: cst.BooleanOperation
    ) -> cst.BaseExpression:
        """``True and x`` becomes ``x`` in a test."""
        decided = self._decided(updated_node)
        if decided is not updated_node:
            return decided
        deciding = isinstance(updated_node.operator, cst.Or)
        left, right = (evaluate(side, self._constants) for side in (updated_node.left, updated_node.right))
        if isinstance(left, bool):
            return updated_node.right if left is not deciding else literal(left)
        if right is (not deciding):
            return updated_node.left
        return updated_node

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        name = dotted(updated_node.func)
        if name in ("min", "max", "cutlass.const_expr", "cute.ceil_div"):
            return self._decided(updated_node)
        if name.endswith(".launch") or (isinstance(updated_node.func, cst.Attribute) and _attribute(updated_node)):
            kept = [a for a in updated_node.args if not _is_no_cluster(a)]
            return updated_node if len(kept) == len(updated_node.args) else updated_node.with_changes(args=kept)
        return updated_node

    def leave_BinaryOperation(
        self, original_node: cst.BinaryOperation, updated_node: cst.BinaryOperation
    ) -> cst.BaseExpression:
        """Simplifies x * 1, x // 1, x + 0, x - 0, 0 * x, x % 1, x + 1 - 1, and arithmetic of literals."""
        value = evaluate(updated_node, {})
        if value is not UNKNOWN:
            return literal(value)
        left, right, does = updated_node.left, updated_node.right, type(updated_node.operator)
        a, b = (evaluate(side, {}) for side in (left, right))
        if does is cst.Multiply and 0 in (a, b) and UNKNOWN in (a, b) and _is_int(a, b):
            return literal(0)
        if does is cst.Modulo and _one(b):
            return literal(0)
        kept = None
        if (does in (cst.Multiply, cst.FloorDivide) and _one(b)) or (does in (cst.Add, cst.Subtract) and _zero(b)):
            kept = left
        elif (does is cst.Multiply and _one(a)) or (does is cst.Add and _zero(a)):
            kept = right
        elif does is cst.Subtract and isinstance(left, cst.BinaryOperation) and isinstance(left.operator, cst.Add):
            added = evaluate(left.right, {})
            kept = left.left if type(added) is int and added == b and not left.lpar else None
        if kept is None:
            return updated_node
        if updated_node.lpar and not kept.lpar:
            return parenthesised(kept)
        return kept

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        found = updated_node
        for _ in range(_MOST_ROUNDS):
            before = found
            found = _with_read_names_only(_with_literals_in_place(found, self._constants), self._pure)
            if found is before:
                break
        return found

    def _decided(self, node: cst.BaseExpression) -> cst.BaseExpression:
        value = evaluate(node, self._constants)
        return node if value is UNKNOWN else literal(value)


def _one(value: Any) -> bool:
    return type(value) is int and value == 1


def _zero(value: Any) -> bool:
    return type(value) is int and value == 0


def _is_int(*values: Any) -> bool:
    return any(_zero(value) for value in values)


def _attribute(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.attr.value == "launch"


def _is_no_cluster(argument: cst.Arg) -> bool:
    """``cluster=None``, the default of a launch."""
    named = argument.keyword is not None and argument.keyword.value == "cluster"
    return named and isinstance(argument.value, cst.Name) and argument.value.value == "None"


def _with_literals_in_place(function: cst.FunctionDef, constants: Constants) -> cst.FunctionDef:
    """Inlines names that the function binds once, outside of branches and loops, to 0, 1, a boolean, None, a constant
    of the module, or a number that is read at most twice; and names that always equal another name."""
    bound, read = bindings(function), loads(function)
    found: dict[str, cst.BaseExpression] = {}
    for assign in top_assignments(function):
        for name, value in pairs(assign):
            constant = isinstance(value, cst.Name) and value.value in constants
            if bound[name] == 1 and (constant or _is_short(value) or (_is_number(value) and read[name] <= 2)):
                found[name] = value
    found = found or _copies(function, bound)
    if not found:
        return function
    body = function.body.visit(_Replaced(found))
    assert isinstance(body, cst.BaseSuite)
    return function.with_changes(body=body)


def _is_number(value: cst.BaseExpression) -> bool:
    return type(evaluate(value, {})) is int


def _copies(function: cst.FunctionDef, bound: Mapping[str, int]) -> dict[str, cst.BaseExpression]:
    """Names that are only assigned one other name, which is bound once, as a parameter or outside of branches."""
    steady = {name for assign in top_assignments(function) for name in target_names(assign)} | {*parameters(function)}
    assigned: dict[str, list[cst.BaseExpression]] = {}
    for node in within(function.body):
        if isinstance(node, cst.Assign):
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


class _Replaced(Renamed):
    """Replaces reads only. The assignment stays, and is removed later as unused."""

    def leave_AssignTarget(self, original_node: cst.AssignTarget, updated_node: cst.AssignTarget) -> cst.AssignTarget:
        return original_node if names_of(original_node.target) else updated_node

    def leave_For(self, original_node: cst.For, updated_node: cst.For) -> cst.For:
        return updated_node.with_changes(target=original_node.target)

    def leave_CompFor(self, original_node: cst.CompFor, updated_node: cst.CompFor) -> cst.CompFor:
        return updated_node.with_changes(target=original_node.target)


def _with_read_names_only(function: cst.FunctionDef, pure: set[str]) -> cst.FunctionDef:
    dropping = _Unread(loads(function), pure)
    changed = function.body.visit(dropping)
    assert isinstance(changed, cst.BaseSuite)
    return function.with_changes(body=changed) if dropping.dropped else function


class _Unread(Branches):
    """Removes assignments to unused names if the value has no side effects."""

    def __init__(self, read: Mapping[str, int], pure: set[str]) -> None:
        super().__init__()
        self._read, self._pure = read, pure
        self.dropped = 0

    def test(self, original: cst.If | cst.IfExp, updated: cst.If | cst.IfExp) -> bool | None:
        return None

    def trips(self, original: cst.For, updated: cst.For) -> range | None:
        return None

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return False

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign | cst.Pass:
        names = names_of(updated_node.targets[0].target) if len(updated_node.targets) == 1 else []
        if not names:
            return updated_node
        found = pairs(updated_node)
        kept = [(name, value) for name, value in found if self._read.get(name) or not self._is_pure(value)]
        if found and not kept:
            self.dropped += 1
            return cst.Pass()
        if found and len(kept) < len(found):
            self.dropped += 1
            left, right = (", ".join(_code(part) for part in parts) for parts in zip(*kept, strict=True))
            return cst.ensure_type(cst.parse_statement(f"{left} = {right}"), cst.SimpleStatementLine).body[0]  # type: ignore[return-value]
        if not found and not any(self._read.get(name) for name in names) and self._is_pure(updated_node.value):
            self.dropped += 1
            return cst.Pass()
        return updated_node

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        """Moves the blank line above a removed statement to the next one."""
        body, blank = list[cst.BaseStatement](), False
        for statement in updated_node.body:
            above = getattr(statement, "leading_lines", ())
            if is_pass(statement):
                blank = blank or any(line.comment is None for line in above)
                continue
            if blank and not above:
                statement = statement.with_changes(leading_lines=[cst.EmptyLine(indent=False)])
            body.append(statement)
            blank = False
        return updated_node.with_changes(body=body or [cst.parse_statement("pass")])

    def _is_pure(self, value: cst.BaseExpression) -> bool:
        calls = [each for each in within(value) if isinstance(each, cst.Call)]
        return all(dotted(call.func) in self._pure for call in calls)


def _code(part: str | cst.CSTNode) -> str:
    return part if isinstance(part, str) else cst.Module([]).code_for_node(part)
