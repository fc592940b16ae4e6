"""Instructions that the counters say ptxas makes of one, against what it makes."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from cutegen_lab.compile.disassembly import disassembled
from cutegen_lab.compile.dsl import assemble
from tests.emulator.ptx_kernel import kernel, run

SPECIAL = ("MUFU", "FCHK", "F2I", "I2F", "FRND", "F2F")  # of the special-function unit
F32 = ("FFMA", "FMUL", "FADD", "FSETP", "FSEL")
UNARY = ("rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh")
FLOATS = [
    *(f"{opcode}.approx{ftz}.f32 %f9, %f1" for opcode in UNARY for ftz in ("", ".ftz") if opcode + ftz != "tanh.ftz"),
    *(f"{opcode}.rn{ftz}.f32 %f9, %f1" for opcode in ("rcp", "sqrt") for ftz in ("", ".ftz")),
    *(f"div.{mode}{ftz}.f32 %f9, %f1, %f2" for mode in ("rn", "full", "approx") for ftz in ("", ".ftz")),
]  # fmt: skip
CONVERSIONS = [
    "cvt.rzi.s32.f32 %r9, %f1", "cvt.rni.u32.f32 %r9, %f1", "cvt.rzi.s32.f16 %r9, %rs1", "cvt.rn.f32.s32 %f9, %r6",
    "cvt.rn.f32.u32 %f9, %r6", "cvt.rn.f32.s16 %f9, %rs1", "cvt.rn.f32.s64 %f9, %rd9", "cvt.rni.f32.f32 %f9, %f1",
    "cvt.rmi.f32.f32 %f9, %f1", "cvt.f32.f16 %f9, %rs1", "cvt.f32.bf16 %f9, %rs1", "cvt.rn.bf16x2.f32 %r9, %f1, %f2",
    "cvt.rn.f16x2.f32 %r9, %f1, %f2", "cvt.s32.s16 %r9, %rs1", "cvt.rn.f32.f64 %f9, %fd1", "cvt.sat.f32.f32 %f9, %f1",
]  # fmt: skip


def ptx(code: str) -> str:
    width = 8 if "%rd9" in code or "%fd1" in code else 4
    load = "ld.global.b64 %rd9, [%rd3]; mov.b64 %fd1, %rd9;" if width == 8 else "ld.global.v2.b32 {%r6,%r7}, [%rd3];"
    moved = "" if width == 8 else "mov.b32 %f1, %r6; mov.b32 %f2, %r7; cvt.u16.u32 %rs1, %r6;"
    result = "" if "%r9" in code else "mov.b32 %r9, %f9;"
    place = "mul.wide.u32 %rd2, %r1, 8; add.s64 %rd3, %rd1, %rd2;"
    return kernel(f"  {place}\n  {load} {moved}\n  {code}; {result}\n  st.global.b32 [%rd3], %r9;\n  ret;", 1)


def made(code: str) -> Counter[str]:
    """Of the first kernel's code up to where it ends; what comes behind are the subroutines of rare operands."""
    found = Counter[str]()
    for line in disassembled(assemble(ptx(code), "sm_90a")):
        if name := re.match(r"[0-9a-f]{4,}  (?:@!?U?P\d )?([A-Z][A-Z0-9]*)", line.text):
            found[name[1]] += 1
            if name[1] == "EXIT":
                break
    return found


def counted(code: str) -> dict[str, float]:
    ran = run(ptx(code), [np.full(64, 2, np.float32)], block=(32, 1, 1))
    assert ran.execution.fault is None, ran.execution.fault
    return ran.per_launch[0]


@pytest.mark.slow
@pytest.mark.parametrize("code", FLOATS)
def test_an_approximation_is_what_ptxas_makes_of_it(code: str) -> None:
    got, expected = counted(code), made(code)
    assert got["warp_instructions_special"] == sum(expected[name] for name in SPECIAL) >= 1
    assert got.get("warp_instructions_f32", 0.0) == sum(expected[name] for name in F32)


@pytest.mark.slow
@pytest.mark.parametrize("code", CONVERSIONS)
def test_a_conversion_takes_the_unit_that_ptxas_gives_it(code: str) -> None:
    got, expected = counted(code), made(code)
    assert got.get("warp_instructions_special", 0.0) == sum(expected[name] for name in SPECIAL)
    assert got.get("warp_instructions_f32", 0.0) == sum(expected[name] for name in F32)
    assert got.get("warp_instructions_half", 0.0) == expected["HADD2"]
