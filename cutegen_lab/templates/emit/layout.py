"""Line breaks of a shortened text: joins what fits in one line and breaks the rest at brackets."""

from __future__ import annotations

import ast
import io
import re
import tokenize

from cutegen_lab.core.syntax import parse

_WIDE = 120
_PAIRS = {")": "(", "]": "[", "}": "{"}


def laid_out(text: str) -> str:
    """``text`` with each statement, and each header of a compound statement, in one line if it fits. Statements with a
    comment or a multi-line string stay unchanged."""
    lines = text.split("\n")
    out, done = list[str](), 0
    for first, last in _statements(text):
        out += lines[done : first - 1]
        out += _laid_out(lines[first - 1 : last])
        done = last
    return "\n".join([*out, *lines[done:]])


def _statements(text: str) -> list[tuple[int, int]]:
    """(first line, last line) of each statement that may be laid out."""
    found = list[tuple[int, int]]()
    first = last = 0
    movable = True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NEWLINE:
            if first and movable:
                found.append((first, token.start[0]))
            first, movable = 0, True
        elif token.type == tokenize.COMMENT:
            last = token.start[0]
        elif token.type not in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER):
            movable = movable and token.start[0] == token.end[0] and not (first and first <= last < token.start[0])
            first = first or token.start[0]
    return found


def _laid_out(lines: list[str]) -> list[str]:
    indent = " " * (len(lines[0]) - len(lines[0].lstrip()))
    last, comment = _without_comment(lines[-1])
    text = "\n".join([*lines[:-1], last]) if len(lines) > 1 else last
    line = joined(text)
    above = list[str]()
    if comment and len(indent + line + comment) + 2 > _WIDE and (len(lines) == 1 or len(indent + line) <= _WIDE):
        above, comment = [indent + comment], ""
    rows = broken(line, _WIDE - len(indent))
    if comment:
        rows[-1] += f"  {comment}"
    return [*above, *(indent + row for row in rows)] if _same(text, "\n".join(rows)) else lines


def _without_comment(line: str) -> tuple[str, str]:
    at = _comment_at(line)
    return (line, "") if at is None else (line[:at].rstrip(), line[at:])


def _comment_at(line: str) -> int | None:
    return next((at for at, character in _code(line) if character == "#"), None)


def _code(text: str) -> list[tuple[int, str]]:
    """Characters of ``text`` outside of quotes, with their positions."""
    found, quote, escaped = list[tuple[int, str]](), "", False
    for at, character in enumerate(text):
        if quote:
            quote = "" if character == quote and not escaped else quote
            escaped = character == "\\" and not escaped
        elif character in "\"'":
            quote = character
        else:
            found.append((at, character))
    return found


def joined(text: str) -> str:
    """A statement's lines as one."""
    line = re.sub(r"\s*\n\s*", " ", text.strip())
    line = re.sub(r"([(\[{]) ", r"\1", line)
    line = re.sub(r" ([)\]}])", r"\1", line)
    for comma in reversed([found.start() for found in re.finditer(r",(?=[)\]}])", line)]):
        shorter = line[:comma] + line[comma + 1 :]
        line = shorter if _same(text, shorter) else line  # a one-element tuple needs its comma
    return line


def broken(line: str, width: int) -> list[str]:
    """``line`` in rows of at most ``width``, if possible: the contents of its last brackets move below it, in the
    fewest rows. Parameters, and parts that must be broken too, get one row each."""
    found = _last_brackets(line) if len(line) > width else None
    if found is None:
        return [line]
    start, end = found
    head, body, tail = line[: start + 1], line[start + 1 : end].strip(), line[end:]
    above = broken(head, width)  # in ``f(…)(…)`` both calls may be broken
    if len(body) + 4 <= width:
        return [*above, f"    {body}", tail]
    parts, clauses = _parts(body), _clauses(body)
    comprehension = any(clause.startswith("for ") for clause in clauses)
    parts = [f"{part}," for part in parts] if len(parts) > 1 and not comprehension else clauses
    if not line.startswith("def ") and parts is not clauses and all(len(part) + 4 <= width for part in parts):
        return [*above, *(f"    {row}" for row in _filled(parts, width - 4)), tail]
    return [*above, *(f"    {row}" for part in parts for row in broken(part, width - 4)), tail]


def _filled(parts: list[str], width: int) -> list[str]:
    """``parts`` in the fewest rows that fit ``width``."""
    rows = [parts[0]]
    for part in parts[1:]:
        fits = len(rows[-1]) + 1 + len(part) <= width
        rows = [*rows[:-1], f"{rows[-1]} {part}"] if fits else [*rows, part]
    return [*rows[:-1], rows[-1].removesuffix(",")]


def _last_brackets(line: str) -> tuple[int, int] | None:
    """Positions of the last outermost brackets that are not empty."""
    open_at, found = list[int](), None
    for at, character in _code(line):
        if character in "([{":
            open_at.append(at)
        elif character in ")]}" and open_at:
            start = open_at.pop()
            if not open_at and line[start + 1 : at].strip():
                found = (start, at)
    return found


def _parts(text: str) -> list[str]:
    """``text`` split at commas outside of brackets."""
    found, depth, start = list[str](), 0, 0
    for at, character in _code(text):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            found.append(text[start:at].strip())
            start = at + 1
    return [part for part in (*found, text[start:].strip()) if part]


def _clauses(text: str) -> list[str]:
    """A comprehension split before ``for`` and ``if``; an expression before ``if``, ``else``, ``and`` and ``or``."""
    depth, cuts = 0, [0]
    for at, character in _code(text):
        depth += (character in "([{") - (character in ")]}")
        if depth == 0 and re.match(r"(for|if|else|and|or) ", text[at:]) and text[at - 1 : at] == " ":
            cuts.append(at)
    return [text[a:b].strip() for a, b in zip(cuts, [*cuts[1:], len(text)], strict=True)]


def _same(text: str, line: str) -> bool:
    return _tree(text) is not None and _tree(text) == _tree(line)


def _tree(text: str) -> str | None:
    """Dump of the syntax tree of a statement or header; None if it does not parse."""
    text = text.strip()
    if text.startswith("@"):
        text = f"{text}\ndef f(): pass"
    elif re.match(r"(elif|else)\b", text):
        text = f"if 0: pass\n{text} pass"
    elif re.match(r"(if|for|while|with|def|class)\b", text):
        text = f"{text} pass"
    try:
        return ast.dump(parse(text))
    except SyntaxError:
        return None
