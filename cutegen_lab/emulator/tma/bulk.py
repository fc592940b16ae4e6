"""Bulk copies: cp.async.bulk and cp.async.bulk.tensor (PTX ISA 9.7.9.25.4 to 9.7.9.25.6).

A copy into shared memory completes bytes on an mbarrier. It is done immediately or, in race-detection mode, as late as
possible: when nothing else can run, one mbarrier of each block at a time. Until then its destination counts as
unwritten. A copy out of shared memory is done immediately; :mod:`async_proxy` checks that its source is not overwritten
before the wait.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator.counters.launch_counters import Counters
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.memory.block_memory import RANK_SHIFT, BlockMemory
from cutegen_lab.emulator.memory.global_memory import GlobalMemory
from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.races.async_proxy import AsyncProxyRaces
from cutegen_lab.emulator.races.shared_memory import generated_line
from cutegen_lab.emulator.roles import Blocks
from cutegen_lab.emulator.tma.box_copy import MappedTensor, Reduction, pieces
from cutegen_lab.emulator.tma.ragged import SPAN_BYTES, RaggedTensor
from cutegen_lab.emulator.tma.tensor_map import READ, SIZE, BadTensorMap, decode

_OFFSET = (1 << RANK_SHIFT) - 1
TENSOR_ALIGN = 128
BULK_ALIGN = 16


@dataclass(frozen=True)
class Landing:
    """A bulk copy in flight to the 16-byte pieces ``place`` of the CTA batch's shared memory. ``slot``: its
    mbarrier."""

    gid: int
    place: Array
    data: Array
    slot: int
    age: int  # completed phases of the mbarrier when the copy was issued
    line: int  # line of generated code


class TransactionBarriers(Protocol):
    """mbarriers, on which bytes of bulk copies complete."""

    @property
    def age(self) -> Array: ...  # by slot: phases completed

    def require(self, slots: tuple[int, ...], gid: int) -> None: ...  # traps if one of ``slots`` has no mbarrier

    def land(self, gid: int, slot: int, size: int) -> None: ...  # completes ``size`` bytes

    def land_together(self, slots: Array, size: int) -> None: ...  # completes ``size`` bytes on each of ``slots``


class CopyingBlocks(Blocks, Protocol):
    """The part of a CTA batch that bulk copies need."""

    memory: GlobalMemory
    shared: BlockMemory  # shared memory of the blocks
    counters: Counters  # counters of the launch
    async_races: AsyncProxyRaces | None  # set in race-detection mode
    ended: bool  # whether all threads of some block have exited

    @property
    def mbarriers(self) -> TransactionBarriers: ...  # mbarriers of the blocks

    @property
    def bulk(self) -> BulkCopies: ...  # bulk copies that the blocks issued

    def have_ended(self, blocks: Array) -> Array: ...  # mask of ``blocks`` that have no running thread

    def require_running(self, gid: int, block: int) -> None: ...  # traps if a thread accesses a block that has ended


class BulkCopies:
    """``late``: copies into shared memory wait for :meth:`deliver`."""

    def __init__(self, ctas: CopyingBlocks, late: bool) -> None:
        self._ctas, self._late = ctas, late
        self._tensors: dict[bytes, MappedTensor] = {}
        self._pending: list[Landing] = []

    @property
    def together(self) -> bool:
        """True if copies of one instruction may be done together."""
        return not self._late

    @property
    def under_way(self) -> tuple[Landing, ...]:
        """Copies into shared memory that are in flight."""
        return tuple(self._pending)

    # --- places ------------------------------------------------------------------------------------------------------

    def block(self, gid: int, address: int) -> int:
        """The block, by its number in the CTA batch, of a shared address of thread ``gid``."""
        own, rank = gid // self._ctas.padded_threads, address >> RANK_SHIFT
        if rank > self._ctas.cluster_size:
            message = f"shared address of block rank {rank - 1} in a cluster of {self._ctas.cluster_size}"
            raise Trap(Verdict.OUT_OF_BOUNDS, message, gid, address)
        block = own if rank == 0 else own // self._ctas.cluster_size * self._ctas.cluster_size + rank - 1
        self._ctas.require_running(gid, block)
        return block

    def span(self, gid: int, address: int, size: int, align: int) -> int:
        """Offset of ``address`` in its block's window. Traps if it is misaligned, or ``size`` bytes there leave the
        window."""
        offset, shared = address & _OFFSET, self._ctas.shared
        if offset < shared.first or offset + size > shared.limit:
            where, total = offset - shared.first, shared.limit - shared.first
            message = f"a bulk copy of {size} bytes at byte {where} of shared memory, which has {total} bytes"
            raise Trap(Verdict.OUT_OF_BOUNDS, message, gid, address)
        if offset % align:
            message = f"a bulk copy at shared address {offset:#x}, not a multiple of {align}"
            raise Trap(Verdict.MISALIGNED, message, gid, address)
        return offset

    def tensor(self, gid: int, address: int) -> MappedTensor:
        """The tensor of the map at a generic or global address."""
        raw = self._ctas.memory.read(gid, address, SIZE)
        found = self._tensors.get(raw)
        if found is None:
            try:
                tmap, memory = decode(raw[:READ]), self._ctas.memory
                ragged = tmap.span >= SPAN_BYTES
                found = self._tensors[raw] = RaggedTensor(tmap, memory) if ragged else MappedTensor(tmap, memory, gid)
            except BadTensorMap as bad:
                raise Trap(Verdict.UNSUPPORTED, f"tensor map at {address:#x}: {bad}", gid, address) from bad
        return found

    # --- into shared memory ------------------------------------------------------------------------------------------

    def land(self, gid: int, to: int, where: Array, data: Array, barrier: int, mask: int | None) -> None:
        """Copies ``data`` to pieces ``where`` of the block in which ``to`` lies, or of each block in multicast
        ``mask``."""
        ctas = self._ctas
        step = ctas.shared.stride
        if mask is None:
            blocks = [self.block(gid, to)]
            slots: tuple[int, ...] = (self._slot(gid, barrier),)
            if slots[0] * 8 // step != blocks[0]:
                message = "a bulk copy writes to one block's shared memory and completes on another block's mbarrier"
                raise Trap(Verdict.LAUNCH_FAILURE, message, gid)
        else:
            blocks, at = self.multicast(gid, mask), self.span(gid, barrier, 8, 8)
            slots = tuple(block * step + at >> 3 for block in blocks)
        ctas.mbarriers.require(slots, gid)
        for block, slot in zip(blocks, slots, strict=True):
            place = where + (block * step >> 4)
            if self._late:
                self._pending.append(self._announce(gid, place, data, slot))
            else:
                self._finish(gid, place, data, slot)

    def until(self, gid: int, barrier: int, mask: int | None) -> tuple[int, int] | None:
        """When a copy into shared memory has read its source (:class:`~cutegen_lab.emulator.roles.HasLanes`). None for
        multicasts, where each block waits for its own part."""
        races = self._ctas.async_races
        if races is None or mask is not None:
            return None
        slot = self._slot(gid, barrier)
        return races.column(slot), int(self._ctas.mbarriers.age[slot]) + 1

    def _slot(self, gid: int, barrier: int) -> int:
        return self.block(gid, barrier) * self._ctas.shared.stride + self.span(gid, barrier, 8, 8) >> 3

    def multicast(self, gid: int, mask: int) -> list[int]:
        """The blocks of the cluster that ``mask`` names, by their numbers in the CTA batch."""
        size = self._ctas.cluster_size
        first = gid // self._ctas.padded_threads // size * size
        if mask >> size or not mask:
            raise Trap(Verdict.LAUNCH_FAILURE, f"multicast to blocks {mask:#x} of a cluster of {size}", gid)
        return [first + rank for rank in range(size) if mask >> rank & 1]

    def _announce(self, gid: int, place: Array, data: Array, slot: int) -> Landing:
        """Starts a copy: its destination counts as unwritten."""
        ctas = self._ctas
        if ctas.async_races is not None:
            ctas.async_races.uses_barrier(gid, slot, hardware=True)
            ctas.async_races.lands(gid, place, slot)
        if ctas.shared.written is not None:
            ctas.shared.written.reshape(-1, 16)[place] = False
        return Landing(gid, place, data, slot, int(ctas.mbarriers.age[slot]), generated_line(ctas.program))

    def deliver(self, wanted: Container[int]) -> bool:
        """Completes the copies on the mbarriers ``wanted`` or, if there are none, on that of the oldest copy: hardware
        may complete them in any order. False if no copy was in flight."""
        if not self._pending:
            return False
        if not any(landing.slot in wanted for landing in self._pending):
            wanted = {self._pending[0].slot}
        landed = [landing for landing in self._pending if landing.slot in wanted]
        self._pending = [landing for landing in self._pending if landing.slot not in wanted]
        for landing in landed:
            if self._ctas.mbarriers.age[landing.slot] != landing.age:
                message = "a bulk copy completes after the phase of its mbarrier: too few bytes were expected"
                raise self._trap(landing, message)
            self._finish(landing.gid, landing.place, landing.data, landing.slot)
        return True

    def exit(self, block: int) -> None:
        """Traps if a copy is in flight to the shared memory of a block that ends."""
        step = self._ctas.shared.stride >> 4
        for landing in self._pending:
            if landing.place[0] // step == block:
                raise self._trap(landing, "a block ends while a bulk copy into its shared memory is under way")

    def _trap(self, landing: Landing, message: str) -> Trap:
        trap = Trap(Verdict.NON_DETERMINISTIC, message, landing.gid)
        trap.instruction = self._ctas.program.source_map.get(landing.line)
        return trap

    def _finish(self, gid: int, place: Array, data: Array, slot: int) -> None:
        shared = self._ctas.shared
        shared.views[16][place] = data
        if shared.written is not None:
            shared.written.reshape(-1, 16)[place] = True
        self._ctas.mbarriers.land(gid, slot, len(data) * 16)

    # --- out of shared memory ----------------------------------------------------------------------------------------

    def take(self, gid: int, address: int, where: Array, barrier: int | None = None) -> Array:
        """16-byte pieces ``where`` of the block's shared memory, for a copy that completes with a bulk group, or on the
        mbarrier at ``barrier``."""
        shared = self._ctas.shared
        place = where + (self.block(gid, address) * shared.stride >> 4)
        if self._ctas.async_races is not None:
            self._ctas.async_races.leaves(gid, place, None if barrier is None else self._slot(gid, barrier))
        if shared.written is not None and not shared.written.reshape(-1, 16)[place].all():
            missing = int(place[~shared.written.reshape(-1, 16)[place].all(axis=1)][0])
            byte = missing * 16 % shared.stride - shared.first
            message = f"a bulk copy reads shared memory at byte {byte}, which nothing has written"
            raise shared.missing(message, gid, missing, 16, self._ctas.instruction())
        return np.asarray(shared.views[16][place])


def tensor_load(
    ctas: CopyingBlocks,
    gid: int,
    tensor: MappedTensor,
    coordinates: tuple[int, ...],
    to: int,
    barrier: int,
    mask: int | None,
) -> None:
    """One ``cp.async.bulk.tensor`` from global to shared memory."""
    tmap = tensor.map
    offset = ctas.bulk.span(gid, to, tmap.tile_bytes, TENSOR_ALIGN)
    data, sectors, size = tensor.load(gid, coordinates, ctas.bulk.until(gid, barrier, mask))
    ctas.counters.bulk("load", tmap.address, sectors, size)
    ctas.bulk.land(gid, to, pieces(offset, tmap.tile_bytes, tmap.swizzle), data, barrier, mask)


def tensor_store(
    ctas: CopyingBlocks,
    gid: int,
    tensor: MappedTensor,
    coordinates: tuple[int, ...],
    source: int,
    reduce: Reduction | None,
    times: int = 1,
) -> None:
    """``cp.async.bulk.tensor`` or ``cp.reduce.async.bulk.tensor`` from shared to global memory, ``times`` times."""
    tmap = tensor.map
    offset = ctas.bulk.span(gid, source, tmap.tile_bytes, TENSOR_ALIGN)
    data = ctas.bulk.take(gid, source, pieces(offset, tmap.tile_bytes, tmap.swizzle))
    for _ in range(times if reduce is not None else 1):
        sectors, size = tensor.store(gid, coordinates, data, reduce)
    once = 1 if reduce is None else times  # an H200 writes identical stores of a warp's threads once
    ctas.counters.bulk("store", tmap.address, sectors, size, once)
