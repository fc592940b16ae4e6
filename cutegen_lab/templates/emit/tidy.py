"""Restores blank lines and line breaks after folding."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

import libcst as cst

from cutegen_lab.templates.emit.names import Quick

_WIDE = 120
_AS_IT_IS = "# fmt: skip"  # for a formatter of the general text
_Lines = Sequence[cst.EmptyLine]


def tidy(module: cst.Module) -> cst.Module:
    """The module with two blank lines around functions, at most one inside them, and statements on one line if they
    fit."""
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
    return joined.with_changes(
        body=body,
        header=[line for line in joined.header if line.comment],
        footer=[line for line in joined.footer if line.comment],
    )


class _Joined(Quick):
    def __init__(self) -> None:
        super().__init__()
        self._depth = 0

    def visit_IndentedBlock(self, node: cst.IndentedBlock) -> None:
        self._depth += 1

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        header = updated_node.body.header if isinstance(updated_node.body, cst.IndentedBlock) else None
        if header is None or header.comment is None or header.comment.value != _AS_IT_IS:
            return updated_node
        return updated_node.with_changes(body=updated_node.body.with_changes(header=cst.TrailingWhitespace()))

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
        if (after := updated_node.trailing_whitespace.comment) is not None and after.value == _AS_IT_IS:
            updated_node = updated_node.with_changes(trailing_whitespace=cst.TrailingWhitespace())
        plain = updated_node.with_changes(leading_lines=())
        text = cst.Module([]).code_for_node(plain)
        lines, indent = text.rstrip("\n").split("\n"), 4 * self._depth
        long = max(len(line) + (indent if at == 0 else 0) for at, line in enumerate(lines)) > _WIDE
        comment = updated_node.trailing_whitespace.comment
        if long and len(lines) == 1 and comment is not None:
            above = [*updated_node.leading_lines, cst.EmptyLine(comment=comment)]
            return updated_node.with_changes(leading_lines=above, trailing_whitespace=cst.TrailingWhitespace())
        if (len(lines) == 1 and not long) or '"""' in text or "#" in text:
            return updated_node
        line = joined(text)
        if indent + len(line) > _WIDE:
            line = wrapped(line, _WIDE - indent)
            if not long and (line.count("\n") + 1 >= len(lines) or not _fits(line, _WIDE - indent)):
                return updated_node
        if not _same(text, line):
            return updated_node
        parsed = cst.ensure_type(cst.parse_statement(line), cst.SimpleStatementLine)
        return parsed.with_changes(leading_lines=updated_node.leading_lines)


def _fits(text: str, width: int) -> bool:
    return max(map(len, text.split("\n"))) <= width


def joined(text: str) -> str:
    """Lines of a statement as one line."""
    line = re.sub(r"\s*\n\s*", " ", text.strip())
    line = re.sub(r"([(\[{]) ", r"\1", line)
    line = re.sub(r"(?<!,),? ([)\]}])", r"\1", line)
    return line


def wrapped(line: str, width: int) -> str:
    """A long statement with the contents of its last brackets on separate lines; unchanged if it does not end in
    brackets."""
    open_at = list[int]()
    start = -1
    for at, character in enumerate(line):
        if character in "([{":
            open_at.append(at)
        elif character in ")]}" and open_at:
            start = open_at.pop()
    if open_at or not line.endswith((")", "]", "}")) or start < 0:
        return line
    rows = [""]
    for part in _parts(line[start + 1 : -1]):
        fits = len(rows[-1]) + len(part) + 4 <= width
        rows = [*rows[:-1], rows[-1] + part] if fits or not rows[-1] else [*rows, part]
    return "\n".join([line[: start + 1], *(f"    {row.strip()}" for row in rows), line[-1]])


def _parts(text: str) -> list[str]:
    """``text`` split after commas outside of brackets."""
    found, depth = [""], 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        found[-1] += character
        if character == "," and depth == 0:
            found.append("")
    return found


def _same(text: str, line: str) -> bool:
    try:
        return ast.dump(ast.parse(text)) == ast.dump(ast.parse(line))
    except SyntaxError:
        return False


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
