"""The language's grammar as servers take it to decode under: llguidance's variant of Lark, or GBNF.

Both are derived from ``grammar.lark``. Where the parser ignores spaces, spaces and comments get places of their own;
left recursion becomes repetition, and alternatives that begin alike share their beginning. What is derived accepts
every spec in ASCII, but for sizes with spaces (``128 x 64``), and also names that are keywords. What a spec means is
checked once it is written.

Sources: llguidance's ``docs/syntax.md``; llama.cpp's ``grammars/README.md``, which xgrammar, vLLM and SGLang follow.
"""

from __future__ import annotations

import itertools
import json
import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from lark import Lark

from cutegen_lab.cutespec.parse import GRAMMAR

Syntax = Literal["lark", "gbnf"]
_BLANK, _COMMENT = "BLANK", "COMMENT"
_LINE_ENDS = (r"\r", r"\n", "\r", "\n")
_CLASSES = {r"\d": "0-9", r"\w": "A-Za-z0-9_"}
_ATOM = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\(\?:|.", re.DOTALL)  # one part of a regular expression
_WORD = string.ascii_letters + string.digits + "_"
_MARKS = ("(?:", "(", ")", "|", "*", "+", "?")


@dataclass(frozen=True)
class _Repeated:
    """Any number of one of ``alternatives``, also none."""

    alternatives: tuple[tuple[str | _Repeated, ...], ...]


_Sequence = tuple[str | _Repeated, ...]
"""Names of rules and terminals, in order; ``?`` after a name makes it optional."""
_Rules = dict[str, list[_Sequence]]
_Read = Mapping[str, list[tuple[str, ...]]]
"""Rules as Lark read them: what is optional or repeated is an alternative, or a rule that begins with itself."""


@cache
def decoding_grammar(syntax: Syntax, around: str = "", root: str = "start") -> str:
    """The grammar of a spec in ``syntax``. ``around``: further rules and terminals, in Lark, with the rule ``root`` to
    begin with instead of ``start``."""
    read = Lark(f"{GRAMMAR.read_text()}\n{around}", parser="earley", start=root, maybe_placeholders=False)
    terminals = {each.name: _strict(each.pattern.to_regexp()) for each in read.terminals} | {_BLANK: r"[ \t]+"}
    written: dict[str, list[tuple[str, ...]]] = {}
    for rule in read.rules:
        written.setdefault(rule.origin.name, []).append(tuple(symbol.name for symbol in rule.expansion))
    rules = _repeated(_inlined(_repeated(_spaced(written, terminals)), root))
    literals = {each.name: json.dumps(each.pattern.value) for each in read.terminals if each.pattern.type == "str"}
    return _Writer(syntax, root, rules, terminals, literals).text()


def _strict(pattern: str) -> str:
    """The regular expression ``pattern`` without spaces inside a terminal, after which llguidance's lexer does not go
    back, and without conditions on what follows, which its syntax does not have and the places of blanks ensure."""
    return pattern.replace(r"\s*", "").replace(r"\b", "").replace(r"\/", "/")


def _spaced(rules: _Read, terminals: dict[str, str]) -> _Rules:
    """``rules`` with blanks between all symbols, obligatory between two words, and comments before ends of lines."""
    first = {name: _atoms(pattern)[0] for name, pattern in terminals.items()}
    last = {name: _atoms(pattern)[-1] for name, pattern in terminals.items()}

    def is_word(symbol: str, edge: dict[str, str], at: int, above: frozenset[str] = frozenset()) -> bool:
        if symbol in edge:
            return any(re.fullmatch(edge[symbol], character) for character in _WORD)
        return symbol not in above and any(is_word(each[at], edge, at, above | {symbol}) for each in rules[symbol])

    def spaced(sequence: tuple[str, ...]) -> _Sequence:
        found: list[str] = []
        for before, symbol in zip(("", *sequence), sequence, strict=False):
            if before:
                found.append(_BLANK if is_word(before, last, -1) and is_word(symbol, first, 0) else f"{_BLANK}?")
            if symbol in first and first[symbol] in _LINE_ENDS:
                found.append(f"{_COMMENT}?")
            found.append(symbol)
        return tuple(found)

    return {name: [spaced(each) for each in alternatives] for name, alternatives in rules.items()}


def _repeated(rules: _Rules) -> _Rules:
    """``rules`` without those that begin with themselves: ``a: b | a c`` is ``a: b c*``."""
    found: _Rules = {}
    for name, alternatives in rules.items():
        again = tuple(each[1:] for each in alternatives if each[0] == name)
        others = [each for each in alternatives if each[0] != name]
        if again and len(others) > 1:
            found[f"{name}_head"], others = others, [(f"{name}_head",)]
        found[name] = [(*each, _Repeated(again)) for each in others] if again else others
    return found


def _inlined(rules: _Rules, root: str) -> _Rules:
    """``rules`` with each one that is used in one place written there."""
    found = dict(rules)
    for name in [each for each in rules if each != root]:
        used = Counter(symbol for alternatives in found.values() for symbol in _symbols(alternatives))
        if used[name] == 1 and name not in _symbols(found[name]):
            inside = found.pop(name)
            found = {other: _with(alternatives, name, inside) for other, alternatives in found.items()}
    return found


def _symbols(alternatives: Iterable[_Sequence]) -> Iterator[str]:
    """All symbols in ``alternatives``, as often as they are used."""
    for each in itertools.chain.from_iterable(alternatives):
        if isinstance(each, str):
            yield each
        else:
            yield from _symbols(each.alternatives)


def _with(alternatives: Iterable[_Sequence], name: str, inside: list[_Sequence]) -> list[_Sequence]:
    """``alternatives`` with those of ``inside`` for ``name``."""
    found: list[_Sequence] = []
    for sequence in alternatives:
        written: list[_Sequence] = [()]
        for each in sequence:
            if isinstance(each, _Repeated):
                each = _Repeated(tuple(_with(each.alternatives, name, inside)))
            choices = inside if each == name else [(each,)]
            written = [(*start, *choice) for start in written for choice in choices]
        found += written
    return found


@dataclass(frozen=True)
class _Writer:
    """Writes ``rules`` in ``syntax``. ``literals``: terminals that are one text, quoted."""

    syntax: Syntax
    root: str
    rules: _Rules
    terminals: dict[str, str]
    literals: dict[str, str]

    def text(self) -> str:
        """The whole grammar, its first rule first."""
        define = ":" if self.syntax == "lark" else " ::="
        order = sorted(self.rules, key=lambda name: name != self.root)
        lines = [f"{self._name(name)}{define} {self._choice(self.rules[name])}" for name in order]
        used = {symbol.rstrip("?") for each in self.rules.values() for symbol in _symbols(each)}
        for name in sorted(used & self.terminals.keys() - self.literals.keys()):
            lines.append(f"{self._name(name)}{define} {self._terminal(self.terminals[name])}")
        return "\n".join(lines) + "\n"

    def _choice(self, alternatives: Iterable[_Sequence]) -> str:
        """One of ``alternatives``; those that begin alike are written behind their first symbol."""
        behind: dict[str | _Repeated, list[_Sequence]] = {}
        for each in alternatives:
            if each:
                behind.setdefault(each[0], []).append(each[1:])
        written = []
        for first, rests in behind.items():
            longer = [rest for rest in rests if rest]
            rest = self._choice(longer) if longer else ""
            if len(longer) < len(rests) and rest:
                rest = f"({rest})?"
            elif len(longer) > 1 and len({each[0] for each in longer}) > 1:
                rest = f"({rest})"
            written.append(f"{self._item(first)} {rest}".strip())
        return " | ".join(written)

    def _item(self, item: str | _Repeated) -> str:
        if isinstance(item, _Repeated):
            return f"({self._choice(item.alternatives)})*"
        name = item.rstrip("?")
        return self.literals.get(name) or self._name(name) + item[len(name) :]

    def _name(self, name: str) -> str:
        """Without underscores, which not every reader allows in a name."""
        if name == self.root:
            return "start" if self.syntax == "lark" else "root"
        return name.replace("_", "")

    def _terminal(self, pattern: str) -> str:
        if self.syntax == "lark":
            return "/" + _printable(pattern.replace("/", r"\/")) + "/"
        parts = [_gbnf(atom) for atom in _atoms(pattern, marks=True)]
        return re.sub(r" (?=[*+?)])|(?<=\() ", "", " ".join(parts))


def _atoms(pattern: str, marks: bool = False) -> list[str]:
    """Parts of a regular expression that are characters or classes; ``marks``: those between them too."""
    return [atom for atom in _ATOM.findall(pattern) if marks or atom not in _MARKS]


def _gbnf(atom: str) -> str:
    """One part of a regular expression in GBNF."""
    if atom in _MARKS:
        return "(" if atom == "(?:" else atom
    if atom in _CLASSES:
        return f"[{_CLASSES[atom]}]"
    if atom[0] == "[":
        return _printable(re.sub(r"\\[dw]", lambda each: _CLASSES[each[0]], atom))
    if atom in (r"\n", r"\t", r"\r"):
        return f'"{atom}"'
    return json.dumps(atom[-1])


def _printable(pattern: str) -> str:
    return pattern.replace("\n", r"\n").replace("\r", r"\r").replace("\t", r"\t")
