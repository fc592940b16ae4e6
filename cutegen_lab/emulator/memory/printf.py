"""What kernels print (CUDA C++ guide, "Formatted output"; PTX ISA 9.7.12 call, of ``vprintf``).

``vprintf`` gets the address of a format and of a block of arguments in the thread's local memory: each argument
has 4 or 8 bytes, aligned to its size; every floating-point number is a double.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from cutegen_lab.core.plain_text import plain

MOST_LINES = 1000
MOST_FORMAT_BYTES = 4096
_CONVERSION = re.compile(
    rb"%(?P<flags>[-+ #0]*)(?P<width>\d{0,3})(?P<precision>\.\d{0,3})?(?P<size>hh|h|ll|l|j|z|t)?"
    rb"(?P<kind>[diouxXeEfFgGaAcsp%])"
)
_SIGNED, _UNSIGNED, _FLOAT = b"di", b"ouxX", b"eEfFgGaA"


@dataclass
class Printed:
    """Printed lines of one plan's launches, in order of execution; lines over ``MOST_LINES`` are only counted."""

    lines: list[str] = field(default_factory=list)
    dropped: int = 0
    _open: bool = False  # whether the last line has no newline yet

    def write(self, text: str) -> None:
        for piece in text.splitlines(keepends=True):
            if self._open:
                self.lines[-1] += piece.rstrip("\n")
            elif len(self.lines) < MOST_LINES:
                self.lines.append(piece.rstrip("\n"))
            else:
                self.dropped += 1
                continue
            self._open = not piece.endswith("\n")

    def text(self) -> str:
        more = [f"… and {self.dropped} more"] if self.dropped else []
        return "\n".join(self.lines + more)


def formatted(given: bytes, argument: Callable[[int, int], bytes], string: Callable[[int], bytes]) -> str:
    """What C's printf writes for format ``given``; other text is unchanged, and control characters are escaped.

    ``argument(offset, size)`` reads from the block of arguments, ``string(address)`` a string without its final zero.
    """
    at = 0

    def convert(match: re.Match[bytes]) -> bytes:
        nonlocal at
        kind, size = match["kind"], match["size"] or b""
        if kind == b"%":
            return b"%"
        wide = kind in _FLOAT or kind in b"sp" or size in (b"l", b"ll", b"j", b"z", b"t")
        count = 8 if wide else 4
        at = -(-at // count) * count
        raw = argument(at, count)
        at += count
        return _one(match, raw, string)

    return plain(_CONVERSION.sub(convert, given).decode("utf-8", "replace"))


def _one(match: re.Match[bytes], raw: bytes, string: Callable[[int], bytes]) -> bytes:
    kind, size = match["kind"], match["size"] or b""
    head = b"%" + match["flags"] + match["width"] + (match["precision"] or b"")
    number = int.from_bytes(raw, "little", signed=kind in _SIGNED)
    if kind in _SIGNED + _UNSIGNED:
        if bits := {b"h": 16, b"hh": 8}.get(size):
            number &= (1 << bits) - 1
            number -= (kind in _SIGNED and number >> (bits - 1)) << bits
        if kind == b"o" and b"#" in match["flags"]:  # Python writes 0o17 where C writes 017
            return b"0%o" % number
        return (head + (b"d" if kind == b"u" else kind)) % number
    if kind in b"c":
        return (head + kind) % bytes([number & 0xFF])
    if kind == b"s":
        return (head + kind) % string(number)
    if kind == b"p":
        return b"0x%x" % number
    value = struct.unpack("<d", raw)[0]
    return value.hex().encode() if kind in b"aA" else (head + kind) % value  # type: ignore[no-any-return]
