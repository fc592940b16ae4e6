"""Exchange within a warp (PTX ISA 9.7.9.6 shfl.sync, 9.7.13.8 vote.sync, .9 match.sync, .10 activemask, .11 redux.sync,
.17 elect.sync)."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.generated_globals import runtime
from cutegen_lab.emulator.ptx import traits
from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.translate.emit import Emit, opcode

_LANES = np.arange(32)
_TABLES: dict[tuple[str, int, int], Array] = {}


def _begin(e: Emit, mask: ptx.Operand) -> str:
    """Declares a warp-wide instruction; returns the expression of its member mask (None: every lane)."""
    e.collective = True
    e.klass = "warp"
    if traits.names_every_lane(mask):
        e.line("g.ctas.require_whole_warps(g,'a warp-wide instruction')")
        return "None"
    e.line(f"check_members(g,{e.s(mask, 'u32')})")
    return e.s(mask, "u32")


@opcode("shfl")
def shfl(e: Emit) -> None:
    """9.7.9.6 shfl.sync: d[|p] = the source lane's a; c packs the clamp and the segment mask."""
    if not e.has("sync"):
        raise e.refuse(f"`{e.ins.name}` without .sync does not exist on sm_70 and later")
    mode = e.one_of("up", "down", "bfly", "idx")
    e.type("b32")
    mask = _begin(e, e.ops[4])
    target = e.ops[0]
    value, predicate = (target.first, target.second) if isinstance(target, ptx.Pair) else (target, ptx.Sink())
    a, b, c = e.s(e.ops[1], "b32"), e.s(e.ops[2], "u32"), e.s(e.ops[3], "u32")
    fixed = isinstance(predicate, ptx.Sink) and isinstance(e.ops[2], ptx.Imm) and isinstance(e.ops[3], ptx.Imm)
    if mask == "None" and fixed:
        shuffled = f"shuffle_fixed(g,{a},{mode!r},{b},{c})"
        e.line(f"{e.d(value, 'b32')}[:]={shuffled}")
        return
    e.line(f"w,x=shuffle(g,{a},{mode!r},{b},{c},{mask})")
    e.line(f"{e.d(value, 'b32')}[:]=w")
    if not isinstance(predicate, ptx.Sink):
        e.line(f"{e.d(predicate, 'pred')}[:]=x")


def _source_lane(lane: Array, mode: str, b: Any, c: Any) -> tuple[Array, Array]:
    """(source lane, in range) as the ISA's pseudocode gives them."""
    b, c = np.asarray(b).astype(np.int64) & 31, np.asarray(c).astype(np.int64)
    clamp, segment = c & 31, c >> 8 & 31
    top = (lane & segment) | (clamp & ~segment)
    bottom = lane & segment
    if mode == "up":
        source = lane - b
        inside = source >= top
    elif mode == "down":
        source = lane + b
        inside = source <= top
    elif mode == "bfly":
        source = lane ^ b
        inside = source <= top
    else:
        source = bottom | (b & ~segment)
        inside = source <= top
    return np.where(inside, source, lane), inside


@runtime
def shuffle_fixed(g: Any, a: Any, mode: str, b: int, c: int) -> Array:
    """shfl.sync with constant b and c, the usual case: one table of source lanes serves all whole warps."""
    if np.ndim(a) == 0:
        return np.asarray(a)
    if not g.whole():
        return shuffle(g, a, mode, b, c)[0]
    rows = a.reshape(-1, 32)
    if mode == "idx" and c & 0x1F == 31 and not c >> 8:
        return np.repeat(rows[:, b & 31], 32)
    table = _TABLES.get((mode, b, c))
    if table is None:
        table = _TABLES[mode, b, c] = _source_lane(_LANES, mode, b, c)[0]
    return np.asarray(rows.take(table, axis=1)).ravel()


@runtime
def shuffle(g: Any, a: Any, mode: str, b: Any, c: Any, mask: Any = None) -> tuple[Array, Array]:
    source, inside = _source_lane(g.lane, mode, b, c)
    if np.ndim(a) == 0:
        return np.full(g.n, a), inside
    wanted = (g.gid & ~31) + source
    place = np.minimum(np.searchsorted(g.gid, wanted), g.n - 1)
    absent = g.gid[place] != wanted
    if mask is not None:
        absent |= np.asarray(mask).astype(np.int64) >> source & 1 == 0
    if absent.any():
        lane = int(np.flatnonzero(absent)[0])
        message = f"shfl reads lane {int(source[lane])}, which does not take part"
        raise Trap(Verdict.BARRIER_DIVERGENCE, message, int(g.gid[lane]))
    return a[place], inside


@runtime
def check_members(g: Any, mask: Any) -> None:
    """Traps if a member mask omits its own lane, or names a running lane that is not in ``g``."""
    members = np.broadcast_to(np.asarray(mask, np.uint64), (g.n,))
    bit = np.left_shift(np.uint64(1), g.lane.astype(np.uint64))
    outside = np.flatnonzero((members & bit) == 0)
    if len(outside):
        message = f"a thread executes a warp-wide instruction whose mask {int(members[outside[0]]):#x} leaves it out"
        raise Trap(Verdict.BARRIER_DIVERGENCE, message, int(g.gid[outside[0]]))
    starts = np.flatnonzero(np.r_[True, (g.gid[1:] >> 5) != (g.gid[:-1] >> 5)])
    here = np.bitwise_or.reduceat(bit, starts)
    running = (~g.ctas.exited.reshape(-1, 32)[g.gid[starts] >> 5] * (np.uint64(1) << _LANES.astype(np.uint64))).sum(
        axis=1
    )
    missing = members[starts] & running.astype(np.uint64) & ~here
    if missing.any():
        at = int(np.flatnonzero(missing)[0])
        message = f"a warp-wide instruction waits for lanes {int(missing[at]):#x}, which are elsewhere"
        raise Trap(Verdict.BARRIER_DIVERGENCE, message, int(g.gid[starts[at]]))
    if g.ctas.shared.races is not None:
        lanes = np.diff(np.r_[starts, g.n])
        g.ctas.shared.races.members_sync(g, members, np.repeat(running.astype(np.uint64), lanes))


def _segments(g: Any, mask: Any) -> tuple[Array, Array]:
    """(lane order, segment number by lane in that order): a segment is the lanes of one warp with the same mask, which
    exchange values."""
    warp = g.gid >> 5
    if mask is None or np.ndim(mask) == 0:
        return np.arange(g.n), np.cumsum(np.r_[False, warp[1:] != warp[:-1]])
    order = np.lexsort((np.asarray(mask), warp))
    w, m = warp[order], np.asarray(mask)[order]
    return order, np.cumsum(np.r_[False, (w[1:] != w[:-1]) | (m[1:] != m[:-1])])


@runtime
def reduce_lanes(g: Any, mask: Any, value: Any, ufunc: Any) -> Array:
    """Reduces each segment by ``ufunc``; all its lanes get the result."""
    value = np.broadcast_to(value, (g.n,))
    if mask is None and g.whole():
        return np.repeat(ufunc.reduce(value.reshape(-1, 32), axis=1), 32)
    order, segment = _segments(g, mask)
    starts = np.flatnonzero(np.r_[True, segment[1:] != segment[:-1]])
    out = np.empty(g.n, value.dtype)
    out[order] = ufunc.reduceat(value[order], starts)[segment]
    return out


@runtime
def ballot(g: Any, mask: Any, predicate: Any) -> Array:
    bit = np.left_shift(np.uint32(1), g.lane.astype(np.uint32))
    return reduce_lanes(g, mask, np.where(predicate, bit, np.uint32(0)), np.bitwise_or)


@opcode("vote")
def vote(e: Emit) -> None:
    """9.7.13.8 vote.sync .all .any .uni .ballot."""
    e.has("sync")
    mode = e.one_of("all", "any", "uni", "ballot")
    e.type("pred", "b32")
    mask = _begin(e, e.ops[2])
    a = e.s(e.ops[1], "pred")
    if mode == "ballot":
        e.put(0, "b32", f"ballot(g,{mask},{a})")
    elif mode == "uni":
        every, some = (f"reduce_lanes(g,{mask},{a},np.logical_{x})" for x in ("and", "or"))
        e.put(0, "pred", f"{every}|~{some}")
    else:
        e.put(0, "pred", f"reduce_lanes(g,{mask},{a},np.logical_{'and' if mode == 'all' else 'or'})")


@opcode("match")
def match(e: Emit) -> None:
    """9.7.13.9 match.sync .any .all."""
    e.has("sync")
    mode, kind = e.one_of("any", "all"), e.type("b32", "b64")
    mask = _begin(e, e.ops[2])
    target = e.ops[0]
    value, predicate = (target.first, target.second) if isinstance(target, ptx.Pair) else (target, ptx.Sink())
    e.line(f"w,x=match_lanes(g,{mask},{e.s(e.ops[1], kind)},{mode == 'all'})")
    if not isinstance(value, ptx.Sink):
        e.line(f"{e.d(value, 'b32')}[:]=w")
    if not isinstance(predicate, ptx.Sink):
        e.line(f"{e.d(predicate, 'pred')}[:]=x")


@runtime
def match_lanes(g: Any, mask: Any, value: Any, every: bool) -> tuple[Array, Array]:
    value = np.broadcast_to(value, (g.n,))
    order, segment = _segments(g, mask)
    number = np.empty(g.n, np.int64)
    number[order] = segment
    _, same = np.unique(np.stack([number.astype(np.uint64), value.astype(np.uint64)]), axis=1, return_inverse=True)
    bit = np.left_shift(np.uint64(1), g.lane.astype(np.uint64))
    alike = np.zeros(int(same.max()) + 1, np.uint64)
    np.bitwise_or.at(alike, same.ravel(), bit)
    everyone = np.zeros(int(number.max()) + 1, np.uint64)
    np.bitwise_or.at(everyone, number, bit)
    found = alike[same.ravel()]
    if not every:
        return found.astype(np.uint32), np.ones(g.n, np.bool_)
    agree = found == everyone[number]
    return np.where(agree, found, 0).astype(np.uint32), agree


@opcode("activemask")
def activemask(e: Emit) -> None:
    """9.7.13.10 activemask: the lanes of the warp that execute it together."""
    e.type("b32")
    e.collective = True
    e.klass = "warp"
    e.put(0, "b32", "active_lanes(g)")


@runtime
def active_lanes(g: Any) -> Array:
    """Result of activemask. Lanes of a warp may diverge wherever nothing makes them reconverge (CUDA C++ Programming
    Guide, "Independent Thread Scheduling"). So if warps are interleaved (``warps_seed``), each warp is split at random
    into two groups of lanes, and a lane sees only its own group.
    """
    if not g.ctas.warps_seed:
        return ballot(g, None, True)
    drawn = random.Random(g.ctas.warps_seed).getrandbits(32)  # noqa: S311 - an order of lanes is no secret
    half = drawn >> g.lane & 1 != 0
    return np.where(half, ballot(g, None, half), ballot(g, None, ~half))


@opcode("redux")
def redux(e: Emit) -> None:
    """9.7.13.11 redux.sync on 32-bit integers."""
    e.has("sync")
    operation, kind = e.one_of("add", "min", "max", "and", "or", "xor"), e.type("u32", "s32", "b32")
    mask = _begin(e, e.ops[2])
    ufunc = {"add": "add", "min": "minimum", "max": "maximum"}.get(operation, f"bitwise_{operation}")
    cast = f".astype({'i32' if kind == 's32' else 'u32'})" if operation == "add" else ""
    e.put(0, kind, f"reduce_lanes(g,{mask},{e.s(e.ops[1], kind)},np.{ufunc}){cast}")


@opcode("elect")
def elect(e: Emit) -> None:
    """9.7.13.17 elect.sync: elects the lowest lane of the mask."""
    e.has("sync")
    mask = _begin(e, e.ops[1])
    target = e.ops[0]
    value, predicate = (target.first, target.second) if isinstance(target, ptx.Pair) else (ptx.Sink(), target)
    e.line(f"w=reduce_lanes(g,{mask},g.lane,np.minimum)")
    if not isinstance(value, ptx.Sink):
        e.line(f"{e.d(value, 'b32')}[:]=w")
    e.line(f"{e.d(predicate, 'pred')}[:]=g.lane==w")
