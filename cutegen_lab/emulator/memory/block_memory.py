"""Shared memory (a window for each block) and local memory (a window for each thread).

A shared address is a byte offset in the window; bits 24 and up hold 1 + the rank of another block of the cluster
(what ``mapa`` returns). A generic address is one of these plus the space's base (PTX ISA 5.1.4 and 6.4).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.memory.origins import Origins
from cutegen_lab.emulator.ptx.syntax import Instruction
from cutegen_lab.emulator.ptx.types import MARKED, RAW, Array
from cutegen_lab.emulator.races.shared_memory import SharedRaces
from cutegen_lab.emulator.roles import Group, HasLanes

GENERIC_SHARED = 0x4000_0000_0000_0000
GENERIC_LOCAL = 0x5000_0000_0000_0000
RANK_SHIFT = 24
_WINDOW = (1 << RANK_SHIFT) - 1
_TURN = 1 << 32


def wrapped(at: Array, address: Array) -> Array:
    """``at``, which is ``address`` plus an offset, modulo 2**32 if ``address`` is in 32-bit registers: ptxas emits
    [%r1+51184] for a %r1 that is negative as a signed number. A sum below 0 stays, so that a message says how far
    outside it is."""
    return np.where(at >= _TURN, at - _TURN, at) if np.asarray(address).dtype.itemsize == 4 else at


class BlockMemory:
    """``count`` windows of ``size`` usable bytes from ``first`` on. Fresh memory is poisoned with 0xFF bytes (NaN).

    ``cluster`` is the number of windows among which a rank in an address may choose (1: none).
    """

    def __init__(self, name: str, count: int, first: int, size: int, cluster: int, shadow: bool) -> None:
        self.name, self.first, self.limit, self.cluster = name, first, first + size, cluster
        self.stride = (
            max(-(-self.limit // 1024) * 1024, 1024) if name == "shared" else max(-(-self.limit // 16) * 16, 16)
        )
        self.data = np.full(count * self.stride, 0xFF, np.uint8)
        self.views: dict[int, Array] = {w: self.data.view(t) for w, t in RAW.items()}
        self.written: Array | None = None
        if shadow:
            self.written = np.zeros(count * self.stride, np.bool_)
            self._marks: dict[int, Array] = {w: self.written.view(t) for w, t in RAW.items()}
        self.races: SharedRaces | None = None  # set in race-detection mode
        self.reached: Callable[[Group, Array], None] | None = None  # called with the blocks that are accessed
        self._origins: Origins | None = None

    def index(self, g: Group, address: Array, offset: int, width: int, own: bool = False) -> Array:
        """Element index of each lane's ``width``-byte access. Traps outside the window or when misaligned. ``own``:
        only the window of the executing block is allowed."""
        at = np.atleast_1d(address).astype(np.int64)
        if offset:
            at += offset
        window = g.block if self.name == "shared" else self._threads(g)
        low, high = int(at.min()), int(at.max())
        if low < self.first or high + width > self.limit:
            if high >= _TURN:
                at = wrapped(at, address)
                high = int(at.max())
            if high >> RANK_SHIFT and self.name == "shared":
                window = self._ranks(g, at, own)
                at &= _WINDOW
            self._check(g, at, width)
        if int(np.bitwise_or.reduce(at)) & (width - 1):
            lane = int(np.flatnonzero(np.broadcast_to(at & (width - 1), (g.n,)))[0])
            bad = int(np.broadcast_to(at, (g.n,))[lane])
            message = f"{width}-byte access to {self.name} memory at {bad - self.first:#x}, not a multiple of {width}"
            raise Trap(Verdict.MISALIGNED, message, int(g.gid[lane]), bad)
        return (window * self.stride + at) >> (width.bit_length() - 1)

    def _threads(self, g: Group) -> Array:
        return g.gid

    def _ranks(self, g: Group, at: Array, own: bool) -> Array:
        rank = np.broadcast_to(at >> RANK_SHIFT, (g.n,))
        if int(rank.max()) > self.cluster:
            lane = int(np.flatnonzero(rank > self.cluster)[0])
            message = f"shared address of block rank {int(rank[lane]) - 1} in a cluster of {self.cluster}"
            raise Trap(Verdict.OUT_OF_BOUNDS, message, int(g.gid[lane]), int(np.broadcast_to(at, (g.n,))[lane]))
        window = np.where(rank == 0, g.block, g.block // self.cluster * self.cluster + rank - 1)
        if own and (window != g.block).any():
            lane = int(np.flatnonzero(window != g.block)[0])
            whose = f"that of block rank {int(rank[lane]) - 1}: use .shared::cluster"
            message = f"an instruction for the executing block's shared memory gets an address in {whose}"
            raise Trap(Verdict.OUT_OF_BOUNDS, message, int(g.gid[lane]), int(np.broadcast_to(at, (g.n,))[lane]))
        if self.reached is not None:
            self.reached(g, window)
        return window

    def _check(self, g: Group, at: Array, width: int) -> None:
        at = np.broadcast_to(at, (g.n,))
        bad = np.flatnonzero((at < self.first) | (at + width > self.limit))
        if len(bad):
            lane = int(bad[0])
            size = self.limit - self.first
            where = int(at[lane]) - self.first
            message = f"{width}-byte access to {self.name} memory at byte {where}, outside its {size} bytes"
            raise Trap(Verdict.OUT_OF_BOUNDS, message, int(g.gid[lane]), int(at[lane]))

    def load(self, g: Group, index: Array, width: int) -> Array:
        """``width`` bytes per lane, at ``index`` (from :meth:`index`)."""
        if self.races is not None:
            self.races.read(g, index, width)
        if self.written is not None and self._origins is None:
            self.check_written(g, index, width, follows=True)
        return np.asarray(self.views[width].take(index, mode="clip"))

    def store(self, g: Group, index: Array, width: int, value: Array) -> None:
        if self.races is not None:
            self.races.write(g, index, width, value)
        else:
            self.views[width][index] = value
        if self.written is not None:
            self.mark(index, width)

    def copy(self, g: Group, index: Array, width: int, value: Array) -> None:
        """As :meth:`store`, by an asynchronous copy."""
        if self.races is not None:
            self.races.copy(g, index, width, value)
            self.mark(index, width)
        else:
            self.store(g, index, width, value)

    def update(self, g: Group, index: Array, width: int) -> Array:
        """All cells of ``width`` bytes, for an atomic operation that changes those at ``index``."""
        self.check_written(g, index, width)
        if self.races is not None:
            self.races.update(g, index, width)
        return self.views[width]

    # --- uninitialised bytes -----------------------------------------------------------------------------------------

    def follow(self, origins: Origins) -> None:
        """Turns tags on: uninitialised bytes are no longer faults in :meth:`load`, but tagged (:mod:`isa.tags`)."""
        self._origins = origins
        self._cells = np.zeros(len(self.data) // 2, np.uint32)  # one tag for every two bytes

    def look(self, g: HasLanes, index: Array, width: int, site: int) -> bool:
        """True if a lane reads uninitialised or tagged bytes. Notes the first lane that reads uninitialised ones."""
        bad = np.flatnonzero(self._marks[width].take(index, mode="clip") != MARKED[width])
        if not len(bad):
            return False
        assert self._origins is not None
        if len(fresh := bad[self._spoilt(index[bad], width) == 0]):
            byte = int(index[fresh[0]]) * width % self.stride - self.first
            what = f"{width} bytes of {self.name} memory at byte {byte}"
            self._origins.note(site, what, int(g.gid[fresh[0]]), byte + self.first)
        return True

    def tags(self, index: Array, width: int, site: int) -> Array:
        """Tag of ``width`` bytes, by lane: 0, the one that :meth:`spoil` left, or ``site`` for uninitialised bytes."""
        bad = self._marks[width].take(index, mode="clip") != MARKED[width]
        found = self._spoilt(index, width)
        return np.where(bad, np.where(found == 0, site, found), 0).astype(np.uint32)

    def spoil(self, index: Array, width: int, tags: Array) -> None:
        """Marks stored bytes whose tag is not 0, which depend on uninitialised values, as uninitialised again."""
        if len(bad := np.flatnonzero(tags)):
            self._marks[width][index[bad]] = 0
            for cell in self._cells_of(index[bad], width):
                self._cells[cell] = tags[bad]

    def _spoilt(self, index: Array, width: int) -> Array:
        return np.asarray(np.maximum.reduce([self._cells[cell] for cell in self._cells_of(index, width)]))

    def _cells_of(self, index: Array, width: int) -> list[Array]:
        first = index * width >> 1
        return [first + i for i in range(max(width // 2, 1))]

    def missing(self, message: str, gid: int, index: int, width: int, by: Instruction | None) -> Trap:
        """The trap for an instruction that needs the uninitialised ``width`` bytes at ``index``."""
        tag = 0 if self._origins is None else int(self._spoilt(np.array([index]), width)[0])
        if tag and self._origins is not None:
            return self._origins.trap(tag, f"a later read of {self.name} memory depends on this value", by)
        at = index * width % self.stride
        return Trap(Verdict.UNINITIALISED_READ, message, gid, at)

    def check_written(self, g: Group, index: Array, width: int, follows: bool = False) -> None:
        """Traps for a read of uninitialised bytes, if writes are tracked. ``follows``: it is a fault only if an effect
        depends on the value."""
        if self.written is None:
            return
        good = self._marks[width].take(index, mode="clip") == MARKED[width]
        if not good.all():
            lane = int(np.flatnonzero(~good)[0])
            byte = int(index[lane]) * width % self.stride - self.first
            message = f"reads {width} bytes of {self.name} memory at byte {byte}, which nothing has written"
            trap = self.missing(message, int(g.gid[lane]), int(index[lane]), width, None)
            trap.follows = follows
            raise trap

    def all_written(self, pieces: Array) -> bool:
        """True if all these 16-byte pieces have been written, or writes are not tracked."""
        return self.written is None or bool((self._marks[16].take(pieces) == MARKED[16]).all())

    def unmark(self, index: Array, width: int) -> None:
        """Marks bytes as uninitialised."""
        if self.written is not None:
            self._marks[width][index] = 0

    def mark(self, index: Array, width: int) -> None:
        if self.written is not None:
            self._marks[width][index] = MARKED[width]
