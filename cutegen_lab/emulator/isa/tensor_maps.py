"""Tensor maps that a kernel changes (PTX ISA 9.7.9.27 tensormap.replace, 9.7.13.16 tensormap.cp_fenceproxy).

On hardware a copy sees a changed map only after a fence of the tensormap proxy; in the emulator it always does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.generated_globals import runtime
from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.tma.tensor_map import INDEXED, SIZE, edits
from cutegen_lab.emulator.translate.emit import Emit, opcode

_SPACES = ("global", "shared::cta", "shared")
_WIDE = ("global_address", "global_stride")
_FIELDS = ("global_address", "rank", "box_dim", "global_dim", "global_stride", "element_stride", "elemtype",
           "interleave_layout", "swizzle_mode", "fill_mode")  # fmt: skip
_ELEMENT_TYPES = 11  # first code not executed: TF32-rounded float32, then types of 4 and 6 bits


@opcode("tensormap")
def tensormap(e: Emit) -> None:
    """9.7.9.27 tensormap.replace, 9.7.13.16 tensormap.cp_fenceproxy."""
    e.klass = "other"
    if e.has("cp_fenceproxy"):
        _copied(e)
        return
    e.skip("replace", "tile", "b1024")
    field, space = e.one_of(*_FIELDS), e.one_of(*_SPACES)
    kind = e.type("b64" if field in _WIDE else "b32")
    base, offset = e.address(e.ops[0])
    index, value = (e.ops[1], e.ops[2]) if field in INDEXED else (ptx.Imm(0), e.ops[1])
    if not space or not isinstance(index, ptx.Imm) or _unknown(field, value):
        raise e.refuse(f"the emulator does not execute `{e.ins.text}`")
    e.line(f"replace_in_map(g,{base},{offset},{space!r},{field!r},{index.value},{e.s(value, kind)})")


def _unknown(field: str, value: ptx.Operand) -> bool:
    """True if the emulator's tensor copies cannot use this value."""
    if field not in ("elemtype", "interleave_layout"):
        return not field
    limit = _ELEMENT_TYPES if field == "elemtype" else 1
    return not isinstance(value, ptx.Imm) or value.value >= limit


def _copied(e: Emit) -> None:
    """tensormap.cp_fenceproxy from shared to global memory. All threads of a warp give the same addresses."""
    e.skip("global", "shared::cta", "tensormap::generic", "release", "cta", "cluster", "gpu", "sys", "sync", "aligned")
    e.collective = True
    e.line("g.ctas.require_whole_warps(g,'tensormap.cp_fenceproxy')")
    (to, to_offset), (source, offset) = e.address(e.ops[0]), e.address(e.ops[1])
    if not isinstance(e.ops[2], ptx.Imm) or e.ops[2].value != SIZE:
        raise e.refuse(f"`{e.ins.name}` copies {SIZE} bytes")
    e.line(f"copy_map(g,{to},{to_offset},{source},{offset})")


@runtime
def replace_in_map(g: Any, address: Array, offset: int, space: str, field: str, index: int, value: Array) -> None:
    given = np.broadcast_to(np.asarray(value).astype(np.uint64), (g.n,))
    for word, mask, bits in edits(field, index, given):
        at = offset + 4 * word
        old = _load(g, space, address, at, 4)
        kept = old & np.uint32(~mask & 0xFFFF_FFFF)
        _store(g, space, address, at, 4, kept | bits.astype(np.uint32) & np.uint32(mask))


@runtime
def copy_map(g: Any, to: Array, to_offset: int, source: Array, offset: int) -> None:
    for piece in range(0, SIZE, 16):
        data = _load(g, "shared", source, offset + piece, 16)
        _store(g, "global", to, to_offset + piece, 16, data)


def _load(g: Any, space: str, address: Array, offset: int, width: int) -> Array:
    if space == "global":
        return np.asarray(g.ctas.memory.load(g, _at(g, address, offset), width))
    return np.asarray(g.ctas.shared.load(g, g.ctas.shared.index(g, address, offset, width), width))


def _store(g: Any, space: str, address: Array, offset: int, width: int, value: Array) -> None:
    if space == "global":
        g.ctas.memory.store(g, _at(g, address, offset), width, value)
    else:
        g.ctas.shared.store(g, g.ctas.shared.index(g, address, offset, width), width, value)


def _at(g: Any, address: Array, offset: int) -> Array:
    return np.broadcast_to(np.asarray(address), (g.n,)) + np.uint64(offset % (1 << 64))
