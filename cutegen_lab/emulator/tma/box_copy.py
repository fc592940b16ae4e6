"""Moves one box of a tensor between global and shared memory, as a tensor copy does (PTX ISA 5.5.3 to 5.5.6).

Elements outside the tensor read as zeros (or NaN) and are not written, with one exception that the ISA does not
document: an H200 writes whole pieces of 16 bytes. A store or reduction past the end of the innermost dimension writes
up to the next multiple of 16 bytes. A store with a negative coordinate, or an innermost one that is no multiple of 16
bytes, is an illegal instruction (benchmarks/results/bulk_stores_on_gpu.json). Loads have neither rule. In shared memory
the box is dense, innermost dimension first; a swizzle of 128 bytes XORs bits 4 to 6 of the address of each 16-byte
piece with bits 7 to 9, a narrower swizzle fewer bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from cutegen_lab.core.counters import SECTOR_BYTES
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator.buffer import Buffer
from cutegen_lab.emulator.counters.bulk_sectors import box_sectors
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.memory.global_memory import GlobalMemory, Lanes
from cutegen_lab.emulator.ptx.rounding import bf16_to_f32, to_bf16
from cutegen_lab.emulator.ptx.types import MARKED, RAW, Array
from cutegen_lab.emulator.tma.tensor_map import TensorMap

_REPEAT = 1024  # bytes after which every swizzle repeats
_PIECE = 16  # bytes per piece
_NUMPY = {"u8": np.uint8, "u16": np.uint16, "f16": np.float16, "u32": np.uint32, "s32": np.int32, "f32": np.float32,
          "u64": np.uint64, "s64": np.int64, "f64": np.float64}  # fmt: skip
Reduction = Callable[[Array, Array], Array]


class MappedTensor:
    """A tensor map with the buffer that contains its tensor."""

    def __init__(self, tmap: TensorMap, memory: GlobalMemory, gid: int) -> None:
        self.map, self._memory = tmap, memory
        self.buffer = _buffer(tmap, memory, gid)
        self._raw: Any = RAW[tmap.element_bytes]
        offset = tmap.address - self.buffer.base
        self._view = _strided(self.buffer.data, offset, tmap, self._raw)
        self._plain = all(step == 1 for step in tmap.steps)
        self._most = tuple(n - c for n, c in zip(tmap.sizes, tmap.counts, strict=True))
        self._box = tuple(slice(0, n) for n in tmap.counts[::-1])
        self._first = offset

    def load(
        self, gid: int, coordinates: tuple[int, ...], until: tuple[int, int] | None = None
    ) -> tuple[Array, int, int]:
        """(the box as 16-byte pieces, sectors, bytes). ``until``: when the read is complete (:class:`HasLanes`)."""
        source, target, inside = self._slices(coordinates)
        if target is not None:
            self._check("load", gid, source, until=until)
        box = np.ascontiguousarray(self._view[source]) if inside else self._filled(source, target)
        sectors, size = self._traffic(source, target, stores=False)
        if self.map.tf32:
            box = round_tf32(box)
        return box.reshape(-1).view(np.complex128), sectors, size

    def store(self, gid: int, coordinates: tuple[int, ...], pieces: Array, reduce: Reduction | None) -> tuple[int, int]:
        """Writes a box, or reduces it into memory. Returns (sectors, bytes) written."""
        source, target, _ = self._slices(coordinates)
        if self.buffer.constant:
            message = f"writes {self.buffer.name}, which is only for reading, by a bulk copy"
            raise Trap(Verdict.INPUT_MODIFIED, message, gid, self.map.address)
        self._legal_store(gid, coordinates)
        if target is None:
            return 0, 0
        whole = pieces.view(self._raw).reshape(self.map.counts[::-1])
        self._beside(gid, source, target, whole, reduce)
        box = whole[target]
        if reduce is not None:
            self._check("load", gid, source)
            box = reduce(self._view[source], box)
        self._check("store", gid, source, box)
        self._view[source] = box
        return self._traffic(source, target, stores=True)

    def _legal_store(self, gid: int, coordinates: tuple[int, ...]) -> None:
        begins = coordinates[0] * self.map.element_bytes
        if begins % _PIECE or min(coordinates) < 0:
            message = (
                f"a bulk copy to global memory begins at byte {begins} of a row, coordinates {coordinates}: the byte "
                f"must be a multiple of {_PIECE}, and no coordinate may be negative"
            )
            raise Trap(Verdict.LAUNCH_FAILURE, message, gid, self.map.address)

    def _beside(
        self, gid: int, source: tuple[slice, ...], target: tuple[slice, ...], box: Array, reduce: Reduction | None
    ) -> None:
        """Writes a store's elements past the end of the tensor's rows, if these end within a piece of 16 bytes."""
        tmap, end = self.map, target[-1].stop
        length = tmap.sizes[0] * tmap.element_bytes
        over = -length % _PIECE
        more = over // tmap.element_bytes
        if not more or tmap.steps[0] != 1 or source[-1].stop != tmap.sizes[0] or end == tmap.counts[0]:
            return
        at = self._addresses((*source[:-1], slice(tmap.sizes[0], tmap.sizes[0] + more, 1)))
        if at[-1] + np.uint64(tmap.element_bytes) > self.buffer.end:
            what = f"a bulk copy to global memory writes whole pieces of {_PIECE} bytes"
            message = f"{what}: after rows of {length} bytes it writes {over} more, past the end of {self.buffer.name}"
            raise Trap(Verdict.OUT_OF_BOUNDS, message, gid, int(at[-1]))
        lanes, values = Lanes(np.full(len(at), gid), hardware=True), box[(*target[:-1], slice(end, end + more))].ravel()
        if reduce is not None:
            values = reduce(self._memory.load(lanes, at, tmap.element_bytes), values)
        self._memory.store(lanes, at, tmap.element_bytes, values)

    def starts(self, coordinates: Array) -> Array | None:
        """The 16-byte piece of the buffer at which each box [boxes, rank] begins. None if boxes must be moved one by
        one: some are out of bounds or not in whole pieces, or races are detected."""
        if (
            (self._memory.races is not None and self.buffer.writers is not None)
            or not self._plain
            or (coordinates < 0).any()
            or (coordinates > self._most).any()
        ):
            return None
        first = coordinates @ np.array(self.map.strides) + self._first
        return None if (first & 15).any() else first >> 4

    @cached_property
    def box_pieces(self) -> Array:
        """Offsets of a box's pieces from the first, in box order."""
        tmap = self.map
        found = np.arange(tmap.counts[0] * tmap.element_bytes >> 4)
        for count, stride in zip(tmap.counts[1:], tmap.strides[1:], strict=True):
            found = (np.arange(count)[:, None] * (stride >> 4) + found).ravel()
        return found

    def gather(self, starts: Array, box: Array) -> Array | None:
        """[boxes, pieces]: pieces ``box`` (offsets) of each box from ``starts``. None if some were never written."""
        at, written = starts[:, None] + box, self.buffer.written
        if written is not None and not (_pieces_of(written).take(at) == MARKED[16]).all():
            return None
        found = self.buffer.views[16].take(at)
        return round_tf32(found.view(np.uint32)).view(found.dtype) if self.map.tf32 else found

    def scatter(self, starts: Array, box: Array, data: Array) -> None:
        """The inverse of :meth:`gather`."""
        at, written = starts[:, None] + box, self.buffer.written
        self.buffer.views[16][at] = data
        if written is not None:
            _pieces_of(written)[at] = MARKED[16]

    def traffic(self, kind: str, coordinates: tuple[int, ...]) -> tuple[int, int]:
        """(sectors, bytes) of memory that the "load" or "store" of one box moves."""
        source, target, _ = self._slices(coordinates)
        return self._traffic(source, target, stores=kind == "store")

    def _filled(self, source: tuple[slice, ...], target: tuple[slice, ...] | None) -> Array:
        """A box that is partly or entirely out of bounds."""
        box: Array = np.full(self.map.counts[::-1], self._fill(), self._raw)
        if target is not None:
            box[target] = self._view[source]
        return box

    def _fill(self) -> Any:
        """Zero, or the NaN that an H200 uses for any type."""
        pattern = 0x7FF7_7FF7_7FF7_7FF7 if self.map.fill_nan else 0
        return self._raw(pattern & (1 << 8 * self.map.element_bytes) - 1)

    def _slices(self, coordinates: tuple[int, ...]) -> tuple[tuple[slice, ...], tuple[slice, ...] | None, bool]:
        """(slices of the tensor, slices of the box or None if it is out of bounds, True if it is all in bounds)."""
        tmap = self.map
        if self._plain and all(0 <= c <= m for c, m in zip(coordinates, self._most, strict=True)):
            found = tuple(slice(c, c + n) for c, n in zip(coordinates, tmap.counts, strict=True))
            return found[::-1], self._box, True
        source, target, inside, empty = [], [], True, False
        for at, size, count, step in zip(coordinates, tmap.sizes, tmap.counts, tmap.steps, strict=True):
            first = max(0, -(at // step)) if at < 0 else 0
            last = min(count, -(-(size - at) // step))
            inside &= first == 0 and last == count
            empty |= last <= first
            source.append(slice(at + first * step, at + (last - 1) * step + 1, step))
            target.append(slice(first, last))
        return tuple(source[::-1]), None if empty else tuple(target[::-1]), inside

    def _traffic(self, source: tuple[slice, ...], target: tuple[slice, ...] | None, stores: bool) -> tuple[int, int]:
        if target is None:
            return 0, 0
        tmap, inner = self.map, source[-1]
        first, place, pitch, dims = tmap.address, 0, tmap.element_bytes, []
        for part, box, count, stride in zip(source[::-1], target[::-1], tmap.counts, tmap.strides, strict=True):
            first, place = first + part.start * stride, place + box.start * pitch
            dims.append((box.stop - box.start, (part.step or 1) * stride % SECTOR_BYTES, pitch))
            pitch *= count
        width = (inner.stop - inner.start) * tmap.element_bytes
        moved = math.prod(n for n, _, _ in dims) * tmap.element_bytes
        return box_sectors(first % SECTOR_BYTES, place if stores else None, tuple(dims[1:]), width), moved

    def _check(
        self, kind: str, gid: int, source: tuple[slice, ...], box: Array | None = None,
        until: tuple[int, int] | None = None,
    ) -> None:  # fmt: skip
        """Checks for unwritten bytes and races, if these are tracked."""
        races = self._memory.races if self.buffer.writers is not None else None
        if self.buffer.written is None and races is None:
            return
        at = self._addresses(source)
        lanes = Lanes(np.full(len(at), gid), hardware=True, until=until)
        if kind == "load":
            self._memory.load(lanes, at, self.map.element_bytes)
        else:
            assert box is not None
            self._memory.store(lanes, at, self.map.element_bytes, np.ascontiguousarray(box).ravel())

    def _addresses(self, source: tuple[slice, ...]) -> Array:
        """Addresses of the elements, in box order."""
        address: Array = np.array(self.map.address, np.uint64)
        for part, stride in zip(source, self.map.strides[::-1], strict=True):
            walked = np.arange(part.start, part.stop, part.step, dtype=np.uint64)
            address = address[..., None] + walked * np.uint64(stride)
        return address.ravel()


def _pieces_of(written: Array) -> Array:
    return written[: len(written) // 16 * 16].view(RAW[16])


def _buffer(tmap: TensorMap, memory: GlobalMemory, gid: int) -> Buffer:
    end = tmap.address + tmap.span
    for buffer in memory.buffers:
        if buffer.base <= tmap.address and end <= buffer.end:
            return buffer
    message = f"a tensor map describes {tmap.span} bytes at {tmap.address:#x}, which lie in no tensor"
    raise Trap(Verdict.OUT_OF_BOUNDS, message, gid, tmap.address)


def _strided(data: Array, offset: int, tmap: TensorMap, kind: Any) -> Array:
    return np.ndarray(tmap.sizes[::-1], kind, data, offset, tmap.strides[::-1])


def round_tf32(bits: Array) -> Array:
    """Rounds float32 bits to nearest even with 10 bits of mantissa; every NaN becomes the same NaN, as on an H200."""
    near = bits + np.uint32(0xFFF) + (bits >> np.uint32(13) & np.uint32(1)) & np.uint32(0xFFFFE000)
    return np.where(np.isnan(bits.view(np.float32)), np.uint32(0x7FFFE000), near)


@lru_cache(4096)
def pieces(offset: int, size: int, swizzle: int) -> Array:
    """Numbers of the 16-byte pieces of shared memory for ``size`` bytes from ``offset``, swizzled."""
    if offset >= _REPEAT:
        base = offset // _REPEAT * _REPEAT
        return pieces(offset - base, size, swizzle) + (base >> 4)
    at = offset + np.arange(0, size, 16)
    at ^= (at >> 7 & swizzle // 16 - 1) << 4
    found: Array = at >> 4
    found.flags.writeable = False
    return found


def reduction(name: str, dtype: str) -> Reduction:
    """The reduction of ``cp.reduce.async.bulk`` on raw elements of ``dtype``. Raises KeyError if PTX has none."""
    if name in ("and", "or", "xor"):
        bitwise: Reduction = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[name]
        return bitwise
    ufunc = {"add": np.add, "min": np.fmin, "max": np.fmax}.get(name)
    if ufunc is None or (dtype == "bf16" and name not in ("add", "min", "max")):
        raise KeyError(name)
    if dtype == "bf16":
        return lambda old, new: to_bf16(ufunc(bf16_to_f32(old), bf16_to_f32(new)))
    kind = _NUMPY[dtype]
    return lambda old, new: ufunc(_typed(old, kind), _typed(new, kind)).astype(kind).view(old.dtype)


def _typed(raw: Array, kind: Any) -> Array:
    return np.ascontiguousarray(raw).view(kind)
