"""From a model's answer to one Python module and its stated reason."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cutegen_lab.core import syntax
from cutegen_lab.core.errors import ProviderError

_BLOCK = re.compile(r"^(`{3,})[ \t]*(\w*)[^\n]*\n(.*?)^\1`*[ \t]*$", re.DOTALL | re.MULTILINE)
_FIELD = r"^[\s*_#>-]*{}[\s*_]*:[\s*_]*(.+?)[\s*_]*$"
MAX_ANSWER_CHARS = 400_000
SPEC_BLOCK = "cutespec"


class MalformedAnswer(ProviderError):
    """An answer without exactly one usable module. The message is fit to send back to the model."""


@dataclass(frozen=True)
class ParsedAnswer:
    """``is_spec``: ``source`` is a text of the compact language, not a module."""

    source: str
    title: str
    reason: str
    predicted_effect: str
    is_spec: bool = False


def parse(text: str, specs: bool = False) -> ParsedAnswer:
    """``specs``: a block marked ``cutespec`` is an answer too. Raises MalformedAnswer saying what is missing: empty, no
    code block, no launch(), cut off, several modules."""
    if not text.strip():
        raise MalformedAnswer("the answer is empty")
    if len(text) > MAX_ANSWER_CHARS:
        raise MalformedAnswer(f"the answer has {len(text):,} characters, more than {MAX_ANSWER_CHARS:,}")
    found = list(_BLOCK.finditer(text))
    wanted = "spec" if specs else "module"
    if not found:
        cut = "its code block is not closed: it was cut off" if "```" in text else "it has no fenced code block"
        raise MalformedAnswer(f"the answer has no {wanted}; {cut}")
    written = list(dict.fromkeys(m[3] for m in found if specs and m[2] == SPEC_BLOCK))
    if len(written) > 1:
        raise MalformedAnswer(f"{len(written)} different {SPEC_BLOCK} blocks; give one whole spec")
    if written:
        return _answer(written[0], text, is_spec=True)
    blocks = [m[3] for m in found]
    modules = list(dict.fromkeys(b for b in blocks if re.search(r"^def launch\b", b, re.MULTILINE)))
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


def _answer(block: str, text: str, is_spec: bool = False) -> ParsedAnswer:
    head = text.split("```", 1)[0]
    title = (_field(head, "Title") or "untitled version")[:120]
    source = block.strip("\n") + "\n"
    return ParsedAnswer(source, title, _field(head, "Reason"), _field(head, "Predicted effect"), is_spec)


def _field(text: str, name: str) -> str:
    match = re.search(_FIELD.format(name), text, re.MULTILINE | re.IGNORECASE)
    return match[1] if match else ""
