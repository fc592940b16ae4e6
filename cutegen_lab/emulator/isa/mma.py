"""mma.sync: products of matrices held by a warp (PTX ISA 9.7.14.5 "Matrix multiply-accumulate operation using mma").

Products of 16-bit, tf32 and narrower operands are exact in float32 and are summed there, in BLAS's order; hardware
sums in another order and truncates, which the tolerance of a check must allow. Sums of integers are exact.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy as np

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.generated_globals import runtime
from cutegen_lab.emulator.mma.fragments import matrix, scatter
from cutegen_lab.emulator.ptx.formats import to_f32
from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.translate.emit import Emit, opcode
from cutegen_lab.emulator.translate.mma_product import Form, Product

_HALF = {(16, 8, 8), (16, 8, 16)}
_BYTE = {(8, 8, 16), (16, 8, 16), (16, 8, 32)}
_NIBBLE = {(8, 8, 32), (16, 8, 32), (16, 8, 64)}
_EIGHT = {(16, 8, 16), (16, 8, 32)}
_SHAPES = {
    "f16": _HALF, "bf16": _HALF, "tf32": {(16, 8, 4), (16, 8, 8)},
    "f64": {(8, 8, 4), (16, 8, 4), (16, 8, 8), (16, 8, 16)}, "e4m3": _EIGHT, "e5m2": _EIGHT,
    "s8": _BYTE, "u8": _BYTE, "s4": _NIBBLE, "u4": _NIBBLE, "b1": {(8, 8, 128), (16, 8, 128), (16, 8, 256)},
}  # fmt: skip
_ACCUMULATORS = {"f16": {"f16", "f32"}, "e4m3": {"f16", "f32"}, "e5m2": {"f16", "f32"}, "bf16": {"f32"},
                 "tf32": {"f32"}, "f64": {"f64"}}  # fmt: skip
_ALIKE = ({"s8", "u8"}, {"s4", "u4"}, {"e4m3", "e5m2"})  # A and B may have different types within one of these sets


@opcode("mma")
def mma(e: Emit) -> None:
    """9.7.14.5.14 mma.sync of every shape from sm_80 to sm_90; m8n8k4 of f16 (sm_70) and sparse forms are refused."""
    form = _form(e)
    e.klass = "tensor"
    e.collective = True
    e.tensor_ops = (form.a, form.operations)
    kinds = ["b64" if kind == "f64" else "b32" for kind in (form.d, form.a, form.b, form.c)]
    groups = [e.items(operand) for operand in e.ops]
    if len(groups) != 4 or tuple(map(len, groups)) != form.registers:
        raise e.refuse(f"`{e.ins.name}` takes {form.registers} registers for D, A, B and C")
    a, b, c = (tuple(e.row(o, kind) for o in group) for group, kind in zip(groups[1:], kinds[1:], strict=True))
    d = tuple(e.row(o, kinds[0], writes=True) for o in groups[0])
    product = Product(form, d, a, b, c)
    e.product = product
    e.line("require_full_warps(g,'mma')")
    e.line(f"multiply(g,{e.const(form)},{product.rows()})")


def _form(e: Emit) -> Form:
    if not (e.has("sync") and e.has("aligned") and e.has("row") and e.has("col")):
        raise e.refuse(f"the emulator does not execute `{e.ins.name}`")
    saturate, bits = e.has("satfinite"), e.one_of("xor", "and")
    if bits:
        e.has("popc")
    shape = next((m for m in e.mods if re.fullmatch(r"m\d+n\d+k\d+", m)), "")
    if not shape or len(e.mods) != 5 or e.mods.index(shape):
        raise e.refuse(f"the emulator does not execute `{e.ins.name}`")
    _, d, a, b, c = e.mods
    e.mods.clear()
    m, n, k = (int(number) for number in re.findall(r"\d+", shape))
    alike = a == b or any({a, b} <= kinds for kinds in _ALIKE)
    sums = _ACCUMULATORS.get(a, {"s32"})
    integers = sums == {"s32"}
    good = alike and (m, n, k) in _SHAPES.get(a, ()) and c == d and d in sums
    if not good or (saturate and not integers) or bool(bits) != (a == "b1"):
        raise e.refuse(f"the emulator does not execute `{e.ins.name}`")
    return Form((m, n, k), d, a, b, c, saturate, bits)


@runtime
def require_full_warps(g: Any, what: str) -> None:
    """Traps unless all 32 lanes of each warp are in ``g``: each lane holds a part of a matrix."""
    g.ctas.require_whole_warps(g, what)
    if not g.whole():
        warps, here = np.unique(g.gid >> 5, return_counts=True)
        at = int(np.argmax(here < 32))
        gid = int(g.gid[np.searchsorted(g.gid, warps[at] * 32)])
        message = f"{what} needs all 32 threads of a warp, but only {int(here[at])} run"
        raise Trap(Verdict.BARRIER_DIVERGENCE, message, gid)


@lru_cache(4096)
def _table(rows: tuple[Any, ...]) -> Array:
    return np.array(rows)


@runtime
def multiply(g: Any, form: Form, rows: tuple[Any, ...]) -> None:
    """D = A·B + C for a grid of fragments. ``rows``: registers of D [i][j], A [step][i], B [step][j] and C [i][j]."""
    d, a, b, c = (_table(part) for part in rows)
    file, halves = g.files[3 if form.d == "f64" else 2], form.shape[0] // 8
    packed = form.d == "f16"
    left = matrix(file[a], form.a, halves)
    right = matrix(file[b], form.b, 1, spread=not packed)
    product = np.matmul(left, right.transpose(0, 2, 1))
    if form.bits == "xor":  # |a ^ b| = |a| + |b| - 2 |a & b|
        product = left.sum(2)[:, :, None] + right.sum(2)[:, None, :] - 2 * product
    file[d] = _accumulate(scatter(product, halves, packed), file[c], form)


def _accumulate(tiles: Array, c: Array, form: Form) -> Array:
    """``tiles`` + C, as the raw bits of D's registers."""
    if form.d == "f16":
        tiles += to_f32(c, "f16").reshape(tiles.shape)
        return tiles.astype(np.float16).view(np.uint32)[..., 0]
    if form.d == "s32":
        if form.saturate:
            sums = tiles.astype(np.int64) + c.view(np.int32)
            return sums.clip(-(2**31), 2**31 - 1).astype(np.int32).view(np.uint32)
        return tiles.astype(np.int32).view(np.uint32) + c
    tiles += c.view(tiles.dtype)
    return tiles.view(c.dtype)
