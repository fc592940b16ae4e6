"""Replaces branches with known tests by the chosen branch, and loops of one iteration by their body."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property

import libcst as cst

from cutegen_lab.templates.emit.names import Quick, bindings, dotted, names_of, within

Statements = cst.FlattenSentinel[cst.BaseStatement] | cst.RemovalSentinel | cst.BaseStatement


class Branches(Quick):
    """Base class. Subclasses define what is known: :meth:`test` of an ``if`` or conditional expression, :meth:`trips`
    of a loop. Comments of a replaced statement move to the next one."""

    def __init__(self) -> None:
        super().__init__()
        self._elif = set[int]()
        self._carried: _Carried | None = None

    @abstractmethod
    def test(self, original: cst.If | cst.IfExp, updated: cst.If | cst.IfExp) -> bool | None:
        """Value of a test; None if unknown."""

    @abstractmethod
    def trips(self, original: cst.For, updated: cst.For) -> range | None:
        """Values of a loop's target; None if unknown."""

    def stays(self, loop: cst.For) -> bool:
        """Whether ``loop`` stays a loop on the GPU."""
        return isinstance(loop.iter, cst.Call) and dotted(loop.iter.func) == "cutlass.range"

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool | None:
        self._carried = self._carried or _Carried(node, self.stays)
        return None

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        if self._carried is not None and self._carried.function is original_node:
            self._carried = None
        return updated_node

    def visit_If(self, node: cst.If) -> None:
        if isinstance(node.orelse, cst.If):
            self._elif.add(id(node.orelse))

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> Statements | cst.Else:  # type: ignore[override]
        known = self.test(original_node, updated_node)
        if known is None:
            return _without_empty(updated_node) if id(original_node) not in self._elif else updated_node
        other = updated_node.orelse
        if id(original_node) in self._elif:
            if known:
                return cst.Else(updated_node.body, updated_node.leading_lines)
            return other or cst.RemoveFromParent()
        before = updated_node.leading_lines
        if known:
            return flattened(updated_node.body, [*before, *_comment(updated_node.body)])
        before = [line for line in before if line.comment is None]  # these comments describe the removed branch
        if isinstance(other, cst.Else):
            return flattened(other.body, [*before, *other.leading_lines, *_comment(other.body)])
        if other is not None:
            return other.with_changes(leading_lines=[*before, *other.leading_lines])
        return cst.RemoveFromParent()

    def leave_IfExp(self, original_node: cst.IfExp, updated_node: cst.IfExp) -> cst.BaseExpression:
        known = self.test(original_node, updated_node)
        if known is None:
            return updated_node
        chosen = updated_node.body if known else updated_node.orelse
        return parenthesised(chosen) if updated_node.lpar else chosen

    def leave_For(self, original_node: cst.For, updated_node: cst.For) -> Statements:
        values = self.trips(original_node, updated_node)
        names = names_of(updated_node.target)
        leaves = any(isinstance(each, cst.Break | cst.Continue) for each in within(updated_node.body))
        bound = bindings(updated_node.body)
        if _does_nothing(updated_node.body):
            return cst.RemoveFromParent()
        if values is None or len(values) > 1 or len(names) != 1 or leaves or updated_node.orelse or names[0] in bound:
            return updated_node
        before = [*updated_node.leading_lines, *_comment(updated_node.body)]
        if not values:
            return cst.RemoveFromParent()
        if self._carried is not None and self._carried.behind(original_node) & bound.keys():
            return updated_node
        body = updated_node.body.visit(Renamed({names[0]: cst.Integer(str(values[0]))}))
        assert isinstance(body, cst.BaseSuite)
        return flattened(body, before)

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        body = [*updated_node.body]
        ends = [at for at, statement in enumerate(body) if _returns(statement)]
        body = body[: ends[0] + 1] if ends else body
        return updated_node.with_changes(body=body or [cst.parse_statement("pass")])


class _Carried:
    """Names that a function's GPU loops bind. If such a name is also bound before the loop, the DSL makes it a
    loop-carried variable; unrolling a one-trip loop could cause that."""

    def __init__(self, function: cst.FunctionDef, stays: Callable[[cst.For], bool]) -> None:
        self.function, self._stays = function, stays

    @cached_property
    def _spans(self) -> dict[cst.For, tuple[int, int]]:
        """Start and end of each loop, as positions in the function."""
        found = dict[cst.For, tuple[int, int]]()
        for at, node in enumerate(within(self.function)):
            if isinstance(node, cst.For):
                found[node] = (at, at + sum(1 for _ in within(node)))
        return found

    def behind(self, loop: cst.For) -> set[str]:
        """Names bound by loops that start after ``loop`` ends."""
        end = self._spans[loop][1] if loop in self._spans else 0
        later = [each for each, (first, _) in self._spans.items() if first >= end and self._stays(each)]
        return {name for each in later for name in bindings(each)}


class Renamed(Quick):
    """Replaces reads of ``names`` with expressions."""

    def __init__(self, names: dict[str, cst.BaseExpression]) -> None:
        super().__init__()
        self._names = names

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)

    def leave_Param(self, original_node: cst.Param, updated_node: cst.Param) -> cst.Param:
        return updated_node.with_changes(name=original_node.name)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        found = self._names.get(updated_node.value)
        return updated_node if found is None else found.deep_clone()


def flattened(suite: cst.BaseSuite, before: Sequence[cst.EmptyLine]) -> Statements:
    """The suite's statements, to replace their parent; the first one gets the lines ``before``."""
    if isinstance(suite, cst.SimpleStatementSuite):
        body: list[cst.BaseStatement] = [cst.SimpleStatementLine(suite.body)]
    else:
        body = [*suite.body] if isinstance(suite, cst.IndentedBlock) else []
    if body and all(is_pass(statement) for statement in body):
        body = []
    if not body:
        return cst.RemoveFromParent()
    first = body[0]
    lines = [*before, *getattr(first, "leading_lines", ())]
    return cst.FlattenSentinel([first.with_changes(leading_lines=lines), *body[1:]])


def parenthesised(node: cst.BaseExpression) -> cst.BaseExpression:
    """``node``, in parentheses if it may need them."""
    plain = cst.Name | cst.Integer | cst.Float | cst.SimpleString | cst.Attribute | cst.Call | cst.Subscript | cst.Tuple
    if isinstance(node, plain | cst.List) or node.lpar:
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def is_pass(statement: cst.CSTNode) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and all(isinstance(s, cst.Pass) for s in statement.body)


def _without_empty(node: cst.If) -> cst.If | cst.RemovalSentinel:
    """``node`` without an ``else`` that does nothing; removed if both branches do nothing."""
    if isinstance(node.orelse, cst.Else) and _does_nothing(node.orelse.body):
        node = node.with_changes(orelse=None)
    return cst.RemoveFromParent() if _does_nothing(node.body) and node.orelse is None else node


def _does_nothing(suite: cst.BaseSuite) -> bool:
    return isinstance(suite, cst.IndentedBlock) and all(is_pass(statement) for statement in suite.body)


def _comment(suite: cst.BaseSuite) -> list[cst.EmptyLine]:
    """The comment after the colon, as a separate line."""
    header = suite.header if isinstance(suite, cst.IndentedBlock) else None
    return [cst.EmptyLine(comment=header.comment)] if header is not None and header.comment else []


def _returns(statement: cst.CSTNode) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[-1], cst.Return | cst.Raise)
