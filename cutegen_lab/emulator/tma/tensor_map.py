"""Tensor maps: the 128-byte objects that tensor copies read (PTX ISA 5.5 "Tensors", 9.7.9.27).

The binary layout is undocumented; it was found by encoding many tensors with the DSL and with an H200's driver. Only
the first 64 of the 128 bytes are used.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from cutegen_lab.emulator.ptx.types import Array

SIZE = 128
READ = 64
_DTYPES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32", "f64", "bf16")
_BYTES = {"u8": 1, "u16": 2, "f16": 2, "bf16": 2, "u32": 4, "s32": 4, "f32": 4, "u64": 8, "s64": 8, "f64": 8}
_KINDS = (0, 2)  # marks of a map that the driver encoded, and of one that the DSL encoded
_SWIZZLE_BYTES = (16, 32, 64, 128)
_FLAGS = {"rank": (4, 3), "elemtype": (7, 4), "interleave_layout": (11, 2), "swizzle_mode": (13, 2),
          "fill_mode": (15, 1)}  # fmt: skip
INDEXED = ("box_dim", "global_dim", "global_stride", "element_stride")
_WHOLE = 0xFFFF_FFFF


class BadTensorMap(Exception):
    """The bytes are no tensor map, or one that the emulator does not support."""


@dataclass(frozen=True)
class TensorMap:
    """A tensor in global memory and the box that one copy moves. Every tuple has the innermost dimension first.

    ``strides``: bytes, the first is the element's size. ``box``: extents in indices of the tensor, of which every
    ``steps``-th is moved. ``swizzle``: width of the pattern in bytes (16: none). ``tf32``: loads round float32 to 19
    bits.
    """

    address: int
    dtype: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    swizzle: int
    fill_nan: bool = False
    tf32: bool = False

    @property
    def rank(self) -> int:
        return len(self.sizes)

    @property
    def element_bytes(self) -> int:
        return self.strides[0]

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Elements moved along each dimension."""
        return tuple(-(-b // s) for b, s in zip(self.box, self.steps, strict=True))

    @cached_property
    def tile_bytes(self) -> int:
        total = self.element_bytes
        for count in self.counts:
            total *= count
        return total

    @property
    def span(self) -> int:
        """Bytes from the address to the end of the last element."""
        return self.element_bytes + sum((n - 1) * s for n, s in zip(self.sizes, self.strides, strict=True))


def element_bytes(params: Iterable[bytes]) -> list[int]:
    """Element sizes, in bytes, of the tensor maps among a kernel's parameters."""
    found = []
    for raw in params:
        if len(raw) == SIZE:
            with suppress(BadTensorMap):
                found.append(decode(raw[:READ]).element_bytes)
    return found


@lru_cache(512)
def decode(raw: bytes) -> TensorMap:
    """Reads the first 64 bytes. Raises :class:`BadTensorMap`."""
    words = struct.unpack_from("<16I", raw)
    flags = words[2]
    rank, kind, interleave, swizzle = (flags >> 4 & 7) + 1, flags >> 7 & 15, flags >> 11 & 3, flags >> 13 & 3
    if flags & 15 not in _KINDS or rank > 5 or kind >= len(_DTYPES) or words[15]:
        raise BadTensorMap("these bytes are no tensor map")
    if interleave:
        raise BadTensorMap("the emulator does not support interleaved tensor maps")
    dtype = _DTYPES[kind]
    element = _BYTES[dtype]
    strides = [(words[3 + i] | (words[7] >> 4 * i & 15) << 32) << 4 for i in range(rank - 1)]
    steps = int.from_bytes(raw[52:55], "little")
    found = TensorMap(
        address=words[0] | words[1] << 32,
        dtype=dtype,
        sizes=tuple(n + 1 for n in words[8 : 8 + rank]),
        strides=(element, *strides),
        box=tuple(n + 1 for n in raw[55 : 55 + rank]),
        steps=tuple((steps >> 3 * i & 7) + 1 for i in range(rank)),
        swizzle=_SWIZZLE_BYTES[swizzle],
        fill_nan=bool(flags >> 15 & 1),
        tf32=bool(flags >> 16 & 1),
    )
    row = found.counts[0] * element
    if row % 16:
        raise BadTensorMap(f"a box row of {row} bytes is not a multiple of 16 bytes")
    if found.swizzle > 16 and row > found.swizzle:
        raise BadTensorMap(f"a box row of {row} bytes is wider than its swizzle of {found.swizzle} bytes")
    return found


def edits(field: str, index: int, value: Array) -> list[tuple[int, int, Array]]:
    """(index of a 32-bit word, mask, bits) of each change that sets ``field`` (a name of ``tensormap.replace``).
    ``index``: dimension, for :data:`INDEXED` fields; ``value``: uint64 by lane. ISA 9.7.9.27: the rank is
    given minus one, strides in bytes and without the first dimension's."""

    def shifted(number: Array, bits: int) -> Array:
        return np.asarray(number << np.uint64(bits))

    if field == "global_address":
        return [(0, _WHOLE, value & np.uint64(_WHOLE)), (1, _WHOLE, value >> np.uint64(32))]
    if field in _FLAGS:
        first, count = _FLAGS[field]
        return [(2, (1 << count) - 1 << first, shifted(value, first))]
    if field == "global_stride":
        high = shifted(value >> np.uint64(36), 4 * index)
        return [(3 + index, _WHOLE, value >> np.uint64(4) & np.uint64(_WHOLE)), (7, 15 << 4 * index, high)]
    less = value - np.uint64(1)
    if field == "global_dim":
        return [(8 + index, _WHOLE, less & np.uint64(_WHOLE))]
    if field == "element_stride":
        return [(13, 7 << 3 * index, shifted(less, 3 * index))]
    word, first = divmod(8 * (55 + index), 32)
    return [(word, 255 << first, shifted(less, first))]
