"""Blank lines and line breaks of a module from which much has gone."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

import libcst as cst

from cutegen_lab.templates.emit.names import Quick

_WIDE = 120
_Lines = Sequence[cst.EmptyLine]


def tidy(module: cst.Module) -> cst.Module:
    """Two blank lines around functions, one at most inside them, and statements in one line where they fit."""
    joined = module.visit(_Joined())
    assert isinstance(joined, cst.Module)
    body: list[cst.CSTNode] = []
    before: cst.CSTNode | None = None
    for at, statement in enumerate(joined.body):
        apart = _is_definition(statement) or (before is not None and _is_definition(before))
        lines = [line for line in statement.leading_lines if line.comment]
        blank = 0 if at == 0 else 2 if apart else 1 if _blanks(statement.leading_lines) else 0
        body.append(statement.with_changes(leading_lines=[cst.EmptyLine(indent=False)] * blank + lines))
        before = statement
    return joined.with_changes(body=body, header=[line for line in joined.header if line.comment], footer=[])


class _Joined(Quick):
    def __init__(self) -> None:
        super().__init__()
        self._depth = 0

    def visit_IndentedBlock(self, node: cst.IndentedBlock) -> None:
        self._depth += 1

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        self._depth -= 1
        body = []
        for at, statement in enumerate(updated_node.body):
            lines = _without_doubled(getattr(statement, "leading_lines", ()), at == 0)
            body.append(statement.with_changes(leading_lines=lines))
        return updated_node.with_changes(body=body)

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine:
        plain = updated_node.with_changes(leading_lines=())
        text = cst.Module([]).code_for_node(plain)
        if "\n" not in text.rstrip("\n") or '"""' in text or "#" in text.rstrip("\n").rpartition("\n")[0]:
            return updated_node
        line = joined(text)
        if 4 * self._depth + len(line) > _WIDE or not _same(text, line):
            return updated_node
        parsed = cst.ensure_type(cst.parse_statement(line), cst.SimpleStatementLine)
        return parsed.with_changes(leading_lines=updated_node.leading_lines)


def joined(text: str) -> str:
    """A statement's lines as one."""
    line = re.sub(r"\s*\n\s*", " ", text.strip())
    line = re.sub(r"([(\[{]) ", r"\1", line)
    line = re.sub(r"(?<!,),? ([)\]}])", r"\1", line)
    return line


def _same(text: str, line: str) -> bool:
    try:
        return ast.dump(ast.parse(text)) == ast.dump(ast.parse(line))
    except SyntaxError:
        return False


def _without_doubled(lines: _Lines, first: bool) -> list[cst.EmptyLine]:
    """One blank line at most, and none at the top of a block."""
    kept = list[cst.EmptyLine]()
    for line in lines:
        doubled = not kept[-1].comment if kept else first
        if line.comment or not doubled:
            kept.append(line)
    return kept


def _blanks(lines: _Lines) -> bool:
    return any(line.comment is None for line in lines)


def _is_definition(statement: cst.CSTNode) -> bool:
    return isinstance(statement, cst.FunctionDef | cst.ClassDef)
