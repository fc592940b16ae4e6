"""Tensor copies that many blocks ask for in one instruction, done as one (PTX ISA 9.7.9.25.5).

Blocks in lockstep issue the same copy at coordinates of their own: by one tensor map, to one place in shared memory,
on one mbarrier. That is one gather of 16-byte pieces. It is done where nothing needs copies one by one: a search for
races, a block that has ended, a box that reaches over an edge, bytes that were never written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from cutegen_lab.emulator.memory.block_memory import RANK_SHIFT
from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.tma.box_copy import MappedTensor, pieces
from cutegen_lab.emulator.tma.bulk import TENSOR_ALIGN, CopyingBlocks

_FEWEST = 4
_REPEAT = 1024


class Copy(NamedTuple):
    """One tensor copy of thread ``gid``, ``times`` over. ``slot`` is the address of its mbarrier (loads only)."""

    times: int
    gid: int
    shared: int
    tmap: int
    coordinates: tuple[int, ...]
    slot: int = 0
    mask: int | None = None


def load(m: CopyingBlocks, copies: Sequence[Copy]) -> list[Copy]:
    """Does those copies into shared memory that can be done together. Returns the others."""
    return _in_groups(m, copies, _load)


def store(m: CopyingBlocks, copies: Sequence[Copy]) -> list[Copy]:
    """As :func:`load`, out of shared memory."""
    return _in_groups(m, copies, _store)


def _in_groups(m: CopyingBlocks, copies: Sequence[Copy], done: Any) -> list[Copy]:
    if not m.bulk.together or len(copies) < _FEWEST:
        return list(copies)
    alike: dict[Any, list[Copy]] = defaultdict(list)
    for copy in copies:
        alike[copy.times, copy.shared, copy.tmap, copy.slot, copy.mask].append(copy)
    left: list[Copy] = []
    for group in alike.values():
        if len(group) < _FEWEST or not done(m, group):
            left += group
    return left


def _load(m: CopyingBlocks, group: list[Copy]) -> bool:
    first, gid = group[0], np.array([copy.gid for copy in group])
    found = _tiles(m, group)
    if found is None or first.times != 1:
        return False
    tensor, starts, box, place = found
    barrier = m.bulk.span(first.gid, first.slot, 8, 8)
    if first.mask is None:
        targets = [(_blocks(m, gid, first.shared), _blocks(m, gid, first.slot))]
    else:
        base = gid // m.padded_threads // m.cluster_size * m.cluster_size
        ranks = m.bulk.multicast(first.gid, first.mask)
        targets = [(base + rank - int(base[0]),) * 2 for rank in ranks]
    if m.ended and any(m.have_ended(blocks).any() for blocks, _ in targets):
        return False
    slots = np.concatenate([at * m.shared.stride + barrier >> 3 for _, at in targets])
    if len(set(slots.tolist())) < len(slots):
        return False
    m.mbarriers.require(tuple(slots.tolist()), first.gid)
    data = tensor.gather(starts, box)
    if data is None:
        return False
    windows = m.shared.views[16].reshape(m.count, -1)
    for blocks, _ in targets:
        windows[blocks, place] = data
        if m.shared.written is not None:
            m.shared.mark(_places(m, blocks, place), 16)
    m.mbarriers.land_together(slots, tensor.map.tile_bytes)
    _count(m, "load", tensor, group, starts)
    return True


def _store(m: CopyingBlocks, group: list[Copy]) -> bool:
    found = _tiles(m, group)
    if found is None or found[0].buffer.constant:
        return False
    tensor, starts, box, place = found
    blocks = _blocks(m, np.array([copy.gid for copy in group]), group[0].shared)
    if m.ended and m.have_ended(blocks).any():
        return False
    if m.shared.written is not None and not m.shared.all_written(_places(m, blocks, place)):
        return False
    tensor.scatter(starts, box, m.shared.views[16].reshape(m.count, -1)[blocks, place])
    _count(m, "store", tensor, group, starts)
    return True


def _tiles(m: CopyingBlocks, group: list[Copy]) -> tuple[MappedTensor, Array, Array, slice] | None:
    """(the tensor, where in its buffer each box starts, pieces of a box in the order of shared memory, where there)."""
    first = group[0]
    tensor = m.bulk.tensor(first.gid, first.tmap)
    if tensor.map.rank != len(first.coordinates):
        return None
    starts = tensor.starts(np.array([copy.coordinates for copy in group]))
    size = tensor.map.tile_bytes
    if starts is None or size % TENSOR_ALIGN:
        return None
    offset = m.bulk.span(first.gid, first.shared, size, TENSOR_ALIGN)
    order = _order(offset % _REPEAT, size, tensor.map.swizzle)
    return tensor, starts, tensor.box_pieces[order], slice(offset >> 4, offset + size >> 4)


def _places(m: CopyingBlocks, blocks: Array, place: slice) -> Array:
    """Pieces ``place`` of each of ``blocks``, counted over the chunk."""
    return np.asarray(blocks[:, None] * (m.shared.stride >> 4) + np.arange(place.start, place.stop))


def _blocks(m: CopyingBlocks, gid: Array, address: int) -> Array:
    """As :meth:`BulkCopies.block`, for the threads ``gid``."""
    own, rank = gid // m.padded_threads, address >> RANK_SHIFT
    delta = m.bulk.block(int(gid[0]), address) - int(own[0]) // m.cluster_size * m.cluster_size
    return own if rank == 0 else own // m.cluster_size * m.cluster_size + delta


def _count(m: CopyingBlocks, kind: str, tensor: MappedTensor, group: list[Copy], starts: Array) -> None:
    """Boxes that begin in the same half of a sector take the same sectors. What a warp's threads all store counts once,
    as an H200 writes it."""
    for half in (0, 1):
        chosen = np.flatnonzero(starts & 1 == half)
        if len(chosen):
            sectors, size = tensor.traffic(kind, group[int(chosen[0])].coordinates)
            m.counters.bulk(kind, tensor.map.address, sectors, size, len(chosen))


@lru_cache(4096)
def _order(offset: int, size: int, swizzle: int) -> Array:
    """A swizzle moves pieces within a line: which piece of a box lies at each place, one after another."""
    return np.argsort(pieces(offset, size, swizzle))
