"""Reads layouts, swizzles and tilers as CuTe prints them: ``((2,4),8):((1,16),2)``, ``Sw<3,4,3> o 0 o (8,64):(64,1)``.

The DSL's spelling (``S<3,4,3>``, ``[4:1;8:1]``) and C++'s (``_8``, ``smem_ptr[16b](unset)``) are read too.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from cutegen_lab.core.errors import InputError
from cutegen_lab.core.plain_text import one_line
from cutegen_lab.layouts.algebra import Tiler
from cutegen_lab.layouts.int_tuple import IntTuple
from cutegen_lab.layouts.layout import AnyLayout, Layout, Swizzle, Swizzled

EXAMPLE = "Write it as CuTe prints it: ((2,4),8):((1,16),2)."
_DEEPEST = 16
_Term: TypeAlias = "int | Layout | tuple[_Term, ...]"
_TOKEN = re.compile(r"\s*(_?-?\d+(?=[^@\d]|$)|[()\[\],;:])")
_SWIZZLED = re.compile(
    r"\s*Sw?<\s*(\d+)\s*,\s*(\d+)\s*,\s*(-?\d+)\s*>\s*[o∘]\s*(?:(\d+)|smem_ptr\[(\d+)b\]\(\w*\))\s*[o∘]\s*"
)
_NUMBERS = re.compile(r"(?:Sw?<)?\s*(\d+)\s*,\s*(\d+)\s*,\s*(-?\d+)\s*>?")
_MODES = {"none": 0, "32B": 1, "64B": 2, "128B": 3}
SWIZZLE_MODES = tuple(_MODES)
"""Swizzles of TMA and wgmma, by the width of their pattern."""


def read_layout(text: str) -> AnyLayout:
    """A layout; a shape alone is the dense layout with its leftmost mode contiguous. Raises InputError."""
    over = _SWIZZLED.match(text)
    term = _Reader(text, over.end() if over else 0).whole()
    layout = term if isinstance(term, Layout) else Layout.dense(_numbers(term, text))
    if over is None:
        return layout
    bits, base, shift = (int(over[at]) for at in (1, 2, 3))
    if over[5]:  # C++ swizzles the addresses of such layouts
        return Swizzled(of_addresses(Swizzle(bits, base, shift), int(over[5]) // 8), 0, layout)
    return Swizzled(Swizzle(bits, base, shift), int(over[4]), layout)


def read_tiler(text: str) -> Tiler:
    """A number, a layout, or a tuple of these. Raises InputError."""
    return _Reader(text.strip().removeprefix("<").removesuffix(">"), 0).whole()


def read_swizzle(text: str, itemsize: int) -> Swizzle | None:
    """Reads a swizzle: ``3,4,3`` acts on element indices; a mode (``128B``) acts on addresses of elements of
    ``itemsize`` bytes.

    Returns None for ``none``. Raises InputError.
    """
    word = text.strip()
    if word in _MODES:
        return swizzle_mode(word, itemsize)
    if found := _NUMBERS.fullmatch(word):
        return Swizzle(int(found[1]), int(found[2]), int(found[3]))
    message = f"cannot read the swizzle {one_line(text)!r}"
    raise InputError(message, f"Write bits,base,shift (3,4,3), or a mode of TMA: {', '.join(_MODES)}.")


def swizzle_mode(name: str, itemsize: int) -> Swizzle | None:
    """A swizzle mode of TMA and wgmma (PTX ISA, "Swizzling Modes"): 16-byte pieces are xor'ed with the number of the
    128-byte line, modulo the width. None for ``none``."""
    return of_addresses(Swizzle(_MODES[name], 4, 3), itemsize) if _MODES[name] else None


def of_addresses(swizzle: Swizzle, itemsize: int) -> Swizzle:
    """Converts a swizzle of byte addresses to one of element indices. Raises InputError if it would split elements."""
    lower = itemsize.bit_length() - 1
    if swizzle.base < lower:
        raise InputError(
            f"{swizzle} applied to byte addresses would split elements of {itemsize} bytes", "Use a greater base."
        )
    return Swizzle(swizzle.bits, swizzle.base - lower, swizzle.shift)


def _not_closed(text: str) -> int | None:
    """Position of the first unmatched bracket; None if there is none."""
    opened = list[int]()
    for at, letter in enumerate(text):
        if letter in "([":
            opened.append(at)
        elif letter in ")]" and opened:
            opened.pop()
    return opened[0] if opened else None


class _Reader:
    """Recursive descent over ``term := number | "(" item, … ")"``, ``item := term [":" term]``."""

    def __init__(self, text: str, at: int) -> None:
        self._text, self._at = text, at

    def whole(self) -> _Term:
        if (at := _not_closed(self._text)) is not None:
            raise InputError(
                f"the {self._text[at]!r} at character {at + 1} of {one_line(self._text)!r} is not closed", EXAMPLE
            )
        found = self._item(0)
        if self._text[self._at :].strip():
            raise self._error()
        return found

    def _item(self, depth: int) -> _Term:
        shape = self._term(depth)
        if self._peek() != ":":
            return shape
        self._take()
        return Layout(_numbers(shape, self._text), _numbers(self._term(depth), self._text))

    def _term(self, depth: int) -> _Term:
        token = self._take()
        if token in ("(", "[") and depth < _DEEPEST:
            parts = [self._item(depth + 1)]
            while (following := self._take()) in (",", ";"):
                if self._peek() in (")", "]"):
                    continue
                parts.append(self._item(depth + 1))
            if following != {"(": ")", "[": "]"}[token]:
                raise self._error(following)
            return tuple(parts)
        try:
            return int(token.lstrip("_"))
        except ValueError:
            raise self._error(token) from None

    def _peek(self) -> str:
        found = _TOKEN.match(self._text, self._at)
        return found[1] if found else ""

    def _take(self) -> str:
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            raise self._error()
        self._at = found.end()
        return found[1]

    def _error(self, token: str = "") -> InputError:
        rest = one_line(self._text[self._at - len(token) :])
        shown = one_line(self._text)
        shown = shown if len(shown) <= 80 else f"{shown[:79]}…"
        if "?" in self._text:
            return InputError(f"{shown!r} has dynamic extents or strides", "Write their values as numbers.")
        if "@" in self._text:
            return InputError(f"{shown!r} has coordinate strides (1@0)", "Only whole numbers can be drawn.")
        where = f"cannot read {rest[:20]!r}" if rest else "something is missing at the end"
        return InputError(f"{shown!r} is no layout: {where}", EXAMPLE)


def _numbers(term: _Term, text: str) -> IntTuple:
    if isinstance(term, Layout):
        raise InputError(f"{one_line(text)!r} has a layout where a number belongs", EXAMPLE)
    return term if isinstance(term, int) else tuple(_numbers(part, text) for part in term)
