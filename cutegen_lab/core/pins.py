"""Checks candidates against pins: the pinned lines, function or value must stay the same code; its formatting may
change."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from functools import lru_cache

from cutegen_lab.core.candidate import Candidate, Proposal
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.follow import followed, lines_of
from cutegen_lab.core.hints import did_you_mean
from cutegen_lab.core.notes import Note, Place
from cutegen_lab.core.syntax import code_of, launch_defaults, parse
from cutegen_lab.core.verdict import Diagnostic

CODE = "pin"
_BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")
_SHOWN = 12  # maximum number of lines of an excerpt
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class _Statement:
    """A statement without the statements in its blocks."""

    first: int
    """Its first line, from 1."""
    last: int
    """Its last line."""
    scope: str
    """Qualified name of the functions and classes that contain it."""
    depth: int
    """Number of statements that contain it."""
    block: str
    """Name of the block of the enclosing statement that contains it ("body", "orelse")."""
    code: str
    """Its syntax tree as text, without positions."""


@dataclass(frozen=True)
class _Text:
    """What a pin is compared with: a text and its config. Hashable, so that comparisons can be cached."""

    source: str
    """Text of the candidate."""
    config: tuple[tuple[str, str], ...]
    """Parameters and their values, as Python writes them."""

    @classmethod
    def of(cls, proposal: Proposal) -> _Text:
        return cls(proposal.source, tuple((name, repr(value)) for name, value in proposal.config.items()))

    @property
    def values(self) -> Mapping[str, str]:
        """Values of the parameters, as Python writes them."""
        defaults = launch_defaults(self.source) or {}
        return {name: text for name, text in defaults.items() if text} | dict(self.config)


def broken(pin: Note, anchor: Candidate, proposal: Proposal) -> Diagnostic | None:
    """How ``proposal`` breaks ``pin``, which was made on ``anchor``; None if the pin is kept, or if the proposal is not
    valid Python, which the gate reports."""
    if _keeps(pin, _Text.of(anchor.proposal), _Text.of(proposal)):
        return None
    place = place_in(pin, anchor, proposal)
    now = quote_of(proposal, pin.name, *(place or (0, 0)))
    said = f" (“{pin.text}”)" if pin.text else ""
    return Diagnostic(
        "error", CODE, f"pin {pin.id}{said}: {pin.what} must not change", place[0] if place else 0,
        _changed(pin.quote, now),
        "", f"keep what {pin.candidate_id} has there",
    )  # fmt: skip


def broken_pins(pins: Sequence[Note], candidates: Mapping[str, Candidate], proposal: Proposal) -> list[Diagnostic]:
    """How ``proposal`` breaks each of ``pins``, which were made on ``candidates``."""
    found = (broken(pin, candidates[pin.candidate_id], proposal) for pin in pins if pin.pin)
    return [each for each in found if each is not None]


def place_in(note: Note, anchor: Candidate, proposal: Proposal) -> tuple[int, int] | None:
    """First and last line of ``proposal``'s text that ``note`` is about now; None if these lines are gone, or the note
    never had lines."""
    if not note.name:
        return followed(anchor.source, proposal.source, note.first, note.last)
    return _lines_of_name(proposal.source, note.name)


def noted_place(candidate: Candidate, place: Place, pin: bool) -> tuple[int, int, str]:
    """First line, last line and quote of a new note. Raises InputError if ``place`` has no text to comment on, or no
    code to pin."""
    who, proposal = candidate.id, candidate.proposal
    if place.name:
        known = [*_Text.of(proposal).values, *_names(candidate.source)]
        if not any(_is(full, place.name) for full in known):
            near = did_you_mean(place.name, known) or "Give its lines."
            raise InputError(f"{who} has no parameter, function or top-level name {place.name!r}", near)
        first, last = _lines_of_name(candidate.source, place.name) or (0, 0)
        return first, last, quote_of(proposal, place.name, first, last)
    quote, count = quote_of(proposal, "", place.first, place.last), len(lines_of(candidate.source))
    if place.last > count or not quote.strip():
        seen = f"it has {count}" if place.last > count else "they are empty"
        raise InputError(f"{who} has no text at lines {place.first} to {place.last}: {seen}", "Choose other lines.")
    if pin and not _between(candidate.source, place.first, place.last):
        raise InputError(f"lines {place.first} to {place.last} of {who} have no code to keep", "Comment instead.")
    return place.first, place.last, quote


def quote_of(proposal: Proposal, name: str, first: int = 0, last: int = 0) -> str:
    """Quote of a note: a parameter with its value (``stages = 3``), otherwise the lines."""
    values = _Text.of(proposal).values
    if name in values:
        return f"{name} = {values[name]}"
    return "\n".join(lines_of(proposal.source)[first - 1 : last]) if first else ""


@lru_cache(maxsize=4096)  # a run's view is built again after each event
def _keeps(pin: Note, before: _Text, after: _Text) -> bool:
    try:
        parse(after.source)
    except (SyntaxError, ValueError):
        return True
    if not pin.name:
        return _contains(_statements(after.source), _between(before.source, pin.first, pin.last))
    values = before.values
    if pin.name in values:
        return after.values.get(pin.name) == values[pin.name]
    return _named(after.source, pin.name) == _named(before.source, pin.name)


def _contains(statements: Sequence[_Statement], wanted: Sequence[_Statement]) -> bool:
    """Whether ``wanted`` occur consecutively, with the same nesting and in a function of the same name (in any function
    if none has that name any more)."""
    count, scopes = len(wanted), {each.scope for each in statements}

    def shape(some: Sequence[_Statement], of: Sequence[_Statement]) -> list[tuple[str, int, str, str]]:
        least = min(each.depth for each in some)
        return [
            (each.scope if known.scope in scopes else "", each.depth - least, each.block, each.code)
            for each, known in zip(some, of, strict=True)
        ]

    expected = shape(wanted, wanted)
    return any(
        statements[at].code == wanted[0].code and shape(statements[at : at + count], wanted) == expected
        for at in range(len(statements) - count + 1)
    )


def _between(source: str, first: int, last: int) -> Sequence[_Statement]:
    try:
        return [each for each in _statements(source) if each.first <= last and each.last >= first]
    except (SyntaxError, ValueError):
        return []


@lru_cache(maxsize=256)
def _statements(source: str) -> Sequence[_Statement]:
    """Every statement in order. Raises SyntaxError, ValueError."""
    found = []
    left = [(node, "", 0, "body") for node in reversed(parse(source).body)]
    while left:
        node, scope, depth, block = left.pop()
        blocks = {name: value for name in _BLOCKS if isinstance(value := getattr(node, name, None), list)}
        first, last = _head_lines(node, bool(blocks))
        found.append(_Statement(first, last, scope, depth, block, code_of(node, blocks)))
        inner = f"{scope}.{node.name}" if isinstance(node, _Definition) else scope
        below = [(child, inner, depth + 1, name) for name, value in blocks.items() for child in value]
        left += reversed(below)
    return found


def _head_lines(node: ast.AST, has_blocks: bool) -> tuple[int, int]:
    """First and last line of a statement, without its blocks."""
    parts = [node] if not has_blocks else [
        child for name, value in ast.iter_fields(node) if name not in _BLOCKS
        for child in (value if isinstance(value, list) else [value])
    ]  # fmt: skip
    placed = [each for part in parts if isinstance(part, ast.AST) for each in ast.walk(part) if hasattr(each, "lineno")]
    firsts = [getattr(each, "lineno", 0) for each in (node, *placed) if hasattr(each, "lineno")]
    lasts = [getattr(each, "end_lineno", 0) or 0 for each in placed] or firsts
    return min(firsts), max(lasts)


def _definitions(source: str) -> Iterator[tuple[str, ast.stmt]]:
    """Functions, classes and names assigned at the top level, by qualified name."""
    left: list[tuple[str, ast.stmt]] = [("", node) for node in reversed(parse(source).body)]
    while left:
        scope, node = left.pop()
        if isinstance(node, _Definition):
            name = f"{scope}{node.name}"
            yield name, node
            left += [(f"{name}.", child) for child in reversed(node.body) if isinstance(child, _Definition)]
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    yield f"{scope}{target.id}", node


def _named(source: str, name: str) -> list[tuple[str, str]]:
    return [(full, code_of(node)) for full, node in _definitions(source) if _is(full, name)]


def _names(source: str) -> list[str]:
    try:
        return [name for name, _ in _definitions(source)]
    except (SyntaxError, ValueError):
        return []


@lru_cache(maxsize=4096)
def _lines_of_name(source: str, name: str) -> tuple[int, int] | None:
    """Lines of the definition of ``name``, otherwise of the parameter ``name`` of ``launch``; None if there is
    neither."""
    try:
        known = list(_definitions(source))
    except (SyntaxError, ValueError):
        return None
    for full, node in known:
        if _is(full, name):
            above = [each.lineno for each in getattr(node, "decorator_list", ())]
            return min([node.lineno, *above]), node.end_lineno or node.lineno
    for full, node in known:
        if full == "launch" and isinstance(node, ast.FunctionDef):
            taken = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            return next(((each.lineno, each.lineno) for each in taken if each.arg == name), None)
    return None


def _is(full: str, name: str) -> bool:
    return full == name or full.endswith(f".{name}")


def _changed(before: str, now: str) -> str:
    """Removed lines (``-``) and added lines (``+``)."""
    if not now:
        return "(it is not there)"
    found = list(unified_diff(lines_of(before), lines_of(now), n=1, lineterm=""))[3:]
    lines = [f"{line[0]} {line[1:]}".rstrip() for line in found if not line.startswith("@@")]
    return "\n".join(lines if len(lines) <= _SHOWN else [*lines[:_SHOWN], f"… {len(lines) - _SHOWN} more lines"])
