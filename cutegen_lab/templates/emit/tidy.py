"""Cleans up blank lines, parentheses and line breaks after folding."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from cutegen_lab.templates.emit.layout import laid_out
from cutegen_lab.templates.emit.names import Quick

_PARENTHESISED = (cst.Tuple, cst.GeneratorExp, cst.NamedExpr, cst.Yield, cst.ConcatenatedString)
_TIGHT = (cst.Comparison, cst.Name, cst.Attribute, cst.Subscript, cst.Call, cst.Integer)
_Lines = Sequence[cst.EmptyLine]


def tidy(module: cst.Module) -> str:
    """Text of ``module``: two blank lines around functions, at most one inside them, and statements in one line if they
    fit."""
    plain = module.visit(_Plain())
    assert isinstance(plain, cst.Module)
    body: list[cst.CSTNode] = []
    before: cst.CSTNode | None = None
    for at, statement in enumerate(plain.body):
        apart = _is_definition(statement) or (before is not None and _is_definition(before))
        lines = [line for line in statement.leading_lines if line.comment]
        blank = 0 if at == 0 else 2 if apart else 1 if _blanks(statement.leading_lines) else 0
        body.append(statement.with_changes(leading_lines=[cst.EmptyLine(indent=False)] * blank + lines))
        before = statement
    header, footer = ([line for line in lines if line.comment] for lines in (plain.header, plain.footer))
    return laid_out(plain.with_changes(body=body, header=header, footer=footer).code)


class _Plain(Quick):
    """Removes repeated blank lines and redundant parentheses."""

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        body = []
        for at, statement in enumerate(updated_node.body):
            lines = _without_doubled(getattr(statement, "leading_lines", ()), at == 0)
            body.append(statement.with_changes(leading_lines=lines))
        return updated_node.with_changes(body=body)

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        return updated_node.with_changes(value=_bare(updated_node.value))

    def leave_Return(self, original_node: cst.Return, updated_node: cst.Return) -> cst.Return:
        return (
            updated_node if updated_node.value is None else updated_node.with_changes(value=_bare(updated_node.value))
        )

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(value=_bare(updated_node.value))

    def leave_BooleanOperation(
        self, original_node: cst.BooleanOperation, updated_node: cst.BooleanOperation
    ) -> cst.BooleanOperation:
        sides = {name: getattr(updated_node, name) for name in ("left", "right")}
        return updated_node.with_changes(
            **{name: _bare(side) if isinstance(side, _TIGHT) else side for name, side in sides.items()}
        )


def _bare(node: cst.BaseExpression) -> cst.BaseExpression:
    """``node`` without redundant parentheses around it, if it is in one line."""
    if not node.lpar or isinstance(node, _PARENTHESISED):
        return node
    bare = node.with_changes(lpar=(), rpar=())
    return bare if "\n" not in cst.Module([]).code_for_node(bare) else node


def _without_doubled(lines: _Lines, first: bool) -> list[cst.EmptyLine]:
    """At most one blank line in a row, and none at the top of a block."""
    kept = list[cst.EmptyLine]()
    for line in lines:
        doubled = not kept[-1].comment if kept else first
        if line.comment or not doubled:
            kept.append(line if line.comment else cst.EmptyLine(indent=False))
    return kept


def _blanks(lines: _Lines) -> bool:
    return any(line.comment is None for line in lines)


def _is_definition(statement: cst.CSTNode) -> bool:
    return isinstance(statement, cst.FunctionDef | cst.ClassDef)
