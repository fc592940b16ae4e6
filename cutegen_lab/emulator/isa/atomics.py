"""Atomic operations (PTX ISA 9.7.13.5 atom, .6 red).

Lanes that access one address are serialised; hardware may take any order. If warps are interleaved, the order of a
warp's lanes is random (``warps_seed``), otherwise ascending.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.generated_globals import runtime
from cutegen_lab.emulator.isa.half import half_in, half_out
from cutegen_lab.emulator.isa.memory_ops import lanes_where, skip_hints, space_of, spaces
from cutegen_lab.emulator.ptx.rounding import flush
from cutegen_lab.emulator.ptx.types import RAW, WIDTH, Array
from cutegen_lab.emulator.translate.emit import Emit, opcode

_OPERATIONS = ("add", "min", "max", "and", "or", "xor", "inc", "dec", "exch", "cas")


@opcode("atom", "red")
def atom(e: Emit) -> None:
    """9.7.13.5 atom, 9.7.13.6 red."""
    if e.has("async"):
        raise e.refuse(f"the emulator does not execute `{e.ins.name}`")
    own = "shared::cluster" not in e.mods
    space = space_of(e)
    skip_hints(e)
    e.skip("noftz")
    operation = e.one_of(*_OPERATIONS)
    count = int(e.one_of("v2", "v4", "v8", default="v1")[1:])
    kind = e.type()
    e.klass = "atomic"
    if not operation or WIDTH[kind] == 1:
        raise e.refuse(f"the emulator does not execute `{e.ins.name}`")
    returns = e.ins.opcode == "atom"
    at = 1 if returns else 0
    base, offset = e.address(e.ops[at])
    bits = f"b{8 * WIDTH[kind]}"
    items = e.items(e.ops[at + 1])
    other = e.s(e.ops[at + 2], bits) if operation == "cas" else "None"
    if len(items) != count:
        raise e.refuse(f"`{e.ins.name}` with {len(items)} values does not exist")
    targets = e.items(e.ops[0]) if returns else ()
    if count > 1:
        e.line(f"whole_vector(g,{base},{offset},{count * WIDTH[kind]})")
    for i, item in enumerate(items):
        step = offset + i * WIDTH[kind]
        wanted = returns and not isinstance(targets[i], ptx.Sink)
        call = f"atomic(g,{space!r},{base},{step},{operation!r},{kind!r},{e.s(item, bits)},{other},{wanted},{own})"
        e.line(f"{e.d(targets[i], bits)}[:]={call}" if wanted else call)


@runtime
def whole_vector(g: Any, address: Array, offset: int, width: int) -> None:
    at = np.broadcast_to(np.asarray(address), (g.n,)).astype(np.int64) + offset
    if bad := np.flatnonzero(at % width).tolist():
        where = int(at[bad[0]])
        raise Trap(Verdict.MISALIGNED, f"an atomic operation on {width} bytes at {where:#x}", int(g.gid[bad[0]]), where)


@runtime
def atomic(
    g: Any, space: str, address: Array, offset: int, operation: str, kind: str, value: Array, other: Any, wanted: bool,
    own: bool = False,
) -> Array:  # fmt: skip
    """Performs one atomic operation for every lane; returns the old bits if ``wanted``. ``own``: only in shared memory
    of the executing block."""
    width = WIDTH[kind]
    address = np.broadcast_to(np.asarray(address), (g.n,))
    value = np.broadcast_to(value, (g.n,))
    other = None if other is None else np.broadcast_to(other, (g.n,))
    if space == "generic":
        old = np.empty(g.n, RAW[width])
        moved = address + np.uint64(offset % (1 << 64))
        for name, mask, base in spaces(moved):
            part, index = lanes_where(g, mask)
            compare = None if other is None else other[index]
            old[index] = atomic(
                part, name, moved[index] - np.uint64(base), 0, operation, kind, value[index], compare, wanted
            )
        return old
    if space == "global":
        at = address + np.uint64(offset % (1 << 64))
        buffer, index = g.ctas.memory.locate(g, at, width)
        g.ctas.counters.access("atomic", g, at, width)
        cells = buffer.views[width]
        if operation == "add" and kind == "f32":
            return _apply_flushed(cells, index, value, wanted, g.gid >> 5, g.ctas.warps_seed)
    elif space == "shared":
        index = g.ctas.shared.index(g, address, offset, width, own)
        g.ctas.counters.shared_atomic(g)
        cells = g.ctas.shared.update(g, index, width)
    else:
        raise Trap(Verdict.UNSUPPORTED, f"the emulator has no atomics on {space} memory", int(g.gid[0]))
    return _apply(cells, index, operation, kind, value, other, wanted, g.gid >> 5, g.ctas.warps_seed)


def _apply_flushed(cells: Array, index: Array, value: Array, wanted: bool, warp: Array, seed: int) -> Array:
    """``.add.f32`` on global memory flushes subnormal inputs and results to zero (9.7.13.5)."""
    numbers = cells.view(np.float32)
    numbers[index] = flush(numbers[index])
    added = flush(np.ascontiguousarray(value).view(np.float32)).view(cells.dtype)
    old = _apply(cells, index, "add", "f32", added, None, wanted, warp, seed)
    numbers[index] = flush(numbers[index])
    return old


def _apply(
    cells: Array,
    index: Array,
    operation: str,
    kind: str,
    value: Array,
    other: Array | None,
    wanted: bool,
    warp: Array,
    seed: int,
) -> Array:
    """Updates ``cells``; returns their old bits if ``wanted``. ``seed`` shuffles the lanes of each warp (0: ascending).
    Warps act in ascending order, which :mod:`causality` assumes."""
    if not wanted and operation == "add" and kind in ("u32", "s32", "u64", "s64", "f32", "f64"):
        view = cells.view(_DTYPES[kind])
        np.add.at(view, index, value.view(view.dtype) if value.flags.c_contiguous else value.copy().view(view.dtype))
        return value
    old = np.empty(len(index), cells.dtype)
    lanes = np.lexsort((np.random.default_rng(seed).random(len(warp)), warp)) if seed else np.arange(len(index))
    order = lanes[np.argsort(index[lanes], kind="stable")]
    ordered = index[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    place = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    for turn in range(int(place.max()) + 1):
        lanes = order[place == turn]
        before = cells[index[lanes]]
        old[lanes] = before
        compare = None if other is None else other[lanes]
        cells[index[lanes]] = _combine(operation, kind, before, value[lanes], compare)
    return old


_DTYPES: dict[str, Any] = {
    "u32": np.uint32, "s32": np.int32, "u64": np.uint64, "s64": np.int64, "f32": np.float32, "f64": np.float64,
    "b32": np.uint32, "b64": np.uint64, "b16": np.uint16, "u16": np.uint16,
}  # fmt: skip


def _combine(operation: str, kind: str, old: Array, value: Array, other: Array | None) -> Array:
    """The new bits of each cell."""
    if operation == "exch":
        return value
    if operation == "cas":
        assert other is not None
        return np.where(old == value, other, old)
    if operation in ("and", "or", "xor"):
        return np.asarray(getattr(np, f"bitwise_{operation}")(old, value))
    if kind in ("f16", "bf16", "f16x2", "bf16x2"):
        a, b = half_in(old, kind), half_in(value, kind)
        return half_out(a + b if operation == "add" else getattr(np, f"f{operation}")(a, b), kind)
    a, b = old.view(_DTYPES[kind]), np.ascontiguousarray(value).view(_DTYPES[kind])
    if operation == "inc":
        new = np.where(a >= b, 0, a + 1)
    elif operation == "dec":
        new = np.where((a == 0) | (a > b), b, a - 1)
    else:
        new = {"add": np.add, "min": np.minimum, "max": np.maximum}[operation](a, b)
    return np.ascontiguousarray(new.astype(a.dtype)).view(old.dtype)
