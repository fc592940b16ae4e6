"""What a request offers besides its prompt, so that the answer has the form that is wanted."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from cutegen_lab.providers.conversation import Wanted
from cutegen_lab.providers.cutespec_replies import answer_grammar

Options = dict[str, Any]
"""Options of a request, by their names in the ``openai`` package."""
_TOOL = "answer"
# of a message that refuses what is offered: names of the options, and what servers call them
_WORDS = ("tool", "custom", "grammar", "lark", "ebnf", "structured_outputs", "apply_patch")
_APPLY_PATCH = {"type": "apply_patch"}
_BUILT_IN_BYTES = 4096  # of what OpenAI adds to a prompt for a tool of its own; an assumption


class Offers:
    """What one API of an endpoint may be offered, until the endpoint refuses it. ``made`` makes the options for a form
    of answer."""

    def __init__(self, made: Mapping[Wanted, Callable[[], Options]]) -> None:
        self._made = dict(made)

    def __contains__(self, wanted: Wanted) -> bool:
        return wanted in self._made

    def options(self, wanted: Wanted) -> Options:
        """What to send for an answer of the form ``wanted``; empty if there is nothing, or it was refused."""
        return self._made[wanted]() if wanted in self._made else {}

    def refused(self, wanted: Wanted, refusal: str) -> bool:
        """Whether the server's message ``refusal`` is about what was offered, which then is not offered again."""
        if wanted not in self._made or not any(word in refusal.lower() for word in _WORDS):
            return False
        self.withdraw(wanted)
        return True

    def withdraw(self, wanted: Wanted) -> None:
        """Offers nothing for ``wanted`` from now on."""
        self._made.pop(wanted, None)

    def size(self, wanted: Wanted) -> int:
        """Bytes that it adds to a prompt."""
        options = self.options(wanted)
        built_in = _BUILT_IN_BYTES if _APPLY_PATCH in options.get("tools", []) else 0
        return len(json.dumps(options).encode()) + built_in if options else 0


def spec_as_tool_input() -> Options:
    """Responses API: a custom tool whose input is the whole answer, decoded under its grammar. Reasoning comes before
    the call, as always."""
    definition = {"type": "grammar", "syntax": "lark", "definition": answer_grammar("lark")}
    tool = {"type": "custom", "name": _TOOL, "description": "Takes the whole answer.", "format": definition}
    return {"tools": [tool], "tool_choice": {"type": "custom", "name": _TOOL}, "parallel_tool_calls": False}


def spec_as_text() -> Options:
    """Chat Completions of vLLM (``structured_outputs``, in older versions ``guided_grammar``) and SGLang (``ebnf``):
    the text is decoded under the grammar. Each ignores the other's names."""
    grammar = answer_grammar("gbnf")
    return {"extra_body": {"structured_outputs": {"grammar": grammar}, "guided_grammar": grammar, "ebnf": grammar}}


def edits_as_patches() -> Options:
    """Responses API: OpenAI's tool for patches, which the model may call instead of writing edits."""
    return {"tools": [_APPLY_PATCH]}
