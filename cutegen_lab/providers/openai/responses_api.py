"""The Responses API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cutegen_lab.providers.openai.offers import Offers, Options, edits_as_patches, spec_as_tool_input
from cutegen_lab.providers.openai.stream import (
    Ending,
    Piece,
    ServerFailure,
    Unreadable,
    ending,
    seen,
    text_of,
    usage_of,
)
from cutegen_lab.providers.patches import patch_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    import openai

_REASONING = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")  # OpenAI; vLLM, Ollama
_END_OF_SUMMARY_PART = "response.reasoning_summary_text.done"
_LAST = ("response.completed", "response.incomplete", "response.failed")


class ResponsesAPI:
    """Requests to one model of one server."""

    name = "Responses"

    def __init__(self) -> None:
        self._options: dict[str, Any] = {"reasoning": {"summary": "auto"}, "store": False}
        self.offers = Offers({"spec": spec_as_tool_input, "edits": edits_as_patches})

    def opened(
        self, client: openai.OpenAI, model: str, prompt: str, most_tokens: int | None, offered: Options
    ) -> Iterable[Any]:
        """The stream of an answer of at most ``most_tokens`` tokens. Raises the errors of ``openai``."""
        limit = {} if most_tokens is None else {"max_output_tokens": most_tokens}
        options: dict[str, Any] = {**self._options, **limit, **offered, "stream": True}
        stream: Iterable[Any] = client.responses.create(model=model, input=prompt, **options)
        return stream

    def adapt(self, refusal: str) -> bool:
        """Leaves out the option that the server's message ``refusal`` names; False if there is none."""
        return any(self._options.pop(name, None) is not None for name in list(self._options) if name in refusal)

    @staticmethod
    def speaks(event: Any) -> bool:
        """Whether ``event`` may be the first of a stream. Some servers answer every path, as Chat Completions."""
        return isinstance(getattr(event, "type", None), str)

    @staticmethod
    def piece(event: Any) -> Piece:
        """The fields used of ``event``, which the ``openai`` package builds from JSON without validation. Raises
        Unreadable, ServerFailure."""
        kind = getattr(event, "type", ...)
        if not isinstance(kind, str):
            raise Unreadable(f"an event's type is {seen(kind)}, not text")
        if kind == "error":
            raise ServerFailure(text_of(getattr(event, "message", None), "the error's message") or "an error")
        if kind in _LAST:
            return _last(kind, getattr(event, "response", ...))
        if kind == _END_OF_SUMMARY_PART:
            return Piece(reasoning="\n")
        delta = getattr(event, "delta", None)
        if kind == "response.output_text.delta":
            return Piece(text_of(delta, "the delta"))
        if kind == "response.output_item.done":
            return Piece(_patch(getattr(event, "item", None)))
        if kind == "response.custom_tool_call_input.delta":
            return Piece(tool_input=text_of(delta, "the delta"))
        if kind == "response.refusal.delta":
            return Piece(refusal=text_of(delta, "the delta"))
        if kind in _REASONING:
            return Piece(reasoning=text_of(delta, "the delta"))
        return Piece()


def _last(kind: str, response: Any) -> Piece:
    if response is ... or isinstance(response, str | int | list | None):
        raise Unreadable(f"the response is {seen(response)}")
    if kind == "response.failed":
        raise ServerFailure(_text(getattr(response, "error", None), "message") or "the response failed")
    usage = usage_of(getattr(response, "usage", None), "input", "output")
    if kind == "response.completed":
        return Piece(finish="stop", usage=usage, whole=_output_text(response))
    reason = _text(getattr(response, "incomplete_details", None), "reason")
    return Piece(finish="abort" if ending(reason) is Ending.COMPLETE else reason, usage=usage)


def _output_text(response: Any) -> str:
    """The input of a custom tool, else the text and patches."""
    items = _listed(response, "output")
    if called := [_text(item, "input") for item in items if getattr(item, "type", "") == "custom_tool_call"]:
        return "".join(called)
    return "".join(_item_text(item) for item in items)


def _item_text(item: Any) -> str:
    parts = [part for part in _listed(item, "content") if getattr(part, "type", "") == "output_text"]
    return "".join(_text(part, "text") for part in parts) + _patch(item)


def _patch(item: Any) -> str:
    """The patch of a call of ``apply_patch``; "" for another item."""
    operation = getattr(item, "operation", None)
    if getattr(item, "type", "") != "apply_patch_call" or operation is None:
        return ""
    return patch_text(*(_text(operation, name) for name in ("type", "path", "diff")))


def _listed(holder: Any, name: str) -> list[Any]:
    value = getattr(holder, name, None)
    return value if isinstance(value, list) else []


def _text(holder: Any, name: str) -> str:
    value = holder.get(name) if isinstance(holder, dict) else getattr(holder, name, None)
    return value if isinstance(value, str) else ""
