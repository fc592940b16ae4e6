"""Removes assignments to unread names, and calls without side effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import libcst as cst

from cutegen_lab.templates.emit.branches import Branches, is_pass
from cutegen_lab.templates.emit.names import dotted, loads, names_of, parts, within


def with_read_names_only(function: cst.FunctionDef, pure: set[str]) -> cst.FunctionDef:
    """``function`` without assignments to unread names and without calls in ``pure``; ``function`` itself if nothing
    can be removed. ``pure``: functions whose calls can be removed."""
    dropping = _Unread(loads(function), pure)
    changed = function.body.visit(dropping)
    assert isinstance(changed, cst.BaseSuite)
    return function.with_changes(body=changed) if dropping.dropped else function


class _Unread(Branches):
    """Removes calls of ``pure`` functions, and assignments of their results to unread names."""

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
        if len(updated_node.targets) != 1:
            return updated_node
        found = parts(updated_node.targets[0].target, updated_node.value)
        kept = [(target, value) for target, value in found if not self._is_dead(target, value)]
        self.dropped += len(kept) < len(found)
        if not kept:
            return cst.Pass()
        if len(kept) == len(found):
            return updated_node
        return assignment_of(kept)

    def leave_Expr(self, original_node: cst.Expr, updated_node: cst.Expr) -> cst.Expr | cst.Pass:
        if not isinstance(updated_node.value, cst.Call) or not self._is_pure(updated_node.value):
            return updated_node
        self.dropped += 1
        return cst.Pass()

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        """The blank line above a removed statement moves to the next one."""
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

    def _is_dead(self, target: cst.CSTNode, value: cst.BaseExpression) -> bool:
        """Whether the assignment is ``x = x``, or assigns a value without side effects to unread names."""
        names = names_of(target)
        if names and isinstance(value, cst.Name) and names == [value.value]:
            return isinstance(target, cst.Name)
        return bool(names) and not any(self._read.get(name) for name in names) and self._is_pure(value)

    def _is_pure(self, value: cst.BaseExpression) -> bool:
        calls = [each for each in within(value) if isinstance(each, cst.Call)]
        return all(dotted(call.func) in self._pure for call in calls)


def assignment_of(kept: Sequence[tuple[cst.CSTNode, cst.BaseExpression]]) -> cst.Assign:
    """``a, b = x, y`` from its (target, value) pairs."""
    bare = len(kept) == 1 and isinstance(kept[0][0], cst.Tuple)
    left, right = (", ".join(_code(part, bare) for part in side) for side in zip(*kept, strict=True))
    return cst.ensure_type(
        cst.ensure_type(cst.parse_statement(f"{left} = {right}"), cst.SimpleStatementLine).body[0], cst.Assign
    )


def _code(part: cst.CSTNode, bare: bool) -> str:
    """``part``, without its parentheses if ``bare``."""
    if bare and isinstance(part, cst.Tuple) and len(part.elements) > 1:
        part = part.with_changes(lpar=(), rpar=())
    return cst.Module([]).code_for_node(part)
