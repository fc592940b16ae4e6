"""cp.async: copies from global to shared memory (PTX ISA 9.7.9.25.3).

A copy completes when it is issued, which is one order that hardware allows. In race-detection mode any other access to
its bytes is a race until the copy is waited for (:mod:`cutegen_lab.emulator.races.cp_async`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.generated_globals import runtime
from cutegen_lab.emulator.isa.bulk_copy import bulk_copy
from cutegen_lab.emulator.isa.memory_ops import lanes_where
from cutegen_lab.emulator.memory.global_memory import Lanes
from cutegen_lab.emulator.ptx.types import RAW, Array
from cutegen_lab.emulator.translate.emit import Emit, opcode


@opcode("cp")
def cp(e: Emit) -> None:
    """9.7.9.25.3.1 cp.async, .2 commit_group, .3 wait_group and wait_all, 9.7.13.15.15 cp.async.mbarrier.arrive."""
    if "bulk" in e.mods:
        bulk_copy(e)
        return
    if not e.has("async") or "reduce" in e.mods:
        raise e.refuse(f"the emulator does not execute `{e.ins.name}` yet")
    e.klass = "load"
    if waits := e.one_of("commit_group", "wait_group", "wait_all"):
        e.waits_loads = waits != "commit_group"
        _groups(e, waits)
        return
    if e.has("mbarrier"):
        e.has("arrive")
        silent = not e.has("noinc")
        e.skip("shared", "shared::cta", "b64")
        base, offset = e.address(e.ops[0])
        e.line(f"copies_arrive(g,barrier_slot(g,{base},{offset},True),{int(not silent)})")
        return
    past_l1 = e.one_of("ca", "cg") == "cg"
    for space in ("shared", "shared::cta", "global"):
        e.has(space)
    e.skip("L2::64B", "L2::128B", "L2::256B")
    hint = e.has("L2::cache_hint")
    to, to_offset = e.address(e.ops[0])
    source, offset = e.address(e.ops[1])
    if not isinstance(e.ops[2], ptx.Imm) or e.ops[2].value not in (4, 8, 16):
        raise e.refuse(f"`{e.ins.name}` copies 4, 8 or 16 bytes")
    e.load_bytes = e.ops[2].value
    rest = e.ops[3:-1] if hint else e.ops[3:]
    size = "None"
    if rest:
        ignored = isinstance(rest[0], ptx.Reg) and rest[0].file == "P"
        size = f"np.where({e.s(rest[0], 'pred')},0,{e.ops[2].value})" if ignored else e.s(rest[0], "u32")
    e.line(f"copy_async(g,{to},{to_offset},{source},{offset},{e.ops[2].value},{size},{past_l1})")


def _groups(e: Emit, waits: str) -> None:
    """9.7.9.25.3.2 commit_group, .3 wait_group and wait_all: the copies of the executing thread."""
    if waits == "wait_group":
        if not isinstance(e.ops[0], ptx.Imm):
            raise e.refuse(f"`{e.ins.name}` needs a constant operand")
        e.line(f"wait_for_copies(g,{e.ops[0].value})")
        return
    e.line("commit_copies(g)")
    if waits == "wait_all":
        e.line("wait_for_copies(g,0)")


@runtime
def commit_copies(g: Any) -> None:
    if g.ctas.shared.races is not None:
        g.ctas.shared.races.copies.commit(g)
    if g.ctas.memory.races is not None:
        g.ctas.memory.races.reads.commit(g.gid)


@runtime
def wait_for_copies(g: Any, pending: int) -> None:
    if g.ctas.shared.races is not None:
        g.ctas.shared.races.copies.wait(g, pending)
    if g.ctas.memory.races is not None:
        g.ctas.memory.races.copies_done(g.gid, pending)


@runtime
def copies_arrive(g: Any, slot: Array, count: int) -> None:
    """cp.async.mbarrier.arrive. ``count``: how much it lowers the pending count; 0 without .noinc, since it then first
    raises the pending count by its own arrival."""
    if g.ctas.shared.races is not None:
        g.ctas.shared.races.copies.signal(g, slot, g.ctas.mbarriers.phase(slot))
    if g.ctas.memory.races is not None and g.ctas.memory.races.reads.under_way:
        g.ctas.memory.races.reads.signal(g.gid, *g.ctas.async_races.completion(slot))
    g.ctas.mbarriers.arrive(g, slot, count)


@runtime
def copy_async(
    g: Any, to: Array, to_offset: int, source: Array, offset: int, width: int, size: Any, past_l1: bool
) -> None:
    """Copies ``size`` bytes and fills the rest of ``width`` bytes with zeros."""
    shared = g.ctas.shared
    index = shared.index(g, to, to_offset, width, own=True)
    sizes = np.broadcast_to(np.asarray(width if size is None else size, np.int64), (g.n,))
    if int(sizes.max()) > width:
        message = f"cp.async of {width} bytes with a source size of {int(sizes.max())}"
        raise Trap(Verdict.LAUNCH_FAILURE, message, int(g.gid[np.argmax(sizes)]))
    at = np.broadcast_to(np.asarray(source), (g.n,)) + np.uint64(offset % (1 << 64))
    index = np.broadcast_to(index, (g.n,))
    g.ctas.counters.copy(g, index, at, sizes > 0, width, past_l1)
    if (sizes >= width).all():
        g.ctas.counters.access("load", g, at, width)
        value = g.ctas.memory.load(Lanes(g.gid, copies=True), at, width)
    else:
        block = np.zeros((g.n, width), np.uint8)
        for length in np.unique(sizes[sizes > 0]):
            _read_part(g, at, sizes == length, int(min(length, width)), block)
        value = block.view(RAW[width]).ravel()
    shared.copy(g, index, width, value)


def _read_part(g: Any, at: Array, mask: Array, length: int, block: Array) -> None:
    part, index = lanes_where(g, mask)
    g.ctas.counters.access("load", part, at[index], length)
    step = length & -length
    for first in range(0, length, step):
        raw = np.ascontiguousarray(g.ctas.memory.load(Lanes(part.gid, copies=True), at[index] + np.uint64(first), step))
        block[index, first : first + step] = raw.view(np.uint8).reshape(-1, step)
