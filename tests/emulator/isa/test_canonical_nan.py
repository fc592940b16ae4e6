"""float32 arithmetic gives one canonical NaN, as on an H200 (benchmarks/results/instructions_on_gpu.json)."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.ptx_kernel import evaluate

INFINITY, NAN, NEGATIVE_NAN = 0x7F800000, 0x7FC00123, 0xFFC00000
CASES = [
    ("sub.f32 %r9, %r10, %r10;", INFINITY), ("add.f32 %r9, %r10, %r10;", NEGATIVE_NAN), ("abs.f32 %r9, %r10;", NAN),
    ("neg.f32 %r9, %r10;", NAN), ("fma.rn.f32 %r9, %r10, %r10, %r10;", NAN), ("max.f32 %r9, %r10, %r10;", NEGATIVE_NAN),
    ("cvt.rn.f16.f32 %rs1, %r10; cvt.f32.f16 %r9, %rs1;", NAN), ("sqrt.rn.f32 %r9, %r10;", 0xBF800000),
]  # fmt: skip


@pytest.mark.parametrize(("code", "operand"), CASES)
def test_arithmetic_gives_one_nan(code: str, operand: int) -> None:
    found = evaluate(code, [np.array([operand, 0x3F800000], np.uint32)], np.uint32)
    assert found[0] == 0x7FFFFFFF and found[1] != 0x7FFFFFFF


def test_moving_bits_keeps_a_nan() -> None:
    moved = evaluate("mov.b32 %r9, %r10;", [np.array([NAN], np.uint32)], np.uint32)
    shifted = evaluate("cvt.f32.bf16 %r9, %rs10;", [np.array([0xFFC1], np.uint16)], np.uint32)
    assert moved[0] == NAN and shifted[0] == 0xFFC10000
