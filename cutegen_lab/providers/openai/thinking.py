"""Reasoning of a model: separated from its answer, and shown as progress."""

from __future__ import annotations

from collections.abc import Callable

from cutegen_lab.core.plain_text import one_line
from cutegen_lab.core.protocols import Say

_OPEN, _CLOSE = "<think>", "</think>"
_SAID_EVERY = 400  # characters of reasoning, about 100 tokens
_LONGEST_WORD = 10_000  # maximum number of characters kept of text without a space
_SHOWN = 120  # maximum number of characters of a line of progress


class ThinkTags:
    """Separates ``<think>…</think>`` at the start of a streamed answer from the answer."""

    def __init__(self) -> None:
        self._held = ""
        self._split: Callable[[], tuple[str, str]] = self._before

    def add(self, text: str) -> tuple[str, str]:
        """(Answer, reasoning) that ``text`` adds; a piece that may be part of a tag is held back."""
        self._held += text
        return self._split()

    def rest(self) -> str:
        """What was held back, at the end of the answer."""
        held, self._held = self._held, ""
        return "" if self._split == self._inside else held

    def _before(self) -> tuple[str, str]:
        begun = self._held.lstrip()
        if len(begun) < len(_OPEN) and _OPEN.startswith(begun):
            self._held = begun
            return "", ""
        if not begun.startswith(_OPEN):
            self._split = self._after
            return self._after()
        self._held, self._split = begun[len(_OPEN) :], self._inside
        return self._inside()

    def _inside(self) -> tuple[str, str]:
        reasoning, tag, answer = self._held.partition(_CLOSE)
        if tag:
            self._held, self._split = "", self._after
            return answer, reasoning
        partial = next(n for n in range(len(_CLOSE) - 1, -1, -1) if self._held.endswith(_CLOSE[:n]))
        end = len(self._held) - partial
        reasoning, self._held = self._held[:end], self._held[end:]
        return "", reasoning

    def _after(self) -> tuple[str, str]:
        answer, self._held = self._held, ""
        return answer, ""


def without_reasoning(answer: str) -> str:
    """``answer`` after a ``</think>`` whose opening tag was in the prompt, as in DeepSeek's chat template."""
    _, tag, rest = answer.partition(_CLOSE)
    return rest if tag else answer


class ReasoningProgress:
    """Says lines of the reasoning while it streams: the latest one about every 100 tokens, and at its end."""

    def __init__(self, model: str, say: Say, masked: Callable[[str], str]) -> None:
        """``masked`` masks secrets in a text."""
        self._model, self._say, self._masked = model, say, masked
        self._unsaid = ""

    def add(self, text: str) -> None:
        """Adds reasoning."""
        self._unsaid += text
        if len(self._unsaid) >= _SAID_EVERY:
            self._tell()

    def end(self) -> None:
        """Says the rest."""
        self._unsaid += "\n"
        self._tell()

    def _tell(self) -> None:
        # Whole lines, or else whole words: a secret has no space, so none is cut in two.
        end = (self._unsaid.rfind("\n") + 1) or (self._unsaid.rfind(" ") + 1)
        lines = [line for line in self._masked(self._unsaid[:end]).splitlines() if line.strip()]
        self._unsaid = self._unsaid[end:] if len(self._unsaid) < _LONGEST_WORD else ""
        if lines:
            self._say(f"{self._model} thinks: {one_line(lines[-1])[:_SHOWN]}")
