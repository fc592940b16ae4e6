"""Loads and stores (PTX ISA 9.7.9.8 ld, .9 ld.global.nc, .11 st, .15 prefetch, .12 st.async)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.generated_globals import runtime
from cutegen_lab.emulator.memory.block_memory import GENERIC_LOCAL, GENERIC_SHARED
from cutegen_lab.emulator.ptx.types import RAW, WIDTH, Array
from cutegen_lab.emulator.ptx.used_bytes import USED
from cutegen_lab.emulator.translate.emit import Emit, opcode

# Cache and ordering modifiers do not change the value that a lane reads while the lanes of a block run in lockstep.
_HINTS = (
    "weak", "relaxed", "acquire", "release", "acq_rel", "volatile", "mmio", "cta", "cluster", "gpu", "sys", "ca", "cg",
    "cs", "lu", "cv", "wb", "wt", "nc", "L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last",
    "L1::no_allocate", "L2::evict_normal", "L2::evict_first", "L2::evict_last", "L2::64B", "L2::128B", "L2::256B",
)  # fmt: skip
_DISCARDED = 128  # the size that discard takes: bytes of an L2 line
_SPACES = ("global", "shared", "shared::cta", "shared::cluster", "local", "param", "param::entry", "const")


def skip_hints(e: Emit) -> int:
    """Consumes hints; returns 1 if a cache-policy operand follows, otherwise 0."""
    e.skip(*_HINTS)
    return int(e.has("L2::cache_hint"))


def space_of(e: Emit) -> str:
    """The state space: global, shared, local or generic. const and param count as global."""
    space = e.one_of(*_SPACES, default="generic").partition("::")[0]
    return {"param": "global", "const": "global"}.get(space, space)


def _values(e: Emit, operand: ptx.Operand, kind: str) -> list[str]:
    """Register rows of a store's values as raw bits of the access width."""
    width = WIDTH[kind]
    if width == 1:
        return [f"{e.s(o, 'b16')}.astype(u8)" for o in e.items(operand)]
    return [e.s(o, f"b{8 * width}") for o in e.items(operand)]


def _argument(operand: ptx.Operand) -> ptx.Argument | None:
    """The call argument (``.param``) that ``[name]`` names, or None."""
    base = operand.base if isinstance(operand, ptx.Address) and not operand.offset else None
    return base if isinstance(base, ptx.Argument) else None


@opcode("ld", "ldu")
def ld(e: Emit) -> None:
    """9.7.9.8 ld, 9.7.9.9 ld.global.nc, 9.7.9.10 ldu."""
    constant = bool({"param", "param::entry", "const"} & set(e.mods))
    cluster = "shared::cluster" in e.mods
    space = space_of(e)
    skip_hints(e)
    used = next((m for m in e.mods if m.startswith(USED)), "")
    e.skip(used)
    e.one_of("v2", "v4", "v8")
    kind = e.type()
    if argument := _argument(e.ops[1]):
        e.klass = "move"
        e.put(0, f"b{8 * WIDTH[kind]}", e.s(argument, f"b{8 * WIDTH[kind]}"))
        return
    e.klass = "move" if constant else {"global": "load", "generic": "load"}.get(space, space)
    base, offset = e.address(e.ops[1])
    width, targets = WIDTH[kind], e.items(e.ops[0])
    if e.klass == "load":
        e.load_bytes = width * len(targets)
    load, given = f"load_{'cluster' if cluster else space}", f"g,{base},{offset},{width},{len(targets)}"
    e.line(f"w=load_used({used.removeprefix(USED)},{load},{given})" if used else f"w={load}({given})")
    for i, target in enumerate(targets):
        if isinstance(target, ptx.Sink):
            continue
        row, _ = e.d_wide(target, f"b{8 * width}")
        item = f"w[{i}]"
        if kind[0] == "s":
            item = f"{item}.view(i{8 * width})"
            row, _ = e.d_wide(target, kind)
        e.line(f"{row}[:]={item}")


@opcode("st")
def st(e: Emit) -> None:
    """9.7.9.11 st; 9.7.9.12 st.async: stores to another block's shared memory and completes the bytes on an mbarrier
    there."""
    asynchronous = e.has("async")
    cluster = "shared::cluster" in e.mods
    space = space_of(e)
    e.has("mbarrier::complete_tx::bytes")
    skip_hints(e)
    e.one_of("v2", "v4", "v8")
    kind = e.type()
    if argument := _argument(e.ops[0]):
        e.klass = "move"
        e.line(f"{e.d(argument, f'b{8 * WIDTH[kind]}')}[:]={e.s(e.ops[1], f'b{8 * WIDTH[kind]}')}")
        return
    e.klass = {"global": "store", "generic": "store"}.get(space, space)
    base, offset = e.address(e.ops[0])
    values = ",".join(_values(e, e.ops[1], kind))
    if asynchronous:
        barrier, at = e.address(e.ops[2])
        e.line(f"store_async(g,{base},{offset},{barrier},{at},{WIDTH[kind]},[{values}])")
    else:
        e.line(f"store_{'cluster' if cluster else space}(g,{base},{offset},{WIDTH[kind]},[{values}])")


@opcode("discard")
def discard(e: Emit) -> None:
    """9.7.9.16 discard: the bytes are undefined afterwards."""
    e.has("global")
    size = e.ops[1] if len(e.ops) > 1 else None
    if not e.has("L2") or not isinstance(size, ptx.Imm) or size.value != _DISCARDED:
        raise e.refuse(f"`{e.ins.text}` does not exist: discard{{.global}}.L2 takes {_DISCARDED} bytes")
    e.klass = "store"
    base, offset = e.address(e.ops[0])
    e.line(f"discard_global(g,{base},{offset})")


@opcode("prefetch", "prefetchu", "applypriority", "createpolicy")
def cache_control(e: Emit) -> None:
    """9.7.9.15 prefetch and similar hints change no value; cache policies are opaque and ignored."""
    e.mods.clear()
    e.klass = "control"
    if e.ins.opcode == "createpolicy":
        e.line(f"{e.d(e.ops[0], 'b64')}[:]=0")


def _split(raw: Array, width: int, count: int) -> list[Array]:
    """Whole accesses → one array for each vector component."""
    if count == 1:
        return [raw]
    table: Array = raw.view(RAW[width]).reshape(-1, count)
    return [table[:, i] for i in range(count)]


def _join(values: list[Array], width: int, lanes: int) -> Array:
    if len(values) == 1:
        return values[0]
    table: Array = np.empty((lanes, len(values)), RAW[width])
    for i, value in enumerate(values):
        table[:, i] = value
    return table.view(RAW[width * len(values)]).ravel()


def _global_address(g: Any, address: Array, offset: int) -> Array:
    if offset:
        address = address + np.uint64(offset % (1 << 64))
    return address if np.ndim(address) else np.full(g.n, address, np.uint64)


@runtime
def load_global(g: Any, address: Array, offset: int, width: int, count: int) -> list[Array]:
    at, whole = _global_address(g, address, offset), width * count
    if not int(at[0]) >> 60:  # parameters and module data are not DRAM traffic
        g.ctas.counters.access("load", g, at, whole)
    if whole <= 16:
        return _split(g.ctas.memory.load(g, at, whole), width, count)
    if int(np.bitwise_or.reduce(at)) & (whole - 1):
        raise Trap(Verdict.MISALIGNED, f"{whole}-byte load at {int(at[0]):#x}", int(g.gid[0]), int(at[0]))
    halves = [_split(g.ctas.memory.load(g, at + np.uint64(h), 16), width, count // 2) for h in (0, 16)]
    return halves[0] + halves[1]


@runtime
def load_used(
    mask: int, load: Callable[..., list[Array]], g: Any, address: Array, offset: int, width: int, count: int
) -> list[Array]:
    """``load`` of which only the bytes in ``mask`` must be in bounds. If the whole access is not in bounds, the used
    values are loaded one by one; the access must then be aligned, so that it lies in one sector."""
    try:
        return load(g, address, offset, width, count)
    except Trap as trap:
        at = np.atleast_1d(address).astype(np.int64) + offset
        used = [bool(mask >> i * width & (1 << width) - 1) for i in range(count)]
        aligned = int(np.bitwise_or.reduce(at)) % (width * count) == 0
        if trap.verdict is not Verdict.OUT_OF_BOUNDS or not aligned or not any(used):
            raise
    unused = np.full(g.n, ~RAW[width](0))
    return [load(g, address, offset + i * width, width, 1)[0] if used[i] else unused for i in range(count)]


@runtime
def store_global(g: Any, address: Array, offset: int, width: int, values: list[Array]) -> None:
    at, whole = _global_address(g, address, offset), width * len(values)
    g.ctas.counters.access("store", g, at, whole)
    if whole <= 16:
        g.ctas.memory.store(g, at, whole, _join(values, width, g.n))
        return
    if int(np.bitwise_or.reduce(at)) & (whole - 1):
        raise Trap(Verdict.MISALIGNED, f"{whole}-byte store at {int(at[0]):#x}", int(g.gid[0]), int(at[0]))
    half = len(values) // 2
    for h, part in ((0, values[:half]), (16, values[half:])):
        g.ctas.memory.store(g, at + np.uint64(h), 16, _join(part, width, g.n))


@runtime
def discard_global(g: Any, address: Array, offset: int) -> None:
    at = _global_address(g, address, offset)
    g.ctas.memory.discard(g, at, _DISCARDED)


@runtime
def load_shared(g: Any, address: Array, offset: int, width: int, count: int, own: bool = True) -> list[Array]:
    whole = width * count
    index = g.ctas.shared.index(g, address, offset, whole, own)
    g.ctas.counters.shared("load", g, index, whole)
    return _split(g.ctas.shared.load(g, index, whole), width, count)


@runtime
def store_shared(g: Any, address: Array, offset: int, width: int, values: list[Array], own: bool = True) -> None:
    whole = width * len(values)
    index = g.ctas.shared.index(g, address, offset, whole, own)
    g.ctas.counters.shared("store", g, index, whole)
    g.ctas.shared.store(g, index, whole, _join(values, width, g.n))


@runtime
def load_cluster(g: Any, address: Array, offset: int, width: int, count: int) -> list[Array]:
    whole = width * count
    g.ctas.counters.cluster(g)
    return _split(g.ctas.shared.load(g, g.ctas.shared.index(g, address, offset, whole), whole), width, count)


@runtime
def store_cluster(g: Any, address: Array, offset: int, width: int, values: list[Array]) -> None:
    whole = width * len(values)
    g.ctas.counters.cluster(g)
    g.ctas.shared.store(g, g.ctas.shared.index(g, address, offset, whole), whole, _join(values, width, g.n))


@runtime
def load_local(g: Any, address: Array, offset: int, width: int, count: int) -> list[Array]:
    whole = width * count
    return _split(g.ctas.local.load(g, g.ctas.local.index(g, address, offset, whole), whole), width, count)


@runtime
def store_local(g: Any, address: Array, offset: int, width: int, values: list[Array]) -> None:
    whole = width * len(values)
    g.ctas.local.store(g, g.ctas.local.index(g, address, offset, whole), whole, _join(values, width, g.n))


def spaces(address: Array) -> list[tuple[str, Array, int]]:
    """(state space, mask of its lanes, base address of the space) for each space that generic addresses refer to."""
    high = address >> np.uint64(60)
    found = []
    for name, tag, base in (("shared", 4, GENERIC_SHARED), ("local", 5, GENERIC_LOCAL)):
        mask = high == tag
        if mask.any():
            found.append((name, mask, base))
    rest = (high != 4) & (high != 5)
    if rest.any():
        found.append(("global", rest, 0))
    return found


@runtime
def load_generic(g: Any, address: Array, offset: int, width: int, count: int) -> list[Array]:
    at = _global_address(g, address, offset)
    out = [np.empty(g.n, RAW[width]) for _ in range(count)]
    for name, mask, base in spaces(at):
        part, index = _lanes(g, mask)
        loaded = _LOAD[name](part, at[index] - np.uint64(base), 0, width, count)
        for target, value in zip(out, loaded, strict=True):
            target[index] = value
    return out


@runtime
def store_generic(g: Any, address: Array, offset: int, width: int, values: list[Array]) -> None:
    at = _global_address(g, address, offset)
    for name, mask, base in spaces(at):
        part, index = _lanes(g, mask)
        chosen = [np.broadcast_to(v, (g.n,))[index] for v in values]
        _STORE[name](part, at[index] - np.uint64(base), 0, width, chosen)


_LOAD: dict[str, Callable[..., Any]] = {
    "shared": partial(load_shared, own=False),
    "local": load_local,
    "global": load_global,
}
_STORE: dict[str, Callable[..., None]] = {
    "shared": partial(store_shared, own=False),
    "local": store_local,
    "global": store_global,
}


def _lanes(g: Any, mask: Array) -> tuple[Any, Array]:
    index = np.flatnonzero(mask)
    return (g, index) if len(index) == g.n else (g.subset(index, ([], [], [], []), g.pc), index)


lanes_where = _lanes
