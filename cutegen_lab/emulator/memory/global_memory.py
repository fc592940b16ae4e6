"""Global memory: the buffers that a launch was given, at made-up device addresses far apart.

Every access is checked to lie inside one buffer and to be aligned; NumPy never indexes past a buffer. A store to a
read-only buffer is a fault. ``shadow`` tracks for each byte of outputs and workspace whether it was written.
"""

from __future__ import annotations

import numpy as np

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator.buffer import Buffer
from cutegen_lab.emulator.execution_order import SLOT
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.memory.printf import Printed
from cutegen_lab.emulator.ptx.types import RAW, Array
from cutegen_lab.emulator.races.global_memory import GlobalRaces
from cutegen_lab.emulator.races.store_owners import StoreOwners
from cutegen_lab.emulator.roles import HasLanes

FIRST_ADDRESS = 0x7F00_0000_0000
TENSORS_END = 1 << 48  # parameters and a module's own data lie beyond this address
GUARD = SLOT  # bytes between buffers: an index that runs past the end of one does not reach the next


class Lanes:
    """A minimal :class:`HasLanes`."""

    def __init__(
        self, gid: Array, hardware: bool = False, until: tuple[int, int] | None = None, copies: bool = False
    ) -> None:
        self.gid, self.hardware, self.until, self.copies = gid, hardware, until, copies

    def where(self, mask: Array) -> Lanes:
        return Lanes(self.gid[mask], self.hardware, self.until, self.copies)


class GlobalMemory:
    """``races``: detector of races between blocks. ``far``: offset of the first tensor, in multiples of ``GUARD``."""

    def __init__(self, races: GlobalRaces | None = None, far: int = 0) -> None:
        self.races = races
        self.owners: StoreOwners | None = None  # finds conflicting stores of unordered clusters
        self.buffers: list[Buffer] = []
        self.printed = Printed()  # a GPU too keeps printed text in device memory
        self._next = FIRST_ADDRESS + far * GUARD

    def add(
        self, name: str, data: Array, *, shadow: bool = False, base: int | None = None, past: int = 0,
        constant: bool = False,
    ) -> Buffer:  # fmt: skip
        """Registers ``data`` (uint8, one axis), which stays the caller's memory. Returns its buffer.

        Without ``base`` it lies ``past`` bytes after the next multiple of ``GUARD``.
        """
        if base is None:
            base = self._next + past
            self._next += -(-(len(data) + past + GUARD) // GUARD) * GUARD
        views: dict[int, Array] = {w: data[: len(data) // w * w].view(RAW[w]) for w in RAW}
        buffer = Buffer(name, base, data, views, np.zeros(len(data), np.bool_) if shadow else None, constant)
        if self.races is not None and not constant:
            buffer.writers = self.races.table(len(data))
        self.buffers.append(buffer)
        return buffer

    def remove(self, buffer: Buffer) -> None:
        self.buffers.remove(buffer)

    def load(self, g: HasLanes, address: Array, width: int) -> Array:
        """``width`` bytes at each lane's address, as an array of :data:`RAW`\\ ``[width]``."""
        buffer = self._one(address, width)
        if buffer is not None:
            index = self._index(g, buffer, address, width)
            self._require_alone(buffer, g.gid, address, reads=True)
            if buffer.written is not None:
                self._check_written(g, buffer, address, width)
            if self.races is not None and buffer.writers is not None:
                self.races.load(buffer, g, address, width)
            return np.asarray(buffer.views[width].take(index, mode="clip"))
        out: Array = np.empty(len(address), RAW[width])
        for mask in self._several(g, address, width):
            out[mask] = self.load(Lanes(g.gid, g.hardware, g.until, g.copies).where(mask), address[mask], width)
        return out

    def read(self, gid: int, address: int, size: int) -> bytes:
        """``size`` bytes that hardware reads (a tensor map); only bounds are checked."""
        for buffer in self.buffers:
            if buffer.base <= address and address + size <= buffer.end:
                return buffer.data[address - buffer.base : address - buffer.base + size].tobytes()
        raise Trap(Verdict.OUT_OF_BOUNDS, f"{size} bytes at {address:#x} lie in no tensor", gid, address)

    def string(self, gid: int, address: int, most: int) -> bytes:
        """The bytes before the first zero from ``address`` on, at most ``most``."""
        for buffer in self.buffers:
            if buffer.base <= address < buffer.end:
                at = address - buffer.base
                return buffer.data[at : at + most].tobytes().partition(b"\0")[0]
        raise Trap(Verdict.OUT_OF_BOUNDS, f"a string at {address:#x} lies in no tensor", gid, address)

    def store(self, g: HasLanes, address: Array, width: int, value: Array) -> None:
        buffer = self._one(address, width)
        if buffer is not None:
            if buffer.constant:
                raise _modified(g, buffer, address, width)
            index = self._index(g, buffer, address, width)
            self._require_alone(buffer, g.gid, address, reads=False)
            if self.races is not None and buffer.writers is not None:
                self.races.store(buffer, g.gid, address, width, index, value, g.hardware)
            elif self.owners is not None and buffer.owners is not None and not g.hardware:
                self.owners.store(buffer, g.gid, width, index, value)
            else:
                buffer.views[width][index] = value
            if buffer.written is not None:
                self._mark(buffer, address, width)
            return
        value = np.broadcast_to(value, address.shape)
        for mask in self._several(g, address, width):
            self.store(Lanes(g.gid[mask], g.hardware), address[mask], width, value[mask])

    def discard(self, g: HasLanes, address: Array, width: int) -> None:
        """Makes bytes undefined: uninitialised, with their values from before the first launch, where known."""
        buffer = self._one(address, width)
        if buffer is None:
            for mask in self._several(g, address, width):
                self.discard(Lanes(g.gid[mask], g.hardware), address[mask], width)
            return
        at = self._index(g, buffer, address, width)[:, None] * width + np.arange(width)
        before = np.full(at.shape, 0xFF, np.uint8) if buffer.initial is None else buffer.initial[at]
        for first in range(0, width, 16):
            piece: Array = np.ascontiguousarray(before[:, first : first + 16]).view(RAW[16]).ravel()
            self.store(g, address + np.uint64(first), 16, piece)
        if buffer.written is not None:
            buffer.written[at] = False

    def locate(self, g: HasLanes, address: Array, width: int) -> tuple[Buffer, Array]:
        """(buffer, element index) of an atomic operation, whose lanes must access one buffer. Counts as a read and a
        write."""
        buffer = self._one(address, width)
        if buffer is None:
            found = self._several(g, address, width)
            raise Trap(Verdict.UNSUPPORTED, f"one atomic instruction accesses {len(found)} tensors", int(g.gid[0]))
        if buffer.constant:
            raise _modified(g, buffer, address, width)
        index = self._index(g, buffer, address, width)
        self._require_alone(buffer, g.gid, address, reads=False)
        if buffer.written is not None:
            self._check_written(g, buffer, address, width)
        if self.races is not None and buffer.writers is not None:
            self.races.update(buffer, g.gid, address, width)
        return buffer, index

    def _require_alone(self, buffer: Buffer, gid: Array, address: Array, *, reads: bool) -> None:
        if self.races is not None and self.races.meets_others and buffer.base < TENSORS_END:
            self.races.require_alone(buffer, gid, address, reads=reads)

    def _one(self, address: Array, width: int) -> Buffer | None:
        """The buffer that contains every lane's access; None if no single buffer does."""
        low = int(np.minimum.reduce(address))
        for buffer in self.buffers:
            if buffer.base <= low < buffer.end:
                return buffer if int(np.maximum.reduce(address)) + width <= buffer.end else None
        return None

    def _index(self, g: HasLanes, buffer: Buffer, address: Array, width: int) -> Array:
        if int(np.bitwise_or.reduce(address)) & (width - 1):
            lane = int(np.flatnonzero(address & np.uint64(width - 1))[0])
            at = int(address[lane])
            message = (
                f"{width}-byte access to {buffer.name} at byte {at - buffer.base}, which is not a multiple of {width}"
            )
            raise Trap(Verdict.MISALIGNED, message, int(g.gid[lane]), at)
        offset = address - np.uint64(buffer.base)
        offset >>= np.uint64(width.bit_length() - 1)
        return offset.view(np.int64)

    def _several(self, g: HasLanes, address: Array, width: int) -> list[Array]:
        """One mask of lanes for each accessed buffer. Traps for a lane outside all buffers."""
        found: list[Array] = []
        done = np.zeros(len(address), np.bool_)
        for buffer in self.buffers:
            if len(buffer.data) < width:
                continue
            inside = (address >= np.uint64(buffer.base)) & (address <= np.uint64(buffer.end - width))
            if inside.any():
                found.append(inside)
                done |= inside
        if not done.all():
            lane = int(np.flatnonzero(~done)[0])
            at = int(address[lane])
            message = f"{width}-byte access outside every tensor: {self._nearest(at)}"
            raise Trap(Verdict.OUT_OF_BOUNDS, message, int(g.gid[lane]), at)
        return found

    def _nearest(self, at: int) -> str:
        if not self.buffers:
            return "there are none"
        near = min(self.buffers, key=lambda b: min(abs(at - b.base), abs(at - b.end)))
        if near.base <= at < near.end:
            return f"it runs past the end of {near.name} ({len(near.data)} bytes) from byte {at - near.base}"
        if at >= near.end:
            return f"{at - near.end} bytes past the end of {near.name} ({len(near.data)} bytes)"
        return f"{near.base - at} bytes before {near.name}"

    def _mark(self, buffer: Buffer, address: Array, width: int) -> None:
        assert buffer.written is not None
        offset = (address - np.uint64(buffer.base)).view(np.int64)
        if width == 1:
            buffer.written[offset] = True
        else:
            buffer.written[: len(buffer.written) // width * width].reshape(-1, width)[offset // width] = True

    def _check_written(self, g: HasLanes, buffer: Buffer, address: Array, width: int) -> None:
        assert buffer.written is not None
        offset = (address - np.uint64(buffer.base)).view(np.int64)
        table = buffer.written[: len(buffer.written) // width * width].reshape(-1, width)
        good = table[offset // width].all(axis=1)
        if not good.all():
            lane = int(np.flatnonzero(~good)[0])
            message = f"reads {width} bytes of {buffer.name} at byte {int(offset[lane])}, which nothing has written"
            raise Trap(Verdict.UNINITIALISED_READ, message, int(g.gid[lane]), int(address[lane]))


def _modified(g: HasLanes, buffer: Buffer, address: Array, width: int) -> Trap:
    at = int(address[0])
    message = f"writes {width} bytes of {buffer.name}, which is only for reading, at byte {at - buffer.base}"
    return Trap(Verdict.INPUT_MODIFIED, message, int(g.gid[0]), at)
