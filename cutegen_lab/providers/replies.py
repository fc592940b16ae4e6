"""Parses a model's answer: one Python module and its stated reason."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cutegen_lab.core import syntax
from cutegen_lab.core.errors import ProviderError
from cutegen_lab.core.ideas import MOST_CLAIM, Change, Idea, read_change, read_idea
from cutegen_lab.core.plain_text import misfit
from cutegen_lab.providers.line_edits import EDIT_BLOCK, EditError, apply_edits, read_edits
from cutegen_lab.providers.patches import BEGIN, patches_in, read_patches

_FENCE = re.compile(r"(`{3,})[ \t]*(\w*)")
_LAUNCH = re.compile(r"^def launch\b", re.MULTILINE)
_MARKS = " \t\r*_"  # Markdown marks around a field's name and value
MAX_ANSWER_CHARS = 400_000
SPEC_BLOCK = "cutespec"
MOST_IDEAS = 3
_DONE = re.compile(r"[*_]*Done:[*_]*\s*(\S.*)")
_IDEA_ID = re.compile(r"\bi\d{1,4}\b")


class MalformedAnswer(ProviderError):
    """An answer without exactly one usable module. The message can be sent back to the model."""


@dataclass(frozen=True)
class ParsedAnswer:
    """A model's answer, parsed."""

    source: str
    """Text of the module or spec."""
    title: str
    """One line about the change."""
    reason: str
    """Why the change was made."""
    predicted_effect: str
    """Expected effect on the time."""
    expects: Change | None = None
    """The change of a metric that is expected."""
    implements: str = ""
    """Id of the idea that the change tries."""
    ideas: tuple[Idea, ...] = ()
    """Further ideas, at most :data:`MOST_IDEAS`."""
    is_spec: bool = False
    """Whether ``source`` is a spec, not a module."""


def parse(text: str, specs: bool = False, before: str = "") -> ParsedAnswer:
    """Parses an answer. ``specs``: a block marked ``cutespec`` is accepted too. ``before``: text that edits
    (:mod:`cutegen_lab.providers.line_edits`) and patches (:mod:`cutegen_lab.providers.patches`) change; without it they
    are not accepted. Raises MalformedAnswer, whose message says what is wrong: empty, no code block, no launch(),
    truncated, several modules, edits that do not fit."""
    if not text.strip():
        raise MalformedAnswer("the answer is empty")
    if len(text) > MAX_ANSWER_CHARS:
        raise MalformedAnswer(f"the answer has {len(text):,} characters, more than {MAX_ANSWER_CHARS:,}")
    if why := misfit(text):
        raise MalformedAnswer(f"the answer {why}")
    found, patches = _blocks(text), _patches(text) if before else []
    wanted = "spec" if specs else "module"
    if not found and not patches:
        cut = "its code block is not closed: it was cut off" if "```" in text else "it has no fenced code block"
        raise MalformedAnswer(f"the answer has no {wanted}; {cut}")
    written = list(dict.fromkeys(block for language, block in found if specs and language == SPEC_BLOCK))
    if len(written) > 1:
        raise MalformedAnswer(f"{len(written)} different {SPEC_BLOCK} blocks; give one whole spec")
    if written:
        return _answer(written[0], text, is_spec=True)
    edits = [block for language, block in found if before and language == EDIT_BLOCK]
    texts = [block for language, block in found if not (before and language == EDIT_BLOCK)]
    modules = list(dict.fromkeys(block for block in texts if _LAUNCH.search(block)))
    if (edits or patches) and modules:
        raise MalformedAnswer("the answer has edits and a whole module; give one of the two")
    if edits and patches:
        raise MalformedAnswer("the answer has edits and a patch; give one of the two")
    if edits or patches:
        modules = [_edited(before, edits, patches)]
    if not modules:
        raise MalformedAnswer(f"no code block is marked {SPEC_BLOCK}" if specs else "no code block defines launch()")
    if len(modules) > 1:
        raise MalformedAnswer(f"{len(modules)} different code blocks define launch(); give one whole module")
    answer = _answer(modules[0], text)
    try:
        syntax.parse(answer.source)
    except SyntaxError as error:
        raise MalformedAnswer(f"the module has a syntax error at line {error.lineno}: {error.msg}") from None
    return answer


def done(text: str) -> str:
    """The reason of an answer that no change is worth its tokens, which is one line ``Done: why`` and nothing else; ""
    for others."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    found = _DONE.fullmatch(lines[0].strip()) if len(lines) == 1 else None
    return found[1][:MOST_CLAIM] if found else ""


def _patches(text: str) -> list[list[str]]:
    try:
        return patches_in(text)
    except EditError as error:
        raise MalformedAnswer(str(error)) from None


def _edited(before: str, blocks: list[str], patches: list[list[str]]) -> str:
    try:
        changes = read_patches(patches) if patches else read_edits(blocks)
        after = changes if isinstance(changes, str) else apply_edits(before, changes)
    except EditError as error:
        raise MalformedAnswer(str(error)) from None
    if not _LAUNCH.search(after):
        raise MalformedAnswer("the edited module does not define launch()")
    if [line.rstrip() for line in after.splitlines()] == [line.rstrip() for line in before.splitlines()]:
        raise MalformedAnswer("the edits change nothing")
    return after


def _answer(block: str, text: str, is_spec: bool = False) -> ParsedAnswer:
    head = text.split("```", 1)[0].split(BEGIN, 1)[0]
    title = (_field(head, "Title") or "untitled version")[:120]
    source = block.strip("\n") + "\n"
    tried = _IDEA_ID.search(_field(head, "Implements"))
    ideas = [idea for each in _fields(head, "Idea") if (idea := read_idea(each)) is not None]
    return ParsedAnswer(
        source, title, _field(head, "Reason"), _field(head, "Predicted effect"), read_change(_field(head, "Expect")),
        tried[0] if tried else "", tuple(ideas[:MOST_IDEAS]), is_spec,
    )  # fmt: skip


def _blocks(text: str) -> list[tuple[str, str]]:
    """Language and text of each fenced block (CommonMark 4.5, unindented), in linear time, since ``text`` is
    untrusted."""
    lines = text.splitlines(keepends=True)
    found: list[tuple[str, str]] = []
    at, unclosed = 0, len(text) + 1  # a fence of this many backticks or more has no end
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        at += 1
        if fence is None or len(fence[1]) >= unclosed:
            continue
        end = next((n for n in range(at, len(lines)) if _closes(lines[n], len(fence[1]))), None)
        if end is None:
            unclosed = len(fence[1])
        else:
            found.append((fence[2], "".join(lines[at:end])))
            at = end + 1
    return found


def _closes(line: str, backticks: int) -> bool:
    line = line.rstrip()
    return len(line) >= backticks and not line.strip("`")


def _field(text: str, name: str) -> str:
    """First value of the field ``name``; "" if there is none."""
    return next(iter(_fields(text, name)), "")


def _fields(text: str, name: str) -> list[str]:
    """Values of the fields ``name``, each the text after ``name:`` at the start of a line, or the line below."""
    lines, found = text.split("\n"), []
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        head, colon, value = line.partition(":")
        if colon and head.strip(_MARKS + "#>-").lower() == name.lower():
            found.append(value.strip(_MARKS) or below.strip(_MARKS))
    return found
