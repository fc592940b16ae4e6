"""Messages between the parent, the warm server and its children: typed, length-prefixed, limited on arrival.

A frame is one byte (its kind), four bytes (big-endian length) and that many bytes: UTF-8 JSON, or raw bytes for
``PART``. No pickle and no code is ever sent. What a child sends is untrusted until :mod:`cutegen_lab.compile.reply` has
checked it.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

HEADER = 5
# Recordings of each launcher, at different addresses: a launcher that depends on an address modulo 7 passes with a
# probability of 1 in 16,807.
RECORDINGS = 6
SEPARATOR = b"\n\x1e\n"  # printed by a process before the output of each build

JOB, RESPONSE = b"J", b"R"  # frames between parent and server
# Frames from a build: the workload that it begins, the phase that it enters, a tensor that it accessed, a large piece
# of its answer, and the answer itself.
WORKLOAD, PHASE, TOUCHED, PART, ANSWER = b"W", b"P", b"T", b"B", b"A"


@dataclass(frozen=True)
class Bound:
    """Limit on frames of one kind."""

    size: int
    """Maximum bytes of one frame."""
    count: int
    """Maximum number of frames."""
    total: int = 0
    """Maximum bytes of all frames; 0 for no further limit."""


def encode(kind: bytes, message: Any) -> bytes:
    """A frame's bytes. ``message``: bytes, or a value for JSON."""
    body = message if isinstance(message, bytes) else json.dumps(message, separators=(",", ":")).encode()
    return struct.pack(">cI", kind, len(body)) + body


def write_frame(fd: int, kind: bytes, message: Any) -> None:
    """Writes one whole frame to a blocking descriptor."""
    view = memoryview(encode(kind, message))
    while view:
        view = view[os.write(fd, view) :]


def decode(body: bytes) -> Any:
    """The value of a JSON frame. Raises ValueError."""
    try:
        return json.loads(body)
    except (UnicodeDecodeError, RecursionError, ValueError) as error:
        raise ValueError(f"a reply that is not JSON: {type(error).__name__}") from None


class FrameReader:
    """Splits a byte stream into frames of the kinds in ``bounds``, buffering no more than these allow."""

    def __init__(self, bounds: Mapping[bytes, Bound]) -> None:
        self._bounds = bounds
        self._counts = dict.fromkeys(bounds, 0)
        self._totals = dict.fromkeys(bounds, 0)
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[tuple[bytes, bytes]]:
        """Kind and body of each frame completed by ``data``. Raises ValueError at the header of a frame over its
        limit."""
        self._buffer += data
        frames = []
        while len(self._buffer) >= HEADER:
            kind, size = struct.unpack_from(">cI", self._buffer)
            self._check(kind, size)
            if len(self._buffer) < HEADER + size:
                break
            frames.append((kind, bytes(self._buffer[HEADER : HEADER + size])))
            del self._buffer[: HEADER + size]
            self._counts[kind] += 1
            self._totals[kind] += size
        return frames

    def _check(self, kind: bytes, size: int) -> None:
        bound = self._bounds.get(kind)
        if bound is None:
            raise ValueError(f"a frame of the unknown kind {kind!r}")
        if size > bound.size or (bound.total and self._totals[kind] + size > bound.total):
            raise ValueError(f"a reply of {self._totals[kind] + size} bytes is over the limit")
        if self._counts[kind] == bound.count:
            raise ValueError(f"over {bound.count} frames of the kind {kind!r}")
