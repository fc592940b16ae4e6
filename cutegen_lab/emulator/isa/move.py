"""Moves and addresses (PTX ISA 9.7.9.1 mov, .2 mov that packs or unpacks, .20 cvta, .24 mapa, .25 getctarank)."""

from __future__ import annotations

from typing import Any

import numpy as np

from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.generated_globals import runtime
from cutegen_lab.emulator.memory.block_memory import GENERIC_LOCAL, GENERIC_SHARED, RANK_SHIFT
from cutegen_lab.emulator.ptx.types import WIDTH, Array
from cutegen_lab.emulator.translate.emit import Emit, opcode

_PARTS = {(4, 2): ("b16", "u16"), (8, 2): ("b32", "u32"), (8, 4): ("b16", "u16")}


@opcode("mov")
def mov(e: Emit) -> None:
    """9.7.9.1 mov: copies, packs ``{a, b}`` and unpacks."""
    kind = e.type()
    e.klass = "move"
    target, source = e.ops
    if isinstance(target, ptx.Vector):
        part, view = _PARTS[WIDTH[kind], len(target.items)]
        e.line(f"w=np.array({e.s(source, kind)},ndmin=1).view({view})")
        for i, item in enumerate(target.items):
            if not isinstance(item, ptx.Sink):
                e.line(f"{e.d(item, part)}[:]=w[{i}::{len(target.items)}]")
    elif isinstance(source, ptx.Vector):
        part, view = _PARTS[WIDTH[kind], len(source.items)]
        e.line(f"w={e.d(target, _bits(kind))}.view({view})")
        for i, item in enumerate(source.items):
            e.line(f"w[{i}::{len(source.items)}]={e.s(item, part)}")
    else:
        e.put(0, kind, e.s(source, kind))


def _bits(kind: str) -> str:
    return f"b{8 * WIDTH[kind]}"


@opcode("cvta")
def cvta(e: Emit) -> None:
    """9.7.9.20 cvta: between a state space's addresses and generic ones; addresses of global, const and param are equal
    to generic ones."""
    back = e.has("to")
    space = e.one_of("global", "shared", "shared::cta", "shared::cluster", "local", "const", "param")
    kind = e.type("u64", "u32")
    e.klass = "integer"
    base = {"shared": GENERIC_SHARED, "local": GENERIC_LOCAL}.get(space.partition("::")[0], 0)
    source = e.s(e.ops[1], kind)
    if kind == "u32" and base:
        raise e.refuse("the emulator does not execute `cvta` with 32-bit addresses")
    if base:
        e.line(f"np.{'subtract' if back else 'add'}({source},{e.const(np.uint64(base))},out={e.d(e.ops[0], kind)})")
    else:
        e.put(0, kind, source)


@opcode("isspacep")
def isspacep(e: Emit) -> None:
    """9.7.9.19 isspacep."""
    space = e.one_of("global", "shared", "shared::cta", "shared::cluster", "local").partition("::")[0]
    e.klass = "integer"
    a = e.s(e.ops[1], "u64")
    bounds = {"shared": (GENERIC_SHARED, GENERIC_LOCAL), "local": (GENERIC_LOCAL, GENERIC_LOCAL + (1 << 60)),
              "global": (0, GENERIC_SHARED)}  # fmt: skip
    low, high = (e.const(np.uint64(b)) for b in bounds[space])
    e.put(0, "pred", f"({a}>={low})&({a}<{high})")


@opcode("mapa")
def mapa(e: Emit) -> None:
    """9.7.9.24 mapa: the address of the same shared variable in another block of the cluster."""
    shared = e.has("shared::cluster")
    kind = e.type("u32", "u64")
    e.klass = "integer"
    base = 0 if shared or kind == "u32" else GENERIC_SHARED
    rank = e.s(e.ops[2], "u32")
    e.put(0, kind, f"map_address({e.s(e.ops[1], kind)},{rank},{base})")


@opcode("getctarank")
def getctarank(e: Emit) -> None:
    """9.7.9.25 getctarank."""
    shared = e.has("shared::cluster")
    kind = e.type("u32", "u64")
    e.klass = "integer"
    base = 0 if shared or kind == "u32" else GENERIC_SHARED
    e.put(0, "u32", f"address_rank(g,{e.s(e.ops[1], kind)},{base})")


@runtime
def map_address(address: Array, rank: Array, base: int) -> Array:
    offset = (address - address.dtype.type(base)) & address.dtype.type((1 << RANK_SHIFT) - 1)
    moved = (np.asarray(rank).astype(address.dtype) + address.dtype.type(1)) << address.dtype.type(RANK_SHIFT)
    return np.asarray(offset + moved + address.dtype.type(base))


@runtime
def address_rank(g: Any, address: Array, base: int) -> Array:
    rank = (np.asarray(address).astype(np.uint64) - np.uint64(base)) >> np.uint64(RANK_SHIFT)
    own = (g.ctas.numbers[g.block] % g.ctas.cluster_size).astype(np.uint64)
    return np.where(rank == 0, own, rank - np.uint64(1)).astype(np.uint32)
