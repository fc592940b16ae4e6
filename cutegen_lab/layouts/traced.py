"""The layouts that a candidate makes, from types of the DSL's trace."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from cutegen_lab.core.artifact import TracedLayout
from cutegen_lab.core.errors import InputError
from cutegen_lab.layouts.layout import Swizzle, Swizzled
from cutegen_lab.layouts.notation import of_addresses, read_layout
from cutegen_lab.layouts.picture import Picture
from cutegen_lab.layouts.request import Request, itemsize_of

_LAYOUT = re.compile(r'!cute\.(?:composed_)?layout<"([^"]+)">')
_TENSOR = re.compile(r'!cute\.memref<(\w+), smem, [^"]*?(?:S<(\d+),(\d+),(-?\d+)>[^"]*?)?"([^"]+)">')


@dataclass(frozen=True)
class MadeLayout:
    """One layout of a candidate. ``dtype``: of the tensor in shared memory that has it; empty for a layout alone."""

    layout: str
    dtype: str
    lines: tuple[int, ...]
    """Lines of the candidate's text that make it."""

    def picture(self) -> Picture:
        """The layout; with banks and memory if it is a tensor's."""
        return Request(self.layout, dtype=self.dtype, banks=bool(self.dtype)).picture()


def made_layouts(traced: Iterable[TracedLayout]) -> tuple[MadeLayout, ...]:
    """Each layout once, with all its lines, in the order of the trace; tensors in shared memory first. Those with
    extents or strides that are not known when compiling, and of types that are not known here, are left out."""
    lines: dict[tuple[str, str], dict[int, None]] = {}
    for one in traced:
        try:
            lines.setdefault(_read(one.kind), {})[one.line] = None
        except InputError:
            continue
    found = [MadeLayout(layout, dtype, tuple(places)) for (layout, dtype), places in lines.items()]
    return tuple(sorted(found, key=lambda made: not made.dtype))


def _read(kind: str) -> tuple[str, str]:
    """(layout, dtype) of a type. A swizzle that is part of a pointer is of addresses. Raises InputError."""
    if tensor := _TENSOR.fullmatch(kind):
        dtype, *swizzle, text = tensor.groups()
        layout = read_layout(text)
        if swizzle[0]:
            bits, base, shift = map(int, swizzle)
            if isinstance(layout, Swizzled):
                raise InputError(f"{kind} has two swizzles")
            layout = Swizzled(of_addresses(Swizzle(bits, base, shift), itemsize_of(dtype.lower())), 0, layout)
        itemsize_of(dtype.lower())
        return str(layout), dtype.lower()
    if plain := _LAYOUT.fullmatch(kind):
        return str(read_layout(plain[1])), ""
    raise InputError(f"{kind} is no layout")
