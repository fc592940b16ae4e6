"""The Chat Completions API, in the dialects of OpenAI, LiteLLM, vLLM, SGLang and Ollama."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cutegen_lab.providers.openai.offers import Offers, Options, spec_as_text
from cutegen_lab.providers.openai.stream import Piece, Unreadable, seen, text_of, usage_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    import openai

_REASONING = ("reasoning_content", "reasoning")  # DeepSeek, SGLang, LiteLLM, older vLLM; Ollama, newer vLLM, OpenRouter


class ChatCompletions:
    """Requests to one model of one server. ``of_openai``: the server is OpenAI's."""

    name = "Chat Completions"

    def __init__(self, of_openai: bool) -> None:
        # OpenAI's reasoning models refuse max_tokens; Ollama ignores max_completion_tokens.
        self._limit = "max_completion_tokens" if of_openai else "max_tokens"
        self._asks_usage = True
        self.offers = Offers({} if of_openai else {"spec": spec_as_text})

    def opened(
        self, client: openai.OpenAI, model: str, prompt: str, most_tokens: int | None, offered: Options
    ) -> Iterable[Any]:
        """The stream of an answer of at most ``most_tokens`` tokens. Raises the errors of ``openai``."""
        options: dict[str, Any] = {"stream": True, **offered}
        if most_tokens is not None:
            options[self._limit] = most_tokens
        if self._asks_usage:
            options["stream_options"] = {"include_usage": True}
        messages: Any = [{"role": "user", "content": prompt}]
        stream: Iterable[Any] = client.chat.completions.create(model=model, messages=messages, **options)
        return stream

    def adapt(self, refusal: str) -> bool:
        """Leaves out, or renames, the option that the server's message ``refusal`` names; False if there is none."""
        if self._asks_usage and ("stream_options" in refusal or "include_usage" in refusal):
            self._asks_usage = False
            return True
        if self._limit == "max_tokens" and "max_completion_tokens" in refusal:
            self._limit = "max_completion_tokens"
            return True
        return False

    @staticmethod
    def speaks(event: Any) -> bool:
        """Whether ``event`` may be the first of a stream; :meth:`piece` says what is wrong with it."""
        return True

    @staticmethod
    def piece(chunk: Any) -> Piece:
        """The fields used of ``chunk``, which the ``openai`` package builds from JSON without validation. Raises
        Unreadable."""
        usage = usage_of(getattr(chunk, "usage", None), "prompt", "completion")
        choices = getattr(chunk, "choices", ...)
        if choices is None or choices == []:  # an event that only reports usage, or a keep-alive
            return Piece(usage=usage)
        if not isinstance(choices, list):
            raise Unreadable(f"choices is {seen(choices)}, not a list")
        delta = getattr(choices[0], "delta", None)
        if delta is None:
            raise Unreadable(f"choices[0] is {seen(choices[0])} without a delta")
        return Piece(
            text_of(getattr(delta, "content", None), "the delta's content"),
            text_of(getattr(choices[0], "finish_reason", None), "finish_reason"),
            usage,
            reasoning=_reasoning(delta),
            refusal=text_of(getattr(delta, "refusal", None), "the delta's refusal"),
        )


def _reasoning(delta: Any) -> str:
    """Text of the reasoning in ``delta``; a server that sends it under both names sends the same text."""
    found = (getattr(delta, name, None) for name in _REASONING)
    return next((text for text in found if isinstance(text, str) and text), "")
