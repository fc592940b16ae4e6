"""From a model's answer to one Python module and its stated reason."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cutegen_lab.core import syntax
from cutegen_lab.core.errors import ProviderError

_BLOCK = re.compile(r"^(`{3,})[ \t]*(\w*)[^\n]*\n(.*?)^\1`*[ \t]*$", re.DOTALL | re.MULTILINE)
_FIELD = r"^[\s*_#>-]*{}[\s*_]*:[\s*_]*(.+?)[\s*_]*$"
MAX_ANSWER_CHARS = 400_000


class MalformedAnswer(ProviderError):
    """An answer without exactly one usable module. The message is fit to send back to the model."""


@dataclass(frozen=True)
class ParsedAnswer:
    source: str
    title: str
    reason: str
    predicted_effect: str


def parse(text: str) -> ParsedAnswer:
    """Raises MalformedAnswer saying what is missing: empty, no code block, no launch(), cut off, several modules."""
    if not text.strip():
        raise MalformedAnswer("the answer is empty")
    if len(text) > MAX_ANSWER_CHARS:
        raise MalformedAnswer(f"the answer has {len(text):,} characters, more than {MAX_ANSWER_CHARS:,}")
    blocks = [m[3] for m in _BLOCK.finditer(text)]
    if not blocks:
        cut = "its code block is not closed: it was cut off" if "```" in text else "it has no fenced code block"
        raise MalformedAnswer(f"the answer has no module; {cut}")
    modules = list(dict.fromkeys(b for b in blocks if re.search(r"^def launch\b", b, re.MULTILINE)))
    if not modules:
        raise MalformedAnswer("no code block defines launch()")
    if len(modules) > 1:
        raise MalformedAnswer(f"{len(modules)} different code blocks define launch(); give one whole module")
    source = modules[0].strip("\n") + "\n"
    try:
        syntax.parse(source)
    except SyntaxError as error:
        raise MalformedAnswer(f"the module has a syntax error at line {error.lineno}: {error.msg}") from None
    head = text.split("```", 1)[0]
    title = _field(head, "Title") or "untitled version"
    return ParsedAnswer(source, title[:120], _field(head, "Reason"), _field(head, "Predicted effect"))


def _field(text: str, name: str) -> str:
    match = re.search(_FIELD.format(name), text, re.MULTILINE | re.IGNORECASE)
    return match[1] if match else ""
