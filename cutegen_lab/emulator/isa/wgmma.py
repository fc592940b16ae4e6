"""wgmma: asynchronous products of a warpgroup (PTX ISA 9.7.15.5 wgmma.mma_async, .7.1 fence, .2 commit_group,
.3 wait_group)."""

from __future__ import annotations

import re

from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.mma.accumulators import ROWS, Form
from cutegen_lab.emulator.translate.emit import Emit, InFlight, opcode

# Elements along K of one product.
_STEP = {"f16": 16, "bf16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "s8": 32, "u8": 32}
_SUMS = {"f16": ("f16", "f32"), "bf16": ("f32",), "tf32": ("f32",), "e4m3": ("f16", "f32"), "e5m2": ("f16", "f32"),
         "s8": ("s32",), "u8": ("s32",)}  # fmt: skip
_ALIKE = ({"e4m3", "e5m2"}, {"s8", "u8"})


@opcode("wgmma")
def wgmma(e: Emit) -> None:
    """9.7.15.5 to 9.7.15.7; sparse and single-bit products are refused."""
    verb = e.one_of("mma_async", "fence", "commit_group", "wait_group")
    if not (e.has("sync") and e.has("aligned")) or "sp" in e.mods:
        raise e.refuse(f"the emulator does not execute `{e.ins.name}`")
    e.collective = True
    if verb == "mma_async":
        _product(e)
        return
    e.klass = "barrier"
    if verb == "fence":
        e.parks = True
        e.line("return g.ctas.products.fence(g)")
    elif verb == "commit_group":
        e.line("g.ctas.products.commit(g)")
    else:
        pending = e.ops[0]
        if not isinstance(pending, ptx.Imm):
            raise e.refuse("`wgmma.wait_group` takes a constant")
        e.line(f"g.ctas.products.wait(g,{pending.value})")


def _product(e: Emit) -> None:
    shape = next((m for m in e.mods if re.fullmatch(r"m64n\d+k\d+", m)), "")
    e.has(shape)
    saturates = e.has("satfinite")
    n, k = map(int, re.findall(r"\d+", shape)[1:]) if shape else (0, 0)
    kinds, e.mods = e.mods, []
    if len(kinds) != 3:
        raise e.refuse(f"the emulator does not execute `{e.ins.name}`")
    d, a, b = kinds
    fits = a == b or any({a, b} <= alike for alike in _ALIKE)
    wide = 8 <= n <= 256 and n % 8 == 0 and (d != "s32" or n <= 24 or n % 16 == 0)
    if not (fits and wide and d in _SUMS.get(a, ()) and k == _STEP[a]):
        raise e.refuse(f"`{e.ins.name}` does not exist")
    sums, left, right, adds, *rest = e.ops
    flags = [_constant(e, flag) for flag in rest]
    in_registers = isinstance(left, ptx.Vector)
    scales, majors = (flags[:2], flags[2:]) if d != "s32" else ([1, 1], [])
    majors = majors or [0, 0]
    a_mn, b_mn = (0, majors[-1]) if in_registers else majors
    if len(scales) != 2 or (_STEP[a] != 16 and (a_mn or b_mn)):
        raise e.refuse(f"the emulator does not execute `{e.ins.name}` with these operands")
    form = Form(n, a, b, d, scales[0] * scales[1], bool(a_mn), bool(b_mn), saturates)
    e.klass = "tensor"
    e.tensor_ops = (a, 2 * ROWS * n * k // 4)
    _write(e, form, sums, left, right, adds)


def _write(e: Emit, form: Form, sums: ptx.Operand, left: ptx.Operand, right: ptx.Operand, adds: ptx.Operand) -> None:
    registers = e.items(sums)
    if len(registers) != form.registers:
        raise e.refuse(f"`{e.ins.name}` takes {form.registers} registers for D")
    rows = [e.row(r, "b32") for r in registers]
    for register in registers:
        e.row(register, "b32", writes=True)
    number = e.symbols.in_flight(tuple(r.name for r in registers if isinstance(r, ptx.Reg)))
    e.sums = InFlight(number, tuple(r.name for r in registers if isinstance(r, ptx.Reg)))
    operands = -1
    if isinstance(left, ptx.Vector):
        if len(left.items) != 4:
            raise e.refuse(f"`{e.ins.name}` takes 4 registers for A")
        names = tuple(r.name for r in left.items if isinstance(r, ptx.Reg))
        operands = e.symbols.in_flight(names)
        e.operands = InFlight(operands, names)
        a = "[" + ",".join(f"U[{e.row(r, 'b32')}]" for r in left.items) + "]"
    else:
        a = e.s(left, "b64")
    predicate = e.adds = e.s(adds, "pred")
    listed = f"({','.join(rows)},)"
    e.line(f"g.ctas.products.issue(g,{number},{e.const(form)},{listed},{a},{e.s(right, 'b64')},{predicate},{operands})")


def _constant(e: Emit, operand: ptx.Operand) -> int:
    if not isinstance(operand, ptx.Imm):
        raise e.refuse(f"`{e.ins.name}` takes constants for scale and major-ness")
    return operand.value
