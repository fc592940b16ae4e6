"""Reads a server's stream, whose shape and size are not trusted, whichever API it speaks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from cutegen_lab.core.candidate import TokenUsage

# Maximum number of bytes of one response: 100,000 tokens, each in an event of its own, take half of it.
MOST_BYTES = 64 << 20
MOST_TOKENS = 10_000_000  # maximum number of tokens of one request; a report of more is ignored


class Unreadable(Exception):
    """Raised for data that is not an answer, or is too large. The message says what was received."""


class ServerFailure(Exception):
    """Raised for an error that the server reports within the stream. The message is the server's."""


class Ending(Enum):
    """Why an answer ended."""

    COMPLETE = "complete"
    TRUNCATED = "truncated"
    """At the maximum number of tokens."""
    FILTERED = "filtered"
    """By a content filter."""
    REFUSED = "refused"
    """By the model's refusal."""
    ABORTED = "aborted"
    """By the server."""


_ENDINGS = {
    "length": Ending.TRUNCATED, "max_tokens": Ending.TRUNCATED, "max_output_tokens": Ending.TRUNCATED,
    "model_length": Ending.TRUNCATED, "content_filter": Ending.FILTERED, "safety": Ending.FILTERED,
    "refusal": Ending.REFUSED, "abort": Ending.ABORTED, "error": Ending.ABORTED,
}  # fmt: skip


def ending(finish: str) -> Ending:
    """The ending that a server's finish reason names; COMPLETE for an unknown one."""
    return _ENDINGS.get(finish.lower(), Ending.COMPLETE)


@dataclass(frozen=True)
class Piece:
    """One event of the stream."""

    text: str = ""
    """Text that the event adds to the answer."""
    finish: str = ""
    """Why the answer ended, in the server's words; empty before its end."""
    usage: TokenUsage | None = None
    """Tokens so far; None if the event reports no plausible number."""
    reasoning: str = ""
    """Text that the event adds to the reasoning."""
    tool_input: str = ""
    """Text that the event adds to the input of a tool, which then is the answer instead of the text."""
    refusal: str = ""
    """Text that the event adds to the model's refusal."""
    whole: str = ""
    """Text of the whole answer, for servers that only send it at the end."""


def joined(pieces: list[str]) -> str:
    """The whole text; halves of a surrogate pair in neighbouring pieces are joined. Raises Unreadable."""
    try:
        return "".join(pieces).encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise Unreadable("the text has half of a surrogate pair, which is not a character") from None


def bounded(response: Any) -> None:
    """Hook for the HTTP client of ``openai``: reading ``response`` then raises Unreadable after :data:`MOST_BYTES`, and
    for compressed data."""
    encoding = response.headers.get("Content-Encoding", "identity")
    received = response.iter_raw

    def counted(chunk_size: int | None = None) -> Iterator[bytes]:
        if encoding != "identity":  # a few bytes of compressed data may decompress to gigabytes
            raise Unreadable(f"it is compressed ({encoding[:40]}), which was not requested")
        read = 0
        for part in received(chunk_size):
            read += len(part)
            if read > MOST_BYTES:
                raise Unreadable(f"it has more than {MOST_BYTES >> 20} MiB")
            yield part

    response.iter_raw = counted


def text_of(value: object, what: str) -> str:
    """``value``, or "" for None. Raises Unreadable if it is something other than text."""
    if not isinstance(value, str | None):
        raise Unreadable(f"{what} is {seen(value)}, not text")
    return value or ""


def usage_of(reported: Any, prompt: str, completion: str) -> TokenUsage | None:
    """Usage in the fields ``{prompt}_tokens`` and ``{completion}_tokens`` of ``reported``, and in ``…_tokens_details``;
    None without a plausible number of each."""
    sent, received = (_count(reported, f"{name}_tokens", MOST_TOKENS) for name in (prompt, completion))
    if not sent or not received:
        return None
    cached = _count(getattr(reported, f"{prompt}_tokens_details", None), "cached_tokens", sent)
    reasoning = _count(getattr(reported, f"{completion}_tokens_details", None), "reasoning_tokens", received)
    return TokenUsage(sent, received, cached, reasoning)


def seen(value: object) -> str:
    """``value`` as the message of an Unreadable shows it; ``...`` stands for a missing one."""
    return f"{type(value).__name__} {repr(value)[:40]}" if value is not ... else "missing"


def _count(holder: Any, name: str, most: int) -> int:
    """The number of tokens in the field ``name`` of ``holder``; 0 if it is not one, or above ``most``."""
    count = getattr(holder, name, 0)
    return count if type(count) is int and 0 < count <= most else 0
