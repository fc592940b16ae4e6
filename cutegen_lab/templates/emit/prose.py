"""Updates docstrings and comments after folding has removed parameters and functions.

A removed name is replaced with its constant or number. Text about a name without such a value is removed: its
parentheses, the part between semicolons, or the sentence.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping

import libcst as cst

from cutegen_lab.templates.emit.names import Quick, bindings, functions, parameters

_WIDE = 120
_QUOTED = re.compile(r"``[^`]+``")
_WORD = re.compile(r"[A-Za-z_]\w*")
_IN_COMMENT = re.compile(r"\b[A-Za-z]\w*_\w+\b")  # a word with an underscore counts as a name
# A tuple is printed if it contains one of these: a constant, or a number above 1.
_TELLS = re.compile(r"[A-Z]{2}|[2-9]|\d\d")
_SAYS_NOTHING = {"True", "False", "None", "0", "1", ""}
Replaced = Mapping[str, str | None]
"""Removed names with the texts that replace them, or None."""


def with_updated_docs(module: cst.Module, before: cst.Module, replaced: Mapping[str, Replaced]) -> cst.Module:
    """``module``, folded from ``before``, with updated docstrings and comments. ``replaced``: removed parameters by
    function; for ``launch``, those of the config."""
    old, new = functions(before), functions(module)
    known, left = _module_names(before), _module_names(module)
    config = replaced.get("launch", {})
    body = []
    for statement in module.body:
        if isinstance(statement, cst.FunctionDef) and statement.name.value in old:
            name = statement.name.value
            gone = (known | set(bindings(old[name]))) - left - set(bindings(new[name]))
            statement = _Words({each: replaced.get(name, {}).get(each) for each in gone}).of(statement)
        body.append(statement)
    gone = (known | set(parameters(old["launch"]))) - left
    words = _Words({each: config.get(each) for each in gone})
    header = [words.comment_line(line) for line in module.header]
    first = body[0] if body else None
    if isinstance(first, cst.SimpleStatementLine) and (text := words.docstring(first, 0)) is not None:
        body[0] = text
    return module.with_changes(body=body, header=[line for line in header if line is not None])


def _module_names(module: cst.Module) -> set[str]:
    """Names of its functions and assigned variables."""
    lines = [s for s in module.body if isinstance(s, cst.SimpleStatementLine)]
    return set(functions(module)) | {name for line in lines for name in bindings(line)}


class _Words(Quick):
    """Updates docstrings and comments. ``gone``: removed names and the texts that replace them."""

    def __init__(self, gone: Replaced) -> None:
        super().__init__()
        self._gone = gone

    def of(self, function: cst.FunctionDef) -> cst.FunctionDef:
        """``function`` with updated docstring and comments; an empty docstring is removed."""
        changed = cst.ensure_type(function.visit(self), cst.FunctionDef)
        body = changed.body
        first = body.body[0] if isinstance(body, cst.IndentedBlock) else None
        if function.get_docstring() is None or not isinstance(first, cst.SimpleStatementLine):
            return changed
        line = self.docstring(first, 4)
        kept = [*([line] if line is not None else []), *body.body[1:]]
        return changed.with_changes(body=body.with_changes(body=kept or [first]))

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        return updated_node.with_changes(body=[self._commented(statement) for statement in updated_node.body])

    def _commented(self, statement: cst.CSTNode) -> cst.CSTNode:
        above = [self.comment_line(line) for line in getattr(statement, "leading_lines", ())]
        if above:
            statement = statement.with_changes(leading_lines=[line for line in above if line is not None])
        behind = statement.trailing_whitespace if isinstance(statement, cst.SimpleStatementLine) else None
        if behind is not None and behind.comment is not None and self._lost(behind.comment.value, _IN_COMMENT):
            return statement.with_changes(trailing_whitespace=cst.TrailingWhitespace())
        return statement

    def comment_line(self, line: cst.EmptyLine) -> cst.EmptyLine | None:
        return None if line.comment is not None and self._lost(line.comment.value, _IN_COMMENT) else line

    def docstring(self, line: cst.SimpleStatementLine, indent: int) -> cst.SimpleStatementLine | None:
        """The updated docstring line; None if nothing is left."""
        only = line.body[0]
        if not isinstance(only, cst.Expr) or not isinstance(only.value, cst.SimpleString):
            return line
        quote, text = only.value.quote, only.value.raw_value
        if len(quote) != 3 or not any(self._names(span) for span in _QUOTED.findall(text)):
            return line
        said = [self._paragraph(each, indent, at == 0) for at, each in enumerate(re.split(r"\n\s*\n", text))]
        true = "\n\n".join(each for each in said if each).lstrip()
        if not true:
            return None
        last = true.split("\n")[-1] if "\n" in true else " " * (indent + 3) + true
        closing = "\n" + " " * indent if text.rstrip(" ").endswith("\n") or len(last) + 3 > _WIDE else ""
        value = only.value.with_changes(value=f"{only.value.prefix}{quote}{true.rstrip()}{closing}{quote}")
        return line.with_changes(body=[only.with_changes(value=value)])

    def _paragraph(self, text: str, indent: int, first: bool) -> str:
        """``first``: the paragraph after the opening quotes."""
        if not any(self._names(span) for span in _QUOTED.findall(text)):
            return text.rstrip()
        one = " ".join(text.split())
        sentences = [self._sentence(each) for each in re.split(r"(?<=[.!?])\s+(?=[A-Z`(*])", one)]
        true = " ".join(each for each in sentences if each)
        lines = textwrap.wrap(true, _WIDE - indent, initial_indent="   " if first else "", break_long_words=False)
        return textwrap.indent("\n".join(lines).lstrip(), " " * indent)

    def _sentence(self, text: str) -> str:
        text = _QUOTED.sub(lambda span: self._written(span[0]), text)
        if not self._lost(text, _QUOTED):
            return text
        shorter = text
        for part in re.findall(r"\s*\([^()]*\)", text):
            shorter = shorter.replace(part, "") if self._lost_quotes(part) else shorter
        if not self._lost_quotes(shorter):
            return shorter
        kept = [clause for clause in re.split(r";\s*", shorter) if not self._lost_quotes(clause)]
        true = "; ".join(kept).strip().removesuffix(".")
        return f"{true[0].upper()}{true[1:]}." if true else ""

    def _written(self, span: str) -> str:
        """Quoted code with removed names replaced."""
        return _WORD.sub(lambda word: word[0] if self._is_lost(word[0]) else self._gone.get(word[0]) or word[0], span)

    def _names(self, span: str) -> set[str]:
        return {*_WORD.findall(span)} & self._gone.keys()

    def _is_lost(self, name: str) -> bool:
        text = self._gone.get(name) or ""
        nested = text.startswith(("'", '"', "((")) or (text.startswith("(") and not _TELLS.search(text))
        return name in self._gone and (text in _SAYS_NOTHING or text == name or nested)

    def _lost(self, text: str, spans: re.Pattern[str]) -> bool:
        """Whether ``text`` contains a removed name without a replacement."""
        return any(self._is_lost(name) for span in spans.findall(text) for name in _WORD.findall(span))

    def _lost_quotes(self, text: str) -> bool:
        return self._lost(text, _QUOTED)
