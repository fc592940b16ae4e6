"""Tensor copies of many blocks in one instruction, done as one gather or scatter (PTX ISA 9.7.9.25.5).

Blocks in lockstep issue the same copy at their own coordinates, with the same tensor map, shared address and mbarrier.
Copies are done one by one if races are detected, a block has ended, a box is partly out of bounds or bytes were never
written.
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
    """One tensor copy of thread ``gid``, ``times`` times. ``slot`` is the address of its mbarrier (loads only)."""

    times: int
    gid: int
    shared: int
    tmap: int
    coordinates: tuple[int, ...]
    slot: int = 0
    mask: int | None = None


def load(ctas: CopyingBlocks, copies: Sequence[Copy]) -> list[Copy]:
    """Does those copies into shared memory that can be done together. Returns the others."""
    return _in_groups(ctas, copies, _load)


def store(ctas: CopyingBlocks, copies: Sequence[Copy]) -> list[Copy]:
    """As :func:`load`, out of shared memory."""
    return _in_groups(ctas, copies, _store)


def _in_groups(ctas: CopyingBlocks, copies: Sequence[Copy], done: Any) -> list[Copy]:
    if not ctas.bulk.together or len(copies) < _FEWEST:
        return list(copies)
    alike: dict[Any, list[Copy]] = defaultdict(list)
    for copy in copies:
        alike[copy.times, copy.shared, copy.tmap, copy.slot, copy.mask].append(copy)
    left: list[Copy] = []
    for group in alike.values():
        if len(group) < _FEWEST or not done(ctas, group):
            left += group
    return left


def _load(ctas: CopyingBlocks, group: list[Copy]) -> bool:
    first, gid = group[0], np.array([copy.gid for copy in group])
    found = _tiles(ctas, group)
    if found is None or first.times != 1:
        return False
    tensor, starts, box, place = found
    barrier = ctas.bulk.span(first.gid, first.slot, 8, 8)
    if first.mask is None:
        targets = [(_blocks(ctas, gid, first.shared), _blocks(ctas, gid, first.slot))]
    else:
        base = gid // ctas.padded_threads // ctas.cluster_size * ctas.cluster_size
        ranks = ctas.bulk.multicast(first.gid, first.mask)
        targets = [(base + rank - int(base[0]),) * 2 for rank in ranks]
    if ctas.ended and any(ctas.have_ended(blocks).any() for blocks, _ in targets):
        return False
    slots = np.concatenate([at * ctas.shared.stride + barrier >> 3 for _, at in targets])
    if len(set(slots.tolist())) < len(slots):
        return False
    ctas.mbarriers.require(tuple(slots.tolist()), first.gid)
    data = tensor.gather(starts, box)
    if data is None:
        return False
    windows = ctas.shared.views[16].reshape(ctas.count, -1)
    for blocks, _ in targets:
        windows[blocks, place] = data
        if ctas.shared.written is not None:
            ctas.shared.mark(_places(ctas, blocks, place), 16)
    ctas.mbarriers.land_together(slots, tensor.map.tile_bytes)
    _count(ctas, "load", tensor, group, starts)
    return True


def _store(ctas: CopyingBlocks, group: list[Copy]) -> bool:
    found = _tiles(ctas, group)
    if found is None or found[0].buffer.constant:
        return False
    tensor, starts, box, place = found
    blocks = _blocks(ctas, np.array([copy.gid for copy in group]), group[0].shared)
    if ctas.ended and ctas.have_ended(blocks).any():
        return False
    if ctas.shared.written is not None and not ctas.shared.all_written(_places(ctas, blocks, place)):
        return False
    tensor.scatter(starts, box, ctas.shared.views[16].reshape(ctas.count, -1)[blocks, place])
    _count(ctas, "store", tensor, group, starts)
    return True


def _tiles(ctas: CopyingBlocks, group: list[Copy]) -> tuple[MappedTensor, Array, Array, slice] | None:
    """(the tensor, start of each box in its buffer, pieces of a box in shared-memory order, their places there)."""
    first = group[0]
    tensor = ctas.bulk.tensor(first.gid, first.tmap)
    if tensor.map.rank != len(first.coordinates):
        return None
    starts = tensor.starts(np.array([copy.coordinates for copy in group]))
    size = tensor.map.tile_bytes
    if starts is None or size % TENSOR_ALIGN:
        return None
    offset = ctas.bulk.span(first.gid, first.shared, size, TENSOR_ALIGN)
    order = _order(offset % _REPEAT, size, tensor.map.swizzle)
    return tensor, starts, tensor.box_pieces[order], slice(offset >> 4, offset + size >> 4)


def _places(ctas: CopyingBlocks, blocks: Array, place: slice) -> Array:
    """Pieces ``place`` of each of ``blocks``, numbered over the CTA batch."""
    return np.asarray(blocks[:, None] * (ctas.shared.stride >> 4) + np.arange(place.start, place.stop))


def _blocks(ctas: CopyingBlocks, gid: Array, address: int) -> Array:
    """As :meth:`BulkCopies.block`, for the threads ``gid``."""
    own, rank = gid // ctas.padded_threads, address >> RANK_SHIFT
    delta = ctas.bulk.block(int(gid[0]), address) - int(own[0]) // ctas.cluster_size * ctas.cluster_size
    return own if rank == 0 else own // ctas.cluster_size * ctas.cluster_size + delta


def _count(ctas: CopyingBlocks, kind: str, tensor: MappedTensor, group: list[Copy], starts: Array) -> None:
    """Counts the copies. Boxes that begin in the same half of a sector have the same number of sectors. Identical
    stores of a warp's threads count once, as on an H200."""
    for half in (0, 1):
        chosen = np.flatnonzero(starts & 1 == half)
        if len(chosen):
            sectors, size = tensor.traffic(kind, group[int(chosen[0])].coordinates)
            ctas.counters.bulk(kind, tensor.map.address, sectors, size, len(chosen))


@lru_cache(4096)
def _order(offset: int, size: int, swizzle: int) -> Array:
    """The piece of a box at each successive place of shared memory, as the swizzle permutes them."""
    return np.argsort(pieces(offset, size, swizzle))
