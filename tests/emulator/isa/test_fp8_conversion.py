"""Conversions of e4m3 and e5m2: every code, and rounding against the list of all values (OCP 8-bit floating point,
PTX ISA cvt)."""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutegen_lab.core.verdict import Verdict
from tests.emulator.ptx_kernel import evaluate, kernel, run

KINDS = {"e4m3": (3, 7), "e5m2": (2, 15)}  # bits of mantissa, bias


def value(code: int, kind: str) -> float:
    """By the formats' definition. e4m3 has no infinity and one NaN a sign."""
    bits, bias = KINDS[kind]
    exponent, mantissa = (code & 127) >> bits, code & ((1 << bits) - 1)
    if kind == "e4m3" and code & 127 == 127:
        return math.nan
    if kind == "e5m2" and exponent == 31:
        return math.nan if mantissa else math.copysign(math.inf, -(code >> 7) or 1)
    size = (
        Fraction(mantissa + (1 << bits if exponent else 0))
        * Fraction(2) ** max(exponent, 1)
        / Fraction(2) ** (bias + bits)
    )
    return math.copysign(float(size), -1 if code >> 7 else 1)


@functools.cache
def finite(kind: str) -> dict[int, Fraction]:
    return {code: Fraction(value(code, kind)) for code in range(128) if math.isfinite(value(code, kind))}


def nearest(x: float, kind: str) -> int:
    """The code of the nearest finite value; of two as near, the even one."""
    if math.isnan(x):
        return 127
    values = finite(kind)
    best = (
        max(values) if math.isinf(x) else min(values, key=lambda code: (abs(values[code] - Fraction(abs(x))), code & 1))
    )
    return best | (128 if math.copysign(1, x) < 0 else 0)


def test_the_reference_knows_the_formats_limits() -> None:
    assert value(0x7E, "e4m3") == 448 and value(0x01, "e4m3") == 2.0**-9
    assert value(0x7B, "e5m2") == 57344 and value(0x01, "e5m2") == 2.0**-16


@pytest.mark.parametrize("kind", KINDS)
def test_every_code_widens_exactly(kind: str) -> None:
    codes = np.arange(256)
    bits = (codes | codes[::-1] << 8).astype(np.uint16)
    got = evaluate(f"cvt.rn.f16x2.{kind}x2 %r9, %rs10;", [bits], np.uint32).view(np.float16).reshape(-1, 2)
    for code, (low, high) in zip(codes.tolist(), got.tolist(), strict=True):
        for found, want in ((low, value(code, kind)), (high, value(255 - code, kind))):
            assert (found == want and math.copysign(1, found) == math.copysign(1, want)) or math.isnan(want)
            assert math.isnan(found) == math.isnan(want)


@pytest.mark.parametrize("kind", KINDS)
def test_every_finite_code_survives_a_round_trip(kind: str) -> None:
    codes = np.array([c for c in range(256) if math.isfinite(value(c, kind))], np.uint16)
    code = f"cvt.rn.f16x2.{kind}x2 %r8, %rs10; cvt.rn.satfinite.{kind}x2.f16x2 %rs9, %r8;"
    assert (evaluate(code, [codes], np.uint16) == codes).all()


EDGES = [
    0.0, -0.0, math.inf, -math.inf, math.nan, 448.0, 464.0, 465.0, 480.0, 57344.0, 61440.0, 65504.0, 1e30, 2.0**-10,
    -(2.0**-10), 2.0**-11, 2.0**-17, 1.5 * 2.0**-9, 2.5 * 2.0**-9, 2.0**-6, 17.0, 18.0, 19.0, 1.0625, 1.1875,
]  # fmt: skip
floats32 = st.floats(width=32, allow_nan=False)
moderate = st.floats(-600, 600, width=32)


@settings(max_examples=25, deadline=None)
@given(values=st.lists(st.one_of(st.sampled_from(EDGES), moderate, floats32), min_size=32, max_size=32),
       kind=st.sampled_from(sorted(KINDS)), relu=st.booleans())  # fmt: skip
def test_singles_round_to_the_nearest(values: list[float], kind: str, relu: bool) -> None:
    high, low = np.array(values, np.float32), np.array(values[::-1], np.float32)
    code = f"cvt.rn.satfinite{'.relu' if relu else ''}.{kind}x2.f32 %rs9, %r10, %r11;"
    got = evaluate(code, [high, low], np.uint16)
    for x, y, found in zip(high.tolist(), low.tolist(), got.tolist(), strict=True):
        for number, part in ((x, found >> 8), (y, found & 255)):
            want = 0 if relu and number <= 0 else nearest(number, kind)
            assert part == want, (number, part, want)


@settings(max_examples=10, deadline=None)
@given(bits=st.lists(st.integers(0, 65535), min_size=32, max_size=32), kind=st.sampled_from(sorted(KINDS)))
def test_halves_round_to_the_nearest(bits: list[int], kind: str) -> None:
    pairs = np.array([bits, bits[::-1]], np.uint16).T.copy().view(np.float16)
    got = evaluate(f"cvt.rn.satfinite.{kind}x2.f16x2 %rs9, %r10;", [pairs.view(np.uint32).ravel()], np.uint16)
    for (low, high), found in zip(pairs.tolist(), got.tolist(), strict=True):
        assert found == nearest(low, kind) | nearest(high, kind) << 8


@pytest.mark.parametrize("form", ["rn.e4m3x2.f32", "rz.satfinite.e5m2x2.f32", "rn.satfinite.e2m1x2.f32",
                                  "rn.satfinite.ue8m0x2.f32", "rn.satfinite.e4m3x2.bf16x2"])  # fmt: skip
def test_another_form_is_refused_by_name(form: str) -> None:
    body = f"  mov.b32 %f1, 0f3F800000; cvt.{form} %rs1, %f1, %f1; ret;"
    fault = run(kernel(body, 1), [np.ones(32, np.float32)], block=(32, 1, 1)).execution.fault
    assert fault is not None and fault.verdict is Verdict.UNSUPPORTED and form.split(".")[-2] in str(fault)
