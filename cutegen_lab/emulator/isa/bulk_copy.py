"""Bulk and tensor copies (PTX ISA 9.7.9.25.4 cp.async.bulk, cp.reduce.async.bulk, 9.7.9.25.5 cp.async.bulk.tensor,
cp.reduce.async.bulk.tensor, 9.7.9.25.6 commit_group and wait_group)."""

from __future__ import annotations

from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.tma import issue
from cutegen_lab.emulator.tma.box_copy import reduction
from cutegen_lab.emulator.translate.emit import Emit

_SPACES = ("shared::cluster", "shared::cta", "global")
_REDUCTIONS = ("add", "min", "max", "and", "or", "xor")
_TYPES = ("f16", "bf16", "b32", "u32", "s32", "b64", "u64", "s64", "f32", "f64")
_NONE = "None"

assert issue.__name__, "importing it registers functions that generated code calls"


def bulk_copy(e: Emit) -> None:
    """Every form of cp.async.bulk and cp.reduce.async.bulk except im2col, scatter and gather."""
    reduces = e.has("reduce")
    e.has("async")
    e.has("bulk")
    e.klass = "bulk"
    if group := e.one_of("commit_group", "wait_group"):
        reads = e.has("read")
        limit = e.s(e.ops[0], "u32") if group == "wait_group" else "0"
        e.line(f"bulk_{group}(g,{limit},{reads})" if group == "wait_group" else "bulk_commit_group(g)")
        return
    if e.has("prefetch"):
        e.mods.clear()
        return
    order = [m for m in e.mods if m in _SPACES]
    e.skip(*_SPACES)
    rank = next((m for m in e.mods if m in ("1d", "2d", "3d", "4d", "5d")), "")
    e.skip(rank, "tile")
    completes = e.one_of("mbarrier::complete_tx::bytes", "bulk_group")
    multicast, hint = e.has("multicast::cluster"), e.has("L2::cache_hint")
    if len(order) != 2 or bool(rank) != e.has("tensor") or (multicast and order[1] != "global"):
        raise e.refuse(f"the emulator does not execute `{e.ins.name}`")
    name = e.one_of(*_REDUCTIONS) if reduces else ""
    form = (order[0] == "global", completes == "bulk_group")
    if form == (False, False):
        _into_shared(e, order[1], rank, multicast, hint, name)
    elif form == (True, True):
        _into_global(e, rank, name, hint)
    else:
        raise e.refuse(f"the emulator does not execute `{e.ins.name}`")


def _sum(e: Emit, operand: ptx.Operand) -> str:
    """Expression of address plus offset: a 64-bit number for each lane."""
    base, offset = e.address(operand)
    return f"plus(g,{base},{offset})"


def _coordinates(e: Emit, operand: ptx.Operand, rank: str) -> str:
    if not isinstance(operand, ptx.TensorAddress) or f"{len(operand.coordinates)}d" != rank:
        raise e.refuse(f"the emulator does not execute `{e.ins.name}` with coordinates {operand}")
    listed = ",".join(f"lanes_of(g,{e.s(c, 's32')})" for c in operand.coordinates)
    return f"lanes_of(g,{e.s(operand.base, 'b64')}),[{listed}]"


def _into_shared(e: Emit, source: str, rank: str, multicast: bool, hint: bool, reduce: str) -> None:
    given = list(e.ops)
    if hint:
        given.pop()
    mask = f"lanes_of(g,{e.s(given.pop(), 'b16')})" if multicast else _NONE
    if rank:
        if reduce or len(given) != 3 or source != "global":
            raise e.refuse(f"the emulator does not execute `{e.ins.name}`")
        place = _coordinates(e, given[1], rank)
        e.line(f"bulk_tensor_load(g,{_sum(e, given[0])},{place},{_sum(e, given[2])},{mask})")
        return
    to, at, size, barrier = given
    kind = next((t for t in _TYPES if e.has(t)), "")
    ends = f"{_sum(e, to)},{_sum(e, at)},lanes_of(g,{e.s(size, 'u32')}),{_sum(e, barrier)}"
    if source == "global" and not reduce:
        e.line(f"bulk_load(g,{ends},{mask})")
    elif source == "shared::cta" and not multicast:
        e.line(f"bulk_between(g,{ends},{_reduction(e, reduce, kind)})")
    else:
        raise e.refuse(f"the emulator does not execute `{e.ins.name}`")


def _into_global(e: Emit, rank: str, reduce: str, hint: bool) -> None:
    given = list(e.ops)
    if hint:
        given.pop()
    if rank:
        e.line(f"bulk_tensor_store(g,{_coordinates(e, given[0], rank)},{_sum(e, given[1])},{reduce!r})")
        return
    e.skip("noftz")
    kind = next((t for t in _TYPES if e.has(t)), "")
    if len(given) != 3:
        raise e.refuse(f"the emulator does not execute `{e.ins.name}`")
    size = f"lanes_of(g,{e.s(given[2], 'u32')})"
    e.line(f"bulk_store(g,{_sum(e, given[0])},{_sum(e, given[1])},{size},{_reduction(e, reduce, kind)})")


def _reduction(e: Emit, name: str, kind: str) -> str:
    """Name of a constant (reduction, bytes per element); "None" without a reduction."""
    if not name:
        return _NONE
    dtype = {"b32": "u32", "b64": "u64"}.get(kind, kind)
    width = 2 if dtype.endswith("16") else int(dtype[1:]) // 8
    return e.const((reduction(name, dtype), width))
