"""Barriers and fences (PTX ISA 9.7.13.1 bar, .2 bar.warp.sync, .3 barrier.cluster, .4 membar and fence, 9.7.19.5
setmaxnreg)."""

from __future__ import annotations

from typing import Any

import numpy as np

from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.generated_globals import runtime
from cutegen_lab.emulator.isa import warp_barrier
from cutegen_lab.emulator.ptx import traits
from cutegen_lab.emulator.ptx.traits import Ordering
from cutegen_lab.emulator.translate.emit import Emit, opcode

assert warp_barrier.__name__, "importing it registers functions that generated code calls"


@opcode("bar", "barrier")
def bar(e: Emit) -> None:
    """9.7.13.1 bar/barrier.{sync,arrive,red}, .2 bar.warp.sync, .3 barrier.cluster.{arrive,wait}."""
    e.klass = "barrier"
    whole = "aligned" in e.mods or e.ins.opcode == "bar"
    e.skip("aligned", "cta")
    if e.has("cluster"):
        _cluster(e, whole)
        return
    if e.has("warp"):
        e.has("sync")
        _warp_barrier(e)
        return
    mode = e.one_of("sync", "arrive", "red")
    given = e.ops[1:-1] if mode == "red" else e.ops
    number = e.s(given[0], "u32")
    need = e.s(given[1], "u32") if len(given) > 1 else "0"
    if mode == "arrive":
        e.collective = True
        if whole:
            e.line("g.ctas.require_whole_warps(g,'a barrier')")
        e.line(f"g.ctas.barriers.arrive(g,{number},{need},whole={whole})")
        return
    e.parks = True
    if mode == "red":
        _vote(e, number, need, whole)
    else:
        e.line(f"return g.ctas.barriers.wait(g,{number},{need},{whole})")


def _warp_barrier(e: Emit) -> None:
    """Emits nothing under a guard: :mod:`~cutegen_lab.emulator.translate.meetings` has synchronised the lanes."""
    if e.ins.guard is not None:
        return
    e.parks, e.meets = True, "a warp-wide instruction"
    mask, given = e.ops[0], e.s(e.ops[0], "u32")
    e.line(f"return warp_barrier(g,{None if traits.names_every_lane(mask) else given})")


def _vote(e: Emit, number: str, need: str, whole: bool) -> None:
    """9.7.13.1 barrier.red: popc, and, or of the threads' predicates."""
    what, kind = e.one_of("popc", "and", "or"), e.type("u32", "pred")
    if (what == "popc") != (kind == "u32"):
        raise e.refuse(f"`{e.ins.name}` does not exist")
    e.line(f"w=g.ctas.barriers.wait(g,{number},{need},{whole},{e.s(e.ops[-1], 'pred')})")
    e.line(f"{e.d(e.ops[0], kind)}[:]=g.ctas.barriers.outcome(g,{number},{what!r})")
    e.line("return w")


def _cluster(e: Emit, whole: bool) -> None:
    if whole:
        e.collective = True
        e.line("g.ctas.require_whole_warps(g,'a cluster barrier')")
    mode = e.one_of("arrive", "wait")
    relaxed = e.has("relaxed")
    e.skip("release", "acquire")
    if mode == "wait":
        e.parks = True
        e.line("return cluster_wait(g)")
    else:
        e.collective = True
        e.line(f"g.ctas.cluster_barrier.arrive(g,{relaxed})")


@opcode("griddepcontrol")
def griddepcontrol(e: Emit) -> None:
    """9.7.13.12 griddepcontrol.launch_dependents, .wait: later accesses are ordered after earlier launches."""
    e.klass = "control"
    waits = e.one_of("launch_dependents", "wait") == "wait"
    e.line("wait_for_launches(g)" if waits else "launch_dependents(g)")


@runtime
def wait_for_launches(g: Any) -> None:
    if g.ctas.clocks is not None:
        g.ctas.clocks.wait_for_launches(g.gid)


@runtime
def launch_dependents(g: Any) -> None:
    if g.ctas.clocks is not None:
        g.ctas.clocks.launch_dependents(g.gid)


@runtime
def proxy_fence(g: Any, shared: bool, everywhere: bool) -> None:
    if g.ctas.clocks is not None:
        g.ctas.clocks.proxy_fence(g.gid, shared, everywhere)


@runtime
def init_fence(g: Any) -> None:
    if g.ctas.clocks is not None:
        g.ctas.clocks.init_fence(np.unique(g.gid >> 5))


@runtime
def memory_fence(g: Any, order: Ordering) -> None:
    if g.ctas.causality is not None:
        g.ctas.causality.fence(g.gid, order)


@opcode("setmaxnreg")
def setmaxnreg(e: Emit) -> None:
    """9.7.19.5 setmaxnreg: whole warpgroups execute it."""
    e.skip("sync", "aligned", "u32")
    action = e.one_of("inc", "dec")
    (count,) = e.ops
    if not isinstance(count, ptx.Imm) or count.value % 8 or not 24 <= count.value <= 256:
        raise e.refuse("setmaxnreg takes a multiple of 8 between 24 and 256")
    e.klass = "control"
    e.collective = True
    e.line(f"change_registers(g,{action == 'inc'},{count.value})")


@runtime
def change_registers(g: Any, more: bool, registers: int) -> None:
    if g.ctas.registers is not None:
        g.ctas.registers.change(g, more, registers)


@opcode("membar", "fence", "nanosleep", "pmevent")
def ordering(e: Emit) -> None:
    """9.7.13.4 membar and fence, 9.7.19.3 nanosleep: they change no value, since lanes of a CTA batch see each other's
    writes immediately. A proxy fence orders these writes before accesses of the async proxy."""
    if shared_global := traits.proxies(e.ins):
        e.line("proxy_fence(g,{},{})".format(*shared_global))
    if "mbarrier_init" in e.mods:
        e.line("init_fence(g)")
    if traits.is_fence(e.ins):
        e.line(f"memory_fence(g,{e.const(traits.ordering(e.ins))})")
    e.mods.clear()
    e.klass = "control"
    for operand in e.ops:
        if isinstance(operand, ptx.Reg):
            e.s(operand, "b32" if operand.file == "U" else "b64")


@runtime
def cluster_wait(g: Any) -> Any:
    return g.ctas.cluster_barrier.wait(g)
