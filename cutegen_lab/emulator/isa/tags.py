"""Tracks uninitialised values while a kernel runs: a tag for each lane of each register, and for memory.

A tag is 0 for an initialised value, otherwise the number of the instruction that read uninitialised memory or an
uninitialised register (:class:`Site`). A register has two tags, for its lower and its upper half, in the halves of a
32-bit row, so that packed 16-bit numbers are tracked separately. Code that :mod:`origin_rules` emits calls these
functions. A tag that reaches an observable effect is a fault, at the line of the read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cutegen_lab.emulator.generated_globals import runtime
from cutegen_lab.emulator.isa.matrix_move import matrix_rows
from cutegen_lab.emulator.isa.memory_ops import lanes_where, spaces
from cutegen_lab.emulator.isa.mma import require_full_warps
from cutegen_lab.emulator.isa.warp import reduce_lanes
from cutegen_lab.emulator.memory.block_memory import BlockMemory
from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.roles import Group

NOBODY = np.uint32(0xFFFFFFFF)  # tags of a register that was neither written nor read
_QUAD, _HALF = 4, np.uint32(16)


@runtime
def most(*tags: Array) -> Array:
    """Maximum of the tags, half by half."""
    found = tags[0]
    for tag in tags[1:]:
        found = np.maximum(found.view(np.uint16), tag.view(np.uint16)).view(np.uint32)
    return found


@runtime
def spread(tag: Any) -> Array:
    """The larger half, in both halves."""
    larger = np.maximum(tag & np.uint32(0xFFFF), tag >> _HALF)
    return np.asarray(larger | larger << _HALF)


@runtime
def join(low: Any, high: Any) -> Array:
    """Tags of a register that packs two 16-bit registers."""
    return np.asarray(spread(low) & np.uint32(0xFFFF) | spread(high) << _HALF)


@runtime
def permute_tags(a: Any, b: Any, selector: int) -> Array:
    """Tags after ``prmt``, whose result has four of the eight bytes of ``b`` and ``a``."""
    halves = [half for tag in (a, b) for half in (tag & np.uint32(0xFFFF), tag >> _HALF)]
    bytes_of = [halves[(selector >> 4 * i & 7) // 2] for i in range(4)]
    return np.asarray(np.maximum(*bytes_of[:2]) | np.maximum(*bytes_of[2:]) << _HALF)


@runtime
def first_read(g: Any, tag: Array, site: int, register: str) -> None:
    """Gives lanes in which the register was never written the tag ``site``, in place in the row ``tag``; called before
    the register is read."""
    fresh = tag == NOBODY
    if fresh.any():
        g.ctas.origins.note(site, f"register {register}", int(g.gid[np.argmax(fresh)]))
        tag[fresh] = spread(np.uint32(site))


@runtime
def matters(g: Any, tag: Array, depends: str) -> None:
    """Traps if a value is tagged. ``depends`` names the effect that depends on it."""
    if tag.any():
        found = int(tag[np.flatnonzero(tag)[0]])
        raise g.ctas.origins.trap(found & 0xFFFF or found >> 16, depends, g.ctas.instruction())


@runtime
def select_tags(g: Group, predicate: Array, of_predicate: Any, a: Any, b: Any) -> Array:
    chosen = np.empty((2, g.n), np.uint32)
    chosen[0], chosen[1] = np.where(predicate, a, b), of_predicate
    return most(*chosen)


@runtime
def logic_tags(g: Group, a: Array, of_a: Any, b: Array, of_b: Any, deciding: bool) -> Array:
    """Tags of ``a and b`` (``deciding`` False) or ``a or b`` (True): 0 in lanes in which an untagged operand alone
    decides."""
    of_a, of_b = np.broadcast_to(of_a, (g.n,)), np.broadcast_to(of_b, (g.n,))
    decided = ((a == deciding) & (of_a == 0)) | ((b == deciding) & (of_b == 0))
    return np.where(decided, np.uint32(0), np.maximum(of_a, of_b))  # both halves of a predicate have the same tag


@runtime
def warp_tags(g: Group, tag: Array) -> Array:
    """Maximum tag of each warp, since its lanes may exchange values."""
    return reduce_lanes(g, None, tag, np.maximum)


# --- memory --------------------------------------------------------------------------------------------------------


def _parts(g: Any, space: str, address: Array, offset: int, whole: int) -> list[tuple[Any, Array, BlockMemory, Array]]:
    """For each shared or local memory that an access of ``whole`` bytes reaches: (its lanes, their indices, the memory,
    element indices)."""
    at = np.broadcast_to(np.asarray(address), (g.n,))
    if space != "generic":
        windows = g.ctas.local if space == "local" else g.ctas.shared
        return [(g, np.arange(g.n), windows, windows.index(g, at, offset, whole))]
    at = at + np.uint64(offset % (1 << 64))
    found = []
    for name, mask, base in spaces(at):
        if name != "global":
            part, lanes = lanes_where(g, mask)
            windows = g.ctas.local if name == "local" else g.ctas.shared
            found.append((part, lanes, windows, windows.index(part, at[lanes] - np.uint64(base), 0, whole)))
    return found


@runtime
def load_tags(g: Any, space: str, address: Array, offset: int, width: int, count: int, site: int) -> list[Array]:
    """Tags of ``count`` values of ``width`` bytes; called before these are loaded."""
    tags = [np.zeros(g.n, np.uint32) for _ in range(count)]
    for part, lanes, windows, index in _parts(g, space, address, offset, width * count):
        if windows.look(part, index, width * count, site):
            for i, tag in enumerate(tags):
                tag[lanes] = _halves(windows, index * count + i, width, site)
    return tags


def _halves(windows: BlockMemory, index: Array, width: int, site: int) -> Array:
    if width < 4:
        return spread(windows.tags(index, width, site))
    low, high = (windows.tags(index * 2 + i, width // 2, site) for i in (0, 1))
    return np.asarray(low | high << _HALF)


@runtime
def store_tags(g: Any, space: str, address: Array, offset: int, width: int, tags: Sequence[Any]) -> None:
    """Tags memory after a store of ``len(tags)`` values of ``width`` bytes."""
    tags = [np.broadcast_to(np.asarray(tag, np.uint32), (g.n,)).copy() for tag in tags]
    if not any(tag.any() for tag in tags):
        return
    if space == "generic":
        at = np.broadcast_to(np.asarray(address), (g.n,)) + np.uint64(offset % (1 << 64))
        for name, mask, _ in spaces(at):
            if name == "global":
                matters(g, most(*tags) * mask, "a store to global memory depends on this value")
    for _, lanes, windows, index in _parts(g, space, address, offset, width * len(tags)):
        for i, tag in enumerate(tags):
            at = index * len(tags) + i
            if width < 4:
                windows.spoil(at, width, spread(tag[lanes]) >> _HALF)
            else:
                windows.spoil(at * 2, width // 2, tag[lanes] & np.uint32(0xFFFF))
                windows.spoil(at * 2 + 1, width // 2, tag[lanes] >> _HALF)


@runtime
def load_matrix_tags(g: Any, address: Array, offset: int, count: int, transposed: bool, site: int) -> Array:
    """Tags of the registers [matrix, lane] that ``ldmatrix`` loads."""
    require_full_warps(g, "ldmatrix")
    part, index = matrix_rows(g, address, offset, count)
    if not g.ctas.shared.look(part, index, 16, site):
        return np.zeros((count, g.n), np.uint32)
    halves = np.stack([g.ctas.shared.tags(index * 8 + i, 2, site) for i in range(8)], axis=-1)
    by_matrix = np.ascontiguousarray(halves.reshape(-1, count, 8, 8).swapaxes(0, 1))  # matrix, warp, row, column
    if transposed:
        by_matrix = by_matrix.swapaxes(2, 3)
    pairs = by_matrix.reshape(*by_matrix.shape[:3], 4, 2)
    return np.asarray((pairs[..., 0] | pairs[..., 1] << _HALF).reshape(count, -1))


@runtime
def store_matrix_tags(g: Any, address: Array, offset: int, tags: Array, transposed: bool) -> None:
    """Tags memory after ``stmatrix`` stored registers with these tags [matrix, lane]."""
    if not tags.any():
        return
    count = len(tags)
    _, index = matrix_rows(g, address, offset, count)
    halves = np.ascontiguousarray(tags).view(np.uint16).reshape(count, -1, 8, 8)
    if transposed:
        halves = halves.swapaxes(2, 3)
    by_row = halves.swapaxes(0, 1).reshape(-1, 8)
    for i in range(8):
        g.ctas.shared.spoil(index * 8 + i, 2, by_row[:, i])


# --- matrix products -----------------------------------------------------------------------------------------------


def _of_quads(tags: Array) -> Array:
    """Maximum over each quad (four lanes), for all its lanes."""
    return np.repeat(tags.reshape(-1, _QUAD).max(axis=1), _QUAD)


@runtime
def product_tags(
    g: Any, halves: int, packed: bool, d: Sequence[int], a: Sequence[int], b: Sequence[int], c: Sequence[int]
) -> None:
    """Tags after ``mma``: an element of D depends on its row of A, its column of B and its element of C
    (:mod:`fragments`)."""
    file = g.files[2]
    rows = [_of_quads(spread(most(*file[np.array(a[h::halves])]))) for h in range(halves)]
    columns = spread(most(*file[np.array(b)])).reshape(-1, 8, _QUAD).max(axis=2)  # [warp, column]
    each = [np.repeat(columns[:, None, e::2], 8, axis=1).ravel() for e in (0, 1)]
    new = []
    for i, at in enumerate(c):
        own = join(*each) if packed else each[i % 2]
        new.append(most(file[at], own, rows[i if packed else i // 2]))
    for at, tag in zip(d, new, strict=True):
        file[at] = tag


@runtime
def warpgroup_tags(g: Any, half: bool, sums: Sequence[int], adds: Any, a: Sequence[int]) -> None:
    """``wgmma``: accumulators get the tags of A's rows, and keep their own if ``adds`` (:mod:`accumulators`)."""
    file = g.files[2]
    adding = np.broadcast_to(np.asarray(adds), (g.n,))
    rows = [_of_quads(spread(most(file[a[h]], file[a[h + 2]]))) if a else np.zeros(g.n, np.uint32) for h in (0, 1)]
    for i, at in enumerate(sums):
        file[at] = most(np.where(adding, file[at], np.uint32(0)), rows[i % 2 if half else i // 2 % 2])


@runtime
def sums_first_read(g: Any, sums: Sequence[int], adds: Any, site: int, registers: str) -> None:
    """:func:`first_read` of a wgmma's accumulators in lanes in which ``adds`` is true."""
    adding = np.broadcast_to(np.asarray(adds), (g.n,))
    for at in sums:
        tag = g.files[2][at]
        fresh = (tag == NOBODY) & adding
        if fresh.any():
            g.ctas.origins.note(site, f"registers {registers}", int(g.gid[np.argmax(fresh)]))
            tag[fresh] = spread(np.uint32(site))
