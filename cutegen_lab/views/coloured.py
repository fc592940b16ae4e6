"""Python text in colours: lines of HTML with a class for each kind of word."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import groupby

from markupsafe import Markup, escape
from pygments.lexers.python import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String, _TokenType

_CLASSES = (  # kinds of token, the narrower ones first, and their class in style.css
    (Comment, "c"), (String, "s"), (Number, "n"), (Keyword, "k"), (Operator.Word, "k"), (Name.Decorator, "d"),
    (Name.Function, "f"), (Name.Class, "f"), (Name.Builtin, "b"),
)  # fmt: skip
_MOST = 200_000
"""Maximum number of characters of a text that is coloured."""


def coloured_lines(text: str) -> list[Markup]:
    """``text.splitlines()`` as HTML, escaped. A text that is not Python, or is very long, has few colours or none."""
    if len(text) > _MOST:
        return [escape(line) for line in text.splitlines()]
    lines: list[Markup] = []
    for line in _lines(text.replace("\r\n", "\n")):
        words = groupby(line, key=lambda piece: piece[0])
        lines.append(Markup("").join(_word(kind, "".join(part for _, part in pieces)) for kind, pieces in words))
    return lines


def _lines(text: str) -> Iterator[list[tuple[str, str]]]:
    """Each line as pieces with their classes."""
    line: list[tuple[str, str]] = []
    for _, token, words in PythonLexer().get_tokens_unprocessed(text):
        for part in words.splitlines(keepends=True):
            bare = part.splitlines()[0]
            line.append((_class(token) if bare.strip() else "", bare))
            if bare != part:
                yield line
                line = []
    if line:
        yield line


def _word(kind: str, words: str) -> Markup:
    return Markup('<span class="{}">{}</span>').format(kind, words) if kind and words.strip() else escape(words)


@cache
def _class(token: _TokenType) -> str:
    return next((kind for of, kind in _CLASSES if token in of), "")
