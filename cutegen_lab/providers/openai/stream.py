"""Reads a server's stream, whose shape and size are not trusted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cutegen_lab.core.candidate import TokenUsage

# Maximum number of bytes of one response: 100,000 tokens, each in an event of its own, take half of it.
MOST_BYTES = 64 << 20
MOST_TOKENS = 10_000_000  # maximum number of tokens of one request; a report of more is ignored


class Unreadable(Exception):
    """Raised for data that is not a chat completion, or is too large. The message says what was received."""


@dataclass(frozen=True)
class Piece:
    """One event of the stream."""

    text: str = ""
    """Text that the event adds to the answer."""
    finish: str = ""
    """Why the answer ended; empty before its end."""
    usage: TokenUsage | None = None
    """Tokens so far; None if the event reports no plausible number."""


def piece(chunk: Any) -> Piece:
    """The fields used of ``chunk``, which the ``openai`` package builds from JSON without validation. Raises
    Unreadable."""
    usage = _usage(getattr(chunk, "usage", None))
    choices = getattr(chunk, "choices", ...)
    if choices is None or choices == []:  # an event that only reports usage, or a keep-alive
        return Piece(usage=usage)
    if not isinstance(choices, list):
        raise Unreadable(f"choices is {_seen(choices)}, not a list")
    delta = getattr(choices[0], "delta", None)
    if delta is None:
        raise Unreadable(f"choices[0] is {_seen(choices[0])} without a delta")
    content, finish = getattr(delta, "content", None), getattr(choices[0], "finish_reason", None)
    if not isinstance(content, str | None):
        raise Unreadable(f"the delta's content is {_seen(content)}, not text")
    if not isinstance(finish, str | None):
        raise Unreadable(f"finish_reason is {_seen(finish)}, not text")
    return Piece(content or "", finish or "", usage)


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


def _usage(reported: Any) -> TokenUsage | None:
    counts = [getattr(reported, name, None) for name in ("prompt_tokens", "completion_tokens")]
    known = [count for count in counts if type(count) is int and 0 < count <= MOST_TOKENS]
    return TokenUsage(*known) if len(known) == len(counts) else None


def _seen(value: object) -> str:
    return f"{type(value).__name__} {repr(value)[:40]}" if value is not ... else "missing"
