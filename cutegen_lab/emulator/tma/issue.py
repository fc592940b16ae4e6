"""Bulk and tensor copies as the lanes of a group issue them: generated code calls these (PTX ISA 9.7.9.25.4 to
9.7.9.25.6). Every thread issues one, as on an H200; :mod:`bulk` performs them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator.counters.bulk_sectors import row_sectors
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.generated_globals import runtime
from cutegen_lab.emulator.memory.block_memory import wrapped
from cutegen_lab.emulator.memory.global_memory import Lanes
from cutegen_lab.emulator.ptx.types import RAW, Array
from cutegen_lab.emulator.tma import bulk, merged
from cutegen_lab.emulator.tma.box_copy import Reduction, pieces, reduction
from cutegen_lab.emulator.tma.bulk import BULK_ALIGN
from cutegen_lab.emulator.tma.merged import Copy


@runtime
def plus(g: Any, base: Any, offset: int) -> list[int]:
    """``base`` + ``offset``, by lane."""
    wide = np.broadcast_to(np.asarray(base).astype(np.int64), (g.n,))
    found: list[int] = (wrapped(wide + offset, base) if offset else wide).tolist()
    return found


@runtime
def lanes_of(g: Any, value: Any) -> list[int]:
    found: list[int] = np.broadcast_to(np.asarray(value), (g.n,)).tolist()
    return found


def _each(g: Any, *columns: list[int] | None) -> list[tuple[int, ...]]:
    """(count, thread, *operands) of the copies; identical copies by threads of one warp are counted together."""
    given = [c for c in columns if c is not None]
    if g.n <= g.warps():
        return [(1, *row) for row in zip(g.gid.tolist(), *given, strict=True)]
    times: Counter[tuple[int, ...]] = Counter()
    first: dict[tuple[int, ...], int] = {}
    for gid, *operands in zip(g.gid.tolist(), *given, strict=True):
        key = (gid >> 5, *operands)
        times[key] += 1
        first.setdefault(key, gid)
    return [(count, first[key], *key[1:]) for key, count in times.items()]


@runtime
def bulk_tensor_load(
    g: Any, to: list[int], address: list[int], at: list[list[int]], barrier: list[int], mask: list[int] | None
) -> None:
    ctas, rank = g.ctas, len(at)
    rows = _each(g, to, address, barrier, *at, mask)
    copies = [
        Copy(times, gid, where, tmap, tuple(rest[:rank]), slot, rest[rank] if mask is not None else None)
        for times, gid, where, tmap, slot, *rest in rows
    ]
    for copy in merged.load(ctas, copies):
        tensor = _tensor(ctas, copy.gid, copy.tmap, rank)
        for _ in range(copy.times):
            bulk.tensor_load(ctas, copy.gid, tensor, copy.coordinates, copy.shared, copy.slot, copy.mask)


@runtime
def bulk_tensor_store(g: Any, address: list[int], at: list[list[int]], source: list[int], reduce: str) -> None:
    rows = _each(g, source, address, *at)
    copies = [Copy(times, gid, where, tmap, tuple(rest)) for times, gid, where, tmap, *rest in rows]
    for copy in copies if reduce else merged.store(g.ctas, copies):
        tensor = _tensor(g.ctas, copy.gid, copy.tmap, len(at))
        combine = _combination(reduce, tensor.map.dtype, copy.gid) if reduce else None
        bulk.tensor_store(g.ctas, copy.gid, tensor, copy.coordinates, copy.shared, combine, copy.times)


def _combination(reduce: str, dtype: str, gid: int) -> Reduction:
    try:
        return reduction(reduce, dtype)
    except KeyError:
        message = f"the emulator does not execute a tensor reduction .{reduce} of {dtype}"
        raise Trap(Verdict.UNSUPPORTED, message, gid) from None


def _tensor(ctas: Any, gid: int, address: int, rank: int) -> Any:
    tensor = ctas.bulk.tensor(gid, address)
    if tensor.map.rank != rank:
        message = f"a copy with {rank} coordinates by a tensor map of {tensor.map.rank} dimensions"
        raise Trap(Verdict.LAUNCH_FAILURE, message, gid, address)
    return tensor


def _whole(gid: int, size: int, *addresses: int) -> None:
    if size % BULK_ALIGN or any(a % BULK_ALIGN for a in addresses):
        shown = ", ".join(f"{a:#x}" for a in addresses)
        message = f"a bulk copy of {size} bytes at {shown}: size and addresses must be multiples of {BULK_ALIGN}"
        raise Trap(Verdict.MISALIGNED, message, gid, addresses[0])


@runtime
def bulk_load(
    g: Any, to: list[int], source: list[int], size: list[int], barrier: list[int], mask: list[int] | None
) -> None:
    """Bulk copies from global to shared memory."""
    ctas = g.ctas
    for times, gid, where, at, count, slot, *rest in _each(g, to, source, size, barrier, mask):
        _whole(gid, count, at)
        offset = ctas.bulk.span(gid, where, count, BULK_ALIGN)
        until = ctas.bulk.until(gid, slot, rest[0] if rest else None)
        data = ctas.memory.load(*_pieces(gid, at, count, until), 16) if count else np.zeros(0, RAW[16])
        for _ in range(times):
            ctas.counters.bulk("load", at, row_sectors(np.array(at), count), count)
            ctas.bulk.land(gid, where, pieces(offset, count, 16), data, slot, rest[0] if rest else None)


@runtime
def bulk_between(
    g: Any, to: list[int], source: list[int], size: list[int], barrier: list[int], reduce: tuple[Reduction, int] | None
) -> None:
    """Bulk copies, or reductions (``reduce``), from shared memory to that of a block of the cluster."""
    ctas = g.ctas
    for times, gid, where, at, count, slot in _each(g, to, source, size, barrier):
        offset, start = ctas.bulk.span(gid, where, count, BULK_ALIGN), ctas.bulk.span(gid, at, count, BULK_ALIGN)
        _whole(gid, count, offset, start)
        data, place = ctas.bulk.take(gid, at, pieces(start, count, 16), slot), pieces(offset, count, 16)
        if reduce is not None:
            data = _combined(reduce, ctas.bulk.take(gid, where, place, slot), data, times)
        for _ in range(times):
            ctas.bulk.land(gid, where, place, data, slot, None)


@runtime
def bulk_store(g: Any, to: list[int], source: list[int], size: list[int], reduce: tuple[Reduction, int] | None) -> None:
    """Bulk copies, or reductions (``reduce``), from shared to global memory."""
    ctas = g.ctas
    for times, gid, where, at, count in _each(g, to, source, size):
        _whole(gid, count, where)
        start = ctas.bulk.span(gid, at, count, BULK_ALIGN)
        data, (lanes, address) = ctas.bulk.take(gid, at, pieces(start, count, 16)), _pieces(gid, where, count)
        if reduce is not None:
            data = _combined(reduce, ctas.memory.load(lanes, address, 16), data, times)
        ctas.memory.store(lanes, address, 16, data)
        ctas.counters.bulk("store", where, row_sectors(np.array(where), count, np.array(start)), count, times)


def _combined(reduce: tuple[Reduction, int], old: Array, new: Array, times: int) -> Array:
    combine, width = reduce
    kind: Any = RAW[width]
    total, step = old.view(kind), new.view(kind)
    for _ in range(times):
        total = combine(total, step)
    return np.ascontiguousarray(total).view(RAW[16])


def _pieces(gid: int, address: int, size: int, until: tuple[int, int] | None = None) -> tuple[Lanes, Array]:
    at = np.arange(address, address + size, 16, dtype=np.uint64)
    return Lanes(np.full(len(at), gid), hardware=True, until=until), at


@runtime
def bulk_commit_group(g: Any) -> None:
    if g.ctas.async_races is not None:
        g.ctas.async_races.groups.commit(g.gid.tolist())
    if g.ctas.memory.races is not None:
        g.ctas.memory.races.stores.commit(g.gid.tolist())


@runtime
def bulk_wait_group(g: Any, limit: Any, reads: bool) -> None:
    if g.ctas.async_races is not None:
        g.ctas.async_races.groups.wait(g.gid.tolist(), np.broadcast_to(limit, (g.n,)).tolist())
    if g.ctas.memory.races is not None and not reads:
        g.ctas.memory.races.stores_done(g.gid, int(np.max(limit)))
