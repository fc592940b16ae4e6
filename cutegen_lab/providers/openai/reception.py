"""An answer while it is received: its text, what it costs, and how far it is."""

from __future__ import annotations

from cutegen_lab.core.candidate import TokenUsage
from cutegen_lab.core.errors import ProviderError
from cutegen_lab.core.secrets import Secrets
from cutegen_lab.providers.openai.call import Call
from cutegen_lab.providers.openai.failures import unfinished
from cutegen_lab.providers.openai.stream import Ending, Piece, ending, joined
from cutegen_lab.providers.openai.thinking import ReasoningProgress, ThinkTags, without_reasoning
from cutegen_lab.providers.openai.token_count import estimated_usage, size, typical_tokens
from cutegen_lab.providers.replies import MAX_ANSWER_CHARS

_TOLD_EVERY = 100  # tokens
_REFUSAL_CHARS = 1000  # maximum number kept


class Reception:
    """The answer of ``model`` to ``call``."""

    def __init__(self, model: str, call: Call, secrets: Secrets) -> None:
        self._model, self._call, self._secrets = model, call, secrets
        self._text: list[str] = []
        self._tool_input: list[str] = []
        self._refusal = self._finish = self._whole = ""
        self._reported: TokenUsage | None = None
        self._tags, self._reasoning = ThinkTags(), ReasoningProgress(model, call.say, secrets.masked)
        self._chars = self._bytes = self._told = 0

    @property
    def usage(self) -> TokenUsage:
        """Tokens so far: as reported, otherwise estimated; none if the server has not begun the answer."""
        if self._reported is not None:
            return self._reported
        sent = size(self._call.prompt) + self._call.offered_bytes
        return estimated_usage(sent, self._bytes) if self._call.begun else TokenUsage()

    @property
    def tokens(self) -> int:
        """Approximate number of tokens received, with those of the reasoning."""
        return typical_tokens(self._bytes)

    def add(self, piece: Piece) -> None:
        """Adds a piece. Raises ProviderError for an answer that is too long."""
        self._reported, self._finish = piece.usage or self._reported, piece.finish or self._finish
        self._refusal = (self._refusal + piece.refusal)[:_REFUSAL_CHARS]
        self._whole = piece.whole or self._whole
        text, reasoning = self._tags.add(piece.text)
        self._bytes += size(piece.text + piece.tool_input + piece.reasoning + piece.refusal)
        self._reasoning.add(piece.reasoning + reasoning)
        for part, parts in ((text, self._text), (piece.tool_input, self._tool_input)):
            if part:
                self._reasoning.end()
                self._receive(part, parts)
        self._check_limit()

    def told(self) -> str:
        """A line of progress, about every 100 tokens; otherwise empty."""
        if self.tokens - self._told < _TOLD_EVERY:
            return ""
        self._told = self.tokens
        return f"{self._model}: about {self.tokens:,} tokens…"

    def text(self) -> str:
        """The whole answer without reasoning and secrets. Raises ProviderError if it is empty or did not end by itself,
        Unreadable."""
        self._reasoning.end()
        self._text.append(self._tags.rest())
        ended = ending(self._finish) if self._finish else Ending.ABORTED
        if self._refusal:
            ended = Ending.REFUSED
        if ended is not Ending.COMPLETE:
            limit = self._call.limit
            capped = limit is not None and limit == self._call.most_tokens
            raise unfinished(ended, self._model, limit, capped, self._secrets.masked(self._refusal))
        answer = without_reasoning(self._secrets.masked(joined(self._tool_input) or joined(self._text) or self._whole))
        if not answer.strip():
            reason = self._secrets.masked(self._finish[:40])
            raise ProviderError(f"{self._model} gave an empty answer (finish reason {reason!r})", "Retry.")
        return answer

    def _receive(self, text: str, parts: list[str]) -> None:
        parts.append(text)
        self._chars += len(text)
        if self._chars > MAX_ANSWER_CHARS:
            raise ProviderError(
                f"the answer of {self._model} has more than {MAX_ANSWER_CHARS:,} characters",
                "Retry, or try another model.",
            )

    def _check_limit(self) -> None:
        """Ends the answer of a server that ignores the maximum number of tokens."""
        if (limit := self._call.limit) is not None and self.tokens > limit:
            message = f"{self._model} did not stop at the {limit:,} tokens that it was asked for"
            raise ProviderError(message, "Retry, or try another model or server.")
