"""The layouts that a candidate uses, from types in the DSL's trace."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from typing import Literal, get_args

from cutegen_lab.core.artifact import TracedLayout
from cutegen_lab.core.errors import InputError
from cutegen_lab.layouts.fragments import Fragment
from cutegen_lab.layouts.layout import Layout, Swizzle, Swizzled
from cutegen_lab.layouts.notation import of_addresses, read_layout
from cutegen_lab.layouts.picture import Picture
from cutegen_lab.layouts.request import Request, itemsize_of

Kind = Literal["tensor in shared memory", "TMA box", "tensor-core operand", "tiled copy", "layout"]
"""Kinds of layouts, in the order in which these are listed."""
_LAYOUT = re.compile(r'!cute\.(?:composed_)?layout<"([^"]+)">')
_TENSOR = re.compile(r'!cute\.memref<(\w+), smem, [^"]*?(?:S<(\d+),(\d+),(-?\d+)>[^"]*?)?"([^"]+)">')
_BOX = re.compile(r'!cute_nvgpu\.atom\.tma_(?:load|store)<(\w+),[^"]*.*tma_gbasis = <"\(?([\d,]+)\)?:[^"]*">>')
_COPY = re.compile(r'layout_copy_tv = <"([^"]+)">, tiler_mn = <"\[([\d:;]+)\]">')
_MMA = re.compile(r"!cute_nvgpu\.(sm\d+)\.mma<([\dx]+),.*?elem_type = \((\w+), (\w+), \w+\)(?:, frag_kind = (\w+))? ?>")
_OPERANDS = {("sm80", None): ("A", "B", "C"), ("sm90", "ss"): ("C",), ("sm90", "rs"): ("A-registers", "C")}
_MODES = {0: "none", 1: "32B", 2: "64B", 3: "128B"}  # modes by the number of bits of a swizzle of 16-byte pieces


@dataclass(frozen=True)
class MadeLayout:
    """One layout of a candidate."""

    layout: str
    """The layout as text; for a box or operand the words of ``--tma`` or ``--mma``."""
    dtype: str
    """Type of the elements; empty if unknown."""
    lines: tuple[int, ...]
    """Lines of the candidate's text that make or use it."""
    kind: Kind
    tile: tuple[int, int] = (0, 0)
    """Rows and columns of a tiled copy."""

    @property
    def what(self) -> str:
        """A description: "bf16 tensor in shared memory" or "tiled copy of 64x32"."""
        match self.kind:
            case "tensor in shared memory":
                return f"{self.dtype} {self.kind}"
            case "tiled copy":
                return f"{self.kind} of {self.tile[0]}x{self.tile[1]}"
            case _:
                return self.kind

    def picture(self) -> Picture:
        """The picture, with banks and memory for shared memory. Raises InputError if it is too large."""
        match self.kind:
            case "TMA box":
                return Request(tma=tuple(self.layout.split())).picture()
            case "tensor-core operand":
                return Request(mma=tuple(self.layout.split())).picture()
            case "tiled copy":
                return Request().fragment_picture(_tiled(self))
            case _:
                return Request(self.layout, dtype=self.dtype, banks=bool(self.dtype)).picture()


def made_layouts(traced: Iterable[TracedLayout]) -> tuple[MadeLayout, ...]:
    """Each layout once, with all its lines: by :data:`Kind`, swizzled ones first, else in the order of the trace.
    Layouts with dynamic extents or strides, and unknown types, are left out."""
    by_line: dict[int, list[str]] = {}
    for one in traced:
        by_line.setdefault(one.line, []).append(one.kind)
    lines: dict[MadeLayout, dict[int, None]] = {}
    for line, kinds in by_line.items():
        for kind in kinds:
            with suppress(InputError):
                for made in _read(kind, kinds):
                    lines.setdefault(made, {})[line] = None
    found = [MadeLayout(m.layout, m.dtype, tuple(places), m.kind, m.tile) for m, places in lines.items()]
    return tuple(sorted(found, key=lambda made: (get_args(Kind).index(made.kind), "Sw<" not in made.layout)))


def _read(kind: str, on_same_line: Sequence[str]) -> Iterator[MadeLayout]:
    """Layouts in the type ``kind``, with no ``lines`` yet. ``on_same_line``: all types of the same line. A pointer
    swizzles addresses. Raises InputError."""
    if tensor := _TENSOR.fullmatch(kind):
        dtype, *swizzle, text = tensor.groups()
        layout = read_layout(text)
        if swizzle[0]:
            bits, base, shift = map(int, swizzle)
            if isinstance(layout, Swizzled):
                raise InputError(f"{kind} has two swizzles")
            layout = Swizzled(of_addresses(Swizzle(bits, base, shift), itemsize_of(dtype.lower())), 0, layout)
        itemsize_of(dtype.lower())
        yield MadeLayout(str(layout), dtype.lower(), (), "tensor in shared memory")
    elif plain := _LAYOUT.fullmatch(kind):
        yield MadeLayout(str(read_layout(plain[1])), "", (), "layout")
    elif box := _BOX.fullmatch(kind):
        yield from _box(box[1], box[2].split(","), on_same_line)
    elif copy := _COPY.fullmatch(kind):
        yield from _copy(*copy.groups())
    elif mma := _MMA.fullmatch(kind):
        arch, shape, left, right, source = mma.groups()
        if left == right:
            for operand in _OPERANDS.get((arch, source), ()):
                words = f"{arch} {shape} {left.lower()} {operand}"
                Request(mma=tuple(words.split())).picture()
                yield MadeLayout(words, left.lower(), (), "tensor-core operand")


def _box(dtype: str, extents: list[str], on_same_line: Sequence[str]) -> Iterator[MadeLayout]:
    """A box's type has no swizzle: it is taken from the shared-memory tensor of the same line. TMA's extents begin with
    the contiguous one."""
    tensors = [tensor for each in on_same_line if (tensor := _TENSOR.fullmatch(each)) and tensor[1] == dtype]
    swizzles = {(int(tensor[2] or 0), tensor[3] or "4", tensor[4] or "3") for tensor in tensors}
    if len(swizzles) == 1:
        bits, *pieces = swizzles.pop()
        if pieces == ["4", "3"] and bits in _MODES:
            words = f"{'x'.join(reversed(extents))} {dtype.lower()} {_MODES[bits]}"
            Request(tma=tuple(words.split())).picture()
            yield MadeLayout(words, dtype.lower(), (), "TMA box")


def _copy(layout: str, tiler: str) -> Iterator[MadeLayout]:
    """Tiled copies with a tiler of two dense modes."""
    parts = [part.split(":") for part in tiler.split(";")]
    if len(parts) == 2 and all(stride == ["1"] for _, *stride in parts):
        made = MadeLayout(str(read_layout(layout)), "", (), "tiled copy", (int(parts[0][0]), int(parts[1][0])))
        _tiled(made)
        yield made


def _tiled(made: MadeLayout) -> Fragment:
    """The fragment of a tiled copy. Raises InputError if the layout is not a thread-value layout of the tile."""
    layout = read_layout(made.layout)
    rows, columns = made.tile
    if not isinstance(layout, Layout) or len(layout.modes) != 2 or layout.cosize > prod(made.tile):
        raise InputError(f"{layout} is not a thread-value layout of {rows}x{columns}")
    return Fragment(f"Tiled copy of {rows}x{columns}", rows, columns, layout)
