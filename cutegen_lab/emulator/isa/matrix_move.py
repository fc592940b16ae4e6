"""Matrices of 8 by 8 16-bit elements between shared memory and a warp's registers (PTX ISA 9.7.14.5.15 ldmatrix, .16
stmatrix, .17 movmatrix).

Lane 8j + i addresses row i of matrix j; lane 4q + p holds elements 2p and 2p + 1 of row q or, if the matrix is
transposed, of column q.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.generated_globals import runtime
from cutegen_lab.emulator.isa.memory_ops import lanes_where
from cutegen_lab.emulator.isa.mma import require_full_warps
from cutegen_lab.emulator.memory.block_memory import GENERIC_SHARED
from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.translate.emit import Emit, opcode

_COUNTS = {"x1": 1, "x2": 2, "x4": 4}
_ROW = 16  # bytes of a row


def _begin(e: Emit, address: ptx.Operand, values: ptx.Operand) -> tuple[str, bool]:
    """(address, transposed?) of ldmatrix and stmatrix. The forms with 8-bit elements require sm_100 and are refused."""
    count = _COUNTS.get(e.one_of(*_COUNTS), 0)
    known = e.has("sync") and e.has("aligned") and e.has("m8n8") and e.has("b16")
    if not known or len(e.items(values)) != count:
        raise e.refuse(f"the emulator does not execute `{e.ins.name}`")
    transposed = e.has("trans")
    generic = not e.one_of("shared", "shared::cta")
    e.klass = "shared"
    e.collective = True
    base, offset = e.address(address)
    return f"{f'from_generic(g,{base})' if generic else base},{offset}", transposed


@opcode("ldmatrix")
def ldmatrix(e: Emit) -> None:
    """9.7.14.5.15 ldmatrix.sync.aligned.m8n8.{x1,x2,x4}[.trans].b16."""
    address, transposed = _begin(e, e.ops[1], e.ops[0])
    rows = tuple(e.row(o, "b32", writes=True) for o in e.items(e.ops[0]))
    e.line(f"U[[{','.join(rows)}]]=load_matrices(g,{address},{len(rows)},{transposed})")


@opcode("stmatrix")
def stmatrix(e: Emit) -> None:
    """9.7.14.5.16 stmatrix.sync.aligned.m8n8.{x1,x2,x4}[.trans].b16 (sm_90)."""
    address, transposed = _begin(e, e.ops[0], e.ops[1])
    rows = tuple(e.row(o, "b32") for o in e.items(e.ops[1]))
    e.line(f"store_matrices(g,{address},U[[{','.join(rows)}]],{transposed})")


@opcode("movmatrix")
def movmatrix(e: Emit) -> None:
    """9.7.14.5.17 movmatrix.sync.aligned.m8n8.trans.b16: transposes a matrix held by a warp."""
    if not (e.has("sync") and e.has("aligned") and e.has("m8n8") and e.has("trans") and e.has("b16")):
        raise e.refuse(f"the emulator does not execute `{e.ins.name}`")
    e.klass = "warp"
    e.collective = True
    source = e.row(e.ops[1], "b32")
    e.line("require_full_warps(g,'movmatrix')")
    e.put(0, "b32", f"transpose_matrices(U[[{source}]])[0]")


@runtime
def load_matrices(g: Any, address: Array, offset: int, count: int, transposed: bool) -> Array:
    """Loads matrices into registers [matrix, lane]."""
    require_full_warps(g, "ldmatrix")
    part, index = matrix_rows(g, address, offset, count)
    g.ctas.counters.matrices("load", g.warps(), index)
    found = g.ctas.shared.load(part, index, _ROW).view(np.uint32).reshape(-1, count, 32)
    registers = np.ascontiguousarray(found.swapaxes(0, 1)).reshape(count, -1)
    return transpose_matrices(registers) if transposed else registers


@runtime
def store_matrices(g: Any, address: Array, offset: int, registers: Array, transposed: bool) -> None:
    require_full_warps(g, "stmatrix")
    count = len(registers)
    part, index = matrix_rows(g, address, offset, count)
    g.ctas.counters.matrices("store", g.warps(), index)
    if transposed:
        registers = transpose_matrices(registers)
    by_warp = np.ascontiguousarray(registers.reshape(count, -1, 32).swapaxes(0, 1))
    g.ctas.shared.store(part, index, _ROW, by_warp.view(np.complex128).ravel())


@runtime
def transpose_matrices(registers: Array) -> Array:
    """Transposes the 8 by 8 matrices in ``registers`` [matrix, lane]."""
    halves = registers.view(np.uint16).reshape(len(registers), -1, 8, 8)
    return np.ascontiguousarray(halves.swapaxes(2, 3)).view(np.uint32).reshape(len(registers), -1)


def matrix_rows(g: Any, address: Array, offset: int, count: int) -> tuple[Any, Array]:
    """(lanes that hold row addresses, index of each row in units of 16 bytes)."""
    at = np.broadcast_to(np.asarray(address), (g.n,))
    part, index = lanes_where(g, (g.gid & 31) < 8 * count)
    return part, g.ctas.shared.index(part, at[index], offset, _ROW)


@runtime
def from_generic(g: Any, address: Array) -> Array:
    """Generic addresses of shared memory → shared addresses."""
    at = np.broadcast_to(np.asarray(address), (g.n,))
    outside = np.flatnonzero((at >> np.uint64(60)) != GENERIC_SHARED >> 60)
    if len(outside):
        lane = int(outside[0])
        message = f"a matrix row at generic address {int(at[lane]):#x}, which is not shared memory"
        raise Trap(Verdict.OUT_OF_BOUNDS, message, int(g.gid[lane]), int(at[lane]))
    return np.asarray(at - np.uint64(GENERIC_SHARED))
