"""Messages between the parent, the warm server and its children: length-prefixed JSON, bounded on arrival.

A frame is four bytes (big-endian length) and that many bytes of UTF-8 JSON. Nothing else ever crosses: no pickle, no
code. What a child sends is hostile until :mod:`cutegen_lab.compile.reply` has checked it.
"""

from __future__ import annotations

import json
import os
import struct
from typing import Any

HEADER = 4
SEPARATOR = b"\n\x1e\n"  # in what a process prints, before what each of its builds does


def encode(message: dict[str, Any]) -> bytes:
    body = json.dumps(message, separators=(",", ":")).encode()
    return struct.pack(">I", len(body)) + body


def write_frame(fd: int, message: dict[str, Any]) -> None:
    """Writes one whole frame to a blocking descriptor."""
    view = memoryview(encode(message))
    while view:
        view = view[os.write(fd, view) :]


class FrameReader:
    """Cuts a byte stream into frames. ``limit`` bounds the bytes of one frame; raises ValueError beyond it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """Frames completed by ``data``. Raises ValueError for a frame that is too long or not a JSON object."""
        self._buffer += data
        frames: list[dict[str, Any]] = []
        while len(self._buffer) >= HEADER:
            (size,) = struct.unpack_from(">I", self._buffer)
            if size > self._limit:
                raise ValueError(f"a reply of {size} bytes is over the limit of {self._limit}")
            if len(self._buffer) < HEADER + size:
                break
            try:
                frame = json.loads(bytes(self._buffer[HEADER : HEADER + size]))
            except (UnicodeDecodeError, RecursionError, ValueError) as error:
                raise ValueError(f"a reply that is not JSON: {type(error).__name__}") from None
            if not isinstance(frame, dict):
                raise ValueError("a reply that is not a JSON object")
            del self._buffer[: HEADER + size]
            frames.append(frame)
        return frames
