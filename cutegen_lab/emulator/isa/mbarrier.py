"""mbarrier objects in shared memory (PTX ISA 9.7.13.15)."""

from __future__ import annotations

from typing import Any

import numpy as np

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.generated_globals import runtime
from cutegen_lab.emulator.isa.memory_ops import store_cluster
from cutegen_lab.emulator.memory.block_memory import GENERIC_SHARED
from cutegen_lab.emulator.ptx.traits import CLUSTER, CTA
from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.translate.emit import Emit, opcode

_OWN = ("init", "inval", "test_wait", "try_wait")  # forms that accept only mbarriers of the executing block
_ORDER = ("release", "acquire", "relaxed", "cta", "cluster", "shared", "shared::cta", "shared::cluster")


@opcode("mbarrier")
def mbarrier(e: Emit) -> None:
    """9.7.13.15.9 init, .10 inval, .11 expect_tx, .12 complete_tx, .13 arrive, .14 arrive_drop, .16 test_wait,
    try_wait."""
    e.klass = "barrier"
    verb = e.one_of("init", "inval", "arrive_drop", "arrive", "test_wait", "try_wait", "expect_tx", "complete_tx")
    expects = verb in ("arrive", "arrive_drop") and e.has("expect_tx")
    no_complete = e.has("noComplete")
    parity = e.has("parity")
    relaxed = (CLUSTER if "cluster" in e.mods else CTA) if "relaxed" in e.mods else None
    own = verb in _OWN or ("shared::cluster" not in e.mods and not {"shared", "shared::cta"}.isdisjoint(e.mods))
    e.skip(*_ORDER)
    e.skip("b64")
    e.collective = True
    if verb in ("test_wait", "try_wait"):
        _wait(e, parity, relaxed)
        return
    first = 1 if e.ops and not isinstance(e.ops[0], ptx.Address) else 0
    base, offset = e.address(e.ops[first])
    count = e.s(e.ops[first + 1], "u32") if len(e.ops) > first + 1 else "1"
    e.line(f"w=barrier_slot(g,{base},{offset},{own})")
    if verb == "init":
        e.line(f"g.ctas.mbarriers.init(g,w,{count})")
    elif verb == "inval":
        e.line("g.ctas.mbarriers.invalidate(g,w)")
    elif verb == "expect_tx":
        e.line(
            f"g.ctas.mbarriers.expect(g,w,{count});g.ctas.mbarriers.require_bytes(g,w);g.ctas.counters.expect(g,w,{count},g.ctas.shared.stride)"
        )
    elif verb == "complete_tx":
        e.line(f"g.ctas.mbarriers.complete_tx(g,w,{count})")
    else:
        if expects:
            e.line(f"g.ctas.mbarriers.expect(g,w,{count});g.ctas.counters.expect(g,w,{count},g.ctas.shared.stride)")
            count = "1"
        if count != "1":
            e.line(f"g.ctas.mbarriers.require_count(g,{count})")
        e.line(f"x=g.ctas.mbarriers.arrive(g,w,{count},{verb == 'arrive_drop'},{no_complete},{relaxed})")
        if expects:
            e.line("g.ctas.mbarriers.require_bytes(g,w)")
        if first and not isinstance(e.ops[0], ptx.Sink):
            e.line(f"{e.d(e.ops[0], 'b64')}[:]=x")


def _wait(e: Emit, parity: bool, relaxed: int | None) -> None:
    """A failed test parks its lanes. The instruction returns false only if no other lanes can run, and on purpose in
    race-detection mode (``goes_on``)."""
    e.parks = True
    e.klass = "mbarrier_wait"
    base, offset = e.address(e.ops[1])
    state = e.s(e.ops[2], "u32" if parity else "b64")
    if len(e.ops) > 3:
        e.s(e.ops[3], "u32")
    test = "parity_done" if parity else "token_done"
    e.line(f"w=g.ctas.mbarriers.{test}(g,barrier_slot(g,{base},{offset},True),{state},{relaxed})")
    e.line(f"{e.d(e.ops[0], 'pred')}[:]=w")
    e.line("return g.ctas.mbarriers.goes_on(g,w)")


@runtime
def barrier_slot(g: Any, address: Array, offset: int, own: bool = False) -> Array:
    """Slot number of each lane's mbarrier, from a shared or generic address. ``own``: only of the executing block."""
    address = np.asarray(address)
    if address.dtype.itemsize == 8 and address.size and int(address.flat[0]) >= GENERIC_SHARED:
        address = address - np.uint64(GENERIC_SHARED)
    return np.asarray(np.broadcast_to(g.ctas.shared.index(g, address, offset, 8, own), (g.n,)))


@runtime
def store_async(
    g: Any, address: Array, offset: int, barrier: Array, barrier_offset: int, width: int, values: list[Array]
) -> None:
    """9.7.9.12 st.async: the store completes before the mbarrier's phase. The data and the mbarrier must be in the same
    block."""
    shared, whole = g.ctas.shared, width * len(values)
    slot = barrier_slot(g, barrier, barrier_offset)
    index = np.broadcast_to(shared.index(g, address, offset, whole), (g.n,))
    if (index * whole // shared.stride != slot * 8 // shared.stride).any():
        message = "st.async writes to one block's shared memory and completes bytes on another block's mbarrier"
        raise Trap(Verdict.LAUNCH_FAILURE, message, int(g.gid[0]))
    store_cluster(g, address, offset, width, values)
    if g.ctas.async_races is not None:
        g.ctas.async_races.stores(index, whole, slot)
    g.ctas.mbarriers.complete_tx(g, slot, whole, relaxed=False)
