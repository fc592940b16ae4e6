"""Floating-point opcodes and conversions against torch, exact fractions and the IEEE definition."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cutegen_lab.emulator import Options, Order
from tests.emulator.ptx_kernel import evaluate

EDGE = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 3.4e38, -3.4e38, 1e-38, 1e-40, -1e-45, 65504.0, 65520.0, 1e10,
        float("inf"), float("-inf"), float("nan"), 0.1, 1 / 3, 2**-14, 2**-24, 16777217.0]  # fmt: skip


def singles(seed: int, count: int = 128) -> np.ndarray:
    rng = np.random.default_rng(seed)
    random = rng.standard_normal(count - len(EDGE)) * np.exp2(rng.integers(-20, 20, count - len(EDGE)))
    values = np.array([*EDGE, *random], np.float64).clip(-3.4028234e38, 3.4028234e38, where=np.ones(count, bool))
    values[: len(EDGE)] = EDGE
    with np.errstate(over="ignore"):
        return rng.permutation(values.astype(np.float32))


def same(got: np.ndarray, want: np.ndarray) -> None:
    """Equal bit for bit, but for a NaN's payload."""
    nan = np.isnan(want)
    assert (np.isnan(got) == nan).all()
    assert (got[~nan].view(f"u{got.dtype.itemsize}") == want[~nan].view(f"u{want.dtype.itemsize}")).all()


def t(x: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(x.copy())


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("add.f32 %r9, %r10, %r11;", torch.add), ("sub.rn.f32 %r9, %r10, %r11;", torch.sub),
        ("mul.f32 %r9, %r10, %r11;", torch.mul), ("div.rn.f32 %r9, %r10, %r11;", torch.div),
        ("max.NaN.f32 %r9, %r10, %r11;", torch.maximum),
        ("neg.f32 %r9, %r10;", lambda a, b: -a), ("abs.f32 %r9, %r10;", lambda a, b: a.abs()),
        ("copysign.f32 %r9, %r10, %r11;", lambda a, b: torch.copysign(b, a)),
        ("sqrt.rn.f32 %r9, %r10;", lambda a, b: a.double().sqrt().float()),
        ("rcp.rn.f32 %r9, %r10;", lambda a, b: (1 / a.double()).float()),
    ],
)  # fmt: skip
def test_single_precision(code: str, expected: Callable[..., torch.Tensor]) -> None:
    a, b = singles(1), singles(2)
    got = evaluate(code, [a, b], np.float32)
    want = expected(t(a), t(b)).numpy()
    if "max" in code:  # which zero wins is not compared
        got, want = np.where(got == 0, 0, got).astype(np.float32), np.where(want == 0, 0, want).astype(np.float32)
    same(got, want)


def test_max_without_nan_prefers_the_number() -> None:
    a = np.array([1, math.nan, math.nan, -3], np.float32)
    b = np.array([math.nan, 2, math.nan, -4], np.float32)
    got = evaluate("max.f32 %r9, %r10, %r11;", [a, b], np.float32)
    assert got[:2].tolist() == [1, 2] and math.isnan(got[2]) and got[3] == -3
    assert evaluate("min.f32 %r9, %r10, %r11;", [a, b], np.float32)[[0, 1, 3]].tolist() == [1, 2, -4]


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("opcode", ["add", "mul"])
def test_directed_rounding_against_fractions(opcode: str, mode: str) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(100).astype(np.float32) for _ in range(2))
    got = evaluate(f"{opcode}.{mode}.f32 %r9, %r10, %r11;", [a, b], np.float32)
    for x, y, r in zip(a.tolist(), b.tolist(), got, strict=True):
        exact = Fraction(x) + Fraction(y) if opcode == "add" else Fraction(x) * Fraction(y)
        check_rounding(exact, r, mode)


def check_rounding(exact: Fraction, got: np.floating, mode: str) -> None:
    """``got`` is the right neighbour of ``exact`` in its format."""
    value = Fraction(float(got))
    if value == exact:
        return
    below, above = (float(np.nextafter(got, got.dtype.type(s))) for s in (-np.inf, np.inf))
    if mode == "rn":
        assert abs(value - exact) <= min(abs(Fraction(below) - exact), abs(Fraction(above) - exact))
        return
    down = mode == "rm" or (mode == "rz" and exact > 0)
    assert (value < exact < Fraction(above)) if down else (Fraction(below) < exact < value)


def test_fma_rounds_once() -> None:
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal(200).astype(np.float32) for _ in range(2))
    c = (-a * b).astype(np.float32)  # cancels all but the product's own rounding error
    got = evaluate("fma.rn.f32 %r9, %r10, %r11, %r12;", [a, b, c], np.float32)
    for x, y, z, r in zip(a.tolist(), b.tolist(), c.tolist(), got, strict=True):
        check_rounding(Fraction(x) * Fraction(y) + Fraction(z), r, "rn")


def test_double_fma_keeps_the_products_error() -> None:
    rng = np.random.default_rng(6)
    a, b = (rng.standard_normal(100) for _ in range(2))
    c = -a * b
    got = evaluate("fma.rn.f64 %rd9, %rd10, %rd11, %rd12;", [a, b, c], np.float64)
    for x, y, z, r in zip(a.tolist(), b.tolist(), c.tolist(), got, strict=True):
        check_rounding(Fraction(x) * Fraction(y) + Fraction(z), r, "rn")


def test_ftz_flushes_inputs_and_results() -> None:
    x = np.array([-130.0, -126.0, -127.0, 1.0], np.float32)
    assert evaluate("ex2.approx.ftz.f32 %r9, %r10;", [x], np.float32).tolist() == [0, 2**-126, 0, 2]
    tiny = np.array([1e-40, -1e-40, 1e-30], np.float32)
    got = evaluate("mul.ftz.f32 %r9, %r10, 0f3F800000;", [tiny], np.float32)
    assert got.tolist()[:2] == [0, 0] and np.signbit(got[1]) and got[2] == tiny[2]
    assert (evaluate("mul.f32 %r9, %r10, 0f3F800000;", [tiny], np.float32) == tiny).all()


@pytest.mark.parametrize(
    ("code", "flushed", "kept"),
    [
        ("setp.gt{ftz}.f32 %p9, %r10, 0f00000000;", [False, False, True], [True, False, True]),
        ("set.lt{ftz}.u32.f32 %r8, %r10, 0f00000000; setp.ne.u32 %p9, %r8, 0;", [False] * 3, [False, True, False]),
        ("slct{ftz}.u32.f32 %r8, 1, 0, %r10; setp.ne.u32 %p9, %r8, 0;", [True] * 3, [True, False, True]),
    ],
)
def test_comparisons_flush_too(code: str, flushed: list[bool], kept: list[bool]) -> None:
    tiny = np.array([1e-40, -1e-40, 1e-30], np.float32)
    assert evaluate(code.format(ftz=".ftz"), [tiny], np.bool_).tolist() == flushed
    assert evaluate(code.format(ftz=""), [tiny], np.bool_).tolist() == kept


def test_packed_halves_are_compared_with_subnormals_as_zeros() -> None:
    pair = np.array([0x0001_3C00, 0x3C00_0001], np.uint32)  # 2⁻²⁴ and 1, above one another
    code = "setp.gt.ftz.f16x2 %p9|%p8, %r10, %r11;"
    assert evaluate(code, [pair, np.zeros_like(pair)], np.bool_).tolist() == [True, False]


AS_HARDWARE = Options(order=Order(clock=1))  # rounds as it does, in half of all runs
LONG = [  # a·b + c whose last bits float64 does not hold
    (1 + 2.0**-12, 1 + 2.0**-12, 2.0**-80), (1 + 2.0**-12, 1 + 2.0**-12, -(2.0**-80)), (1.0, 1.0, 2.0**-60),
    (-1.0, 1.0, 2.0**-60), (2.0**-75, 2.0**-75, 2.0**-130), (2.0**-75, 3 * 2.0**-75, -(2.0**-149)),
]  # fmt: skip


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_sums_longer_than_a_double_are_rounded_once(mode: str) -> None:
    assert AS_HARDWARE.order and AS_HARDWARE.order.noise is not None
    a, b, c = (np.array(column, np.float32) for column in zip(*LONG, strict=True))
    got = evaluate(f"fma.{mode}.f32 %r9, %r10, %r11, %r12;", [a, b, c], np.float32, AS_HARDWARE)
    for x, y, z, r in zip(a.tolist(), b.tolist(), c.tolist(), got, strict=True):
        check_rounding(Fraction(x) * Fraction(y) + Fraction(z), r, mode)
    for sign, form in ((1, "add"), (-1, "sub")):
        got = evaluate(f"{form}.{mode}.f32 %r9, %r10, %r11;", [a, c], np.float32)
        for x, z, r in zip(a.tolist(), c.tolist(), got, strict=True):
            check_rounding(Fraction(x) + sign * Fraction(z), r, mode)


def test_a_bf16_fma_is_rounded_once() -> None:
    """(1 + 2⁻⁴)² is a tie, and 2⁻¹⁰⁰ decides it."""
    a, c = np.full(2, 0x3F88, np.uint16), np.array([0x0D80, 0x8D80], np.uint16)
    got = evaluate("fma.rn.bf16 %rs9, %rs10, %rs11, %rs12;", [a, a, c], np.uint16)
    assert got.tolist() == [0x3F91, 0x3F90]


def test_saturation() -> None:
    x = np.array([-1, 0.25, 2, math.nan], np.float32)
    assert evaluate("add.sat.f32 %r9, %r10, 0f00000000;", [x], np.float32).tolist() == [0, 0.25, 1, 0]


@pytest.mark.parametrize(
    ("compare", "expected"),
    [("eq", lambda a, b: a == b), ("ne", lambda a, b: a != b and a == a and b == b), ("neu", lambda a, b: a != b),
     ("lt", lambda a, b: a < b), ("geu", lambda a, b: not a < b), ("num", lambda a, b: a == a and b == b),
     ("nan", lambda a, b: a != a or b != b)],
)  # fmt: skip
def test_setp_and_nan(compare: str, expected: Callable[[float, float], bool]) -> None:
    a, b = singles(8), singles(9)
    b[:40] = a[:40]
    got = evaluate(f"setp.{compare}.f32 %p9, %r10, %r11;", [a, b], np.bool_)
    assert got.tolist() == [expected(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]


@pytest.mark.parametrize("test", ["finite", "infinite", "number", "notanumber", "normal", "subnormal"])
def test_testp(test: str) -> None:
    a = singles(10)
    want = {
        "finite": np.isfinite(a), "infinite": np.isinf(a), "number": ~np.isnan(a), "notanumber": np.isnan(a),
        "normal": np.isfinite(a) & ((a == 0) | (np.abs(a) >= 2.0**-126)),
        "subnormal": (a != 0) & (np.abs(a) < 2.0**-126),
    }[test]  # fmt: skip
    assert (evaluate(f"testp.{test}.f32 %p9, %r10;", [a], np.bool_) == want).all()


HALVES = {"f16": torch.float16, "bf16": torch.bfloat16}


def half(kind: str, seed: int) -> tuple[np.ndarray, torch.Tensor]:
    values = t(singles(seed)).to(HALVES[kind])
    return values.view(torch.int16).numpy().view(np.uint16).copy(), values


@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize(
    ("form", "function"),
    [("add.{k} %rs9, %rs10, %rs11;", lambda a, b: a + b), ("mul.{k} %rs9, %rs10, %rs11;", lambda a, b: a * b),
     ("sub.{k} %rs9, %rs10, %rs11;", lambda a, b: a - b), ("neg.{k} %rs9, %rs10;", lambda a, b: -a),
     ("fma.rn.{k} %rs9, %rs10, %rs11, %rs10;", lambda a, b: a * b + a),
     ("max.NaN.{k} %rs9, %rs10, %rs11;", torch.maximum)],
)  # fmt: skip
def test_half_precision(kind: str, form: str, function: Callable[..., torch.Tensor]) -> None:
    (a, ta), (b, tb) = half(kind, 11), half(kind, 12)
    got = t(evaluate(form.format(k=kind), [a, b], np.uint16).view(np.int16)).view(HALVES[kind])
    want = function(ta.double(), tb.double()).to(HALVES[kind])
    equal = (got == want) | (got.isnan() & want.isnan())
    assert equal.all(), (got[~equal], want[~equal])


@pytest.mark.parametrize("kind", HALVES)
def test_packed_halves_act_on_both(kind: str) -> None:
    (a, ta), (b, tb) = half(kind, 13), half(kind, 14)
    packed = [np.ascontiguousarray(x).view(np.uint32) for x in (a, b)]
    got = evaluate(f"add.{kind}x2 %r9, %r10, %r11;", packed, np.uint32)
    result = t(got.view(np.int16)).view(HALVES[kind])
    want = (ta.double() + tb.double()).to(HALVES[kind])
    assert ((result == want) | (result.isnan() & want.isnan())).all()


def decode(bits: int, kind: str) -> Fraction | float:
    """A half's value from its bits, by the IEEE definition."""
    exponent_bits, mantissa_bits = (5, 10) if kind == "f16" else (8, 7)
    sign, exponent = bits >> 15, bits >> mantissa_bits & ((1 << exponent_bits) - 1)
    mantissa, bias = bits & ((1 << mantissa_bits) - 1), (1 << (exponent_bits - 1)) - 1
    if exponent == (1 << exponent_bits) - 1:
        return math.nan if mantissa else math.inf * (-1) ** sign
    scale = Fraction(2) ** (max(exponent, 1) - bias - mantissa_bits)
    return (-1) ** sign * (mantissa + (1 << mantissa_bits if exponent else 0)) * scale


floats32 = st.floats(width=32, allow_nan=False, allow_infinity=False)


@settings(max_examples=25, deadline=None)
@given(values=st.lists(floats32, min_size=32, max_size=32), kind=st.sampled_from(["f16", "bf16"]),
       mode=st.sampled_from(["rn", "rz", "rm", "rp"]))  # fmt: skip
def test_narrowing_gives_the_right_neighbour(values: list[float], kind: str, mode: str) -> None:
    """Property: no half lies between the value and its conversion, on the side the mode rounds to."""
    got = evaluate(f"cvt.{mode}.{kind}.f32 %rs9, %r10;", [np.array(values, np.float32)], np.uint16)
    for value, bits in zip(values, got.tolist(), strict=True):
        found, exact = decode(bits, kind), Fraction(value)
        if isinstance(found, float):
            largest = decode(0x7BFF if kind == "f16" else 0x7F7F, kind)
            assert abs(exact) > largest and mode != "rz"
            continue
        near = [decode(bits + d, kind) for d in (-1, 1) if 0 <= (bits & 0x7FFF) + d <= 0x7FFF]
        near = [n for n in near if not isinstance(n, float)]
        if mode == "rn":
            assert all(abs(found - exact) <= abs(n - exact) for n in near)
        elif mode == "rz":
            assert abs(found) <= abs(exact) and not any(abs(found) < abs(n) <= abs(exact) for n in near)
        elif mode == "rm":
            assert found <= exact and not any(found < n <= exact for n in near)
        else:
            assert found >= exact and not any(exact <= n < found for n in near)


@settings(max_examples=25, deadline=None)
@given(pairs=st.lists(st.tuples(floats32, floats32), min_size=32, max_size=32), kind=st.sampled_from(["f16", "bf16"]))
def test_packing_puts_the_first_operand_high(pairs: list[tuple[float, float]], kind: str) -> None:
    high, low = (np.array(c, np.float32) for c in zip(*pairs, strict=True))
    got = evaluate(f"cvt.rn.{kind}x2.f32 %r9, %r10, %r11;", [high, low], np.uint32)
    for source, part in ((high, got >> 16), (low, got & 0xFFFF)):
        want = t(source).to(HALVES[kind]).view(torch.int16).numpy().view(np.uint16)
        assert (part == want).all()


@settings(max_examples=25, deadline=None)
@given(values=st.lists(st.one_of(floats32, st.sampled_from([math.inf, -math.inf, 1 + 2**-11, 1 + 3 * 2**-11])),
                       min_size=32, max_size=32), mode=st.sampled_from(["rna", "rn"]))  # fmt: skip
def test_tf32_keeps_ten_bits_of_mantissa(values: list[float], mode: str) -> None:
    x = np.array(values, np.float32)
    got = evaluate(f"cvt.{mode}.tf32.f32 %r9, %r10;", [x], np.float32)
    for value, found in zip(x.tolist(), got.tolist(), strict=True):
        if not math.isfinite(value):
            assert found == value
            continue
        step = math.ldexp(1.0, max(math.frexp(value)[1] - 11, -136))
        whole = math.floor(abs(value) / step + 0.5) if mode == "rna" else round(abs(value) / step)
        with np.errstate(over="ignore"):
            assert found == math.copysign(float(np.float32(whole * step)), value)


@pytest.mark.parametrize(("kind", "most"), [("f16", 65504.0), ("bf16", 3.3895313892515355e38)])
def test_a_half_saturates_to_its_largest(kind: str, most: float) -> None:
    x = np.array([math.inf, -math.inf, 3.4e38, -3.4e38, 1.5, -0.0, math.nan], np.float32)
    want = [most, -most, most, -most, 1.5, -0.0]
    pair = evaluate(f"cvt.rn.satfinite.{kind}x2.f32 %r8, %r10, %r10; mov.b32 {{%rs1, %rs2}}, %r8; "
                    f"cvt.f32.{kind} %r9, %rs2;", [x], np.float32)  # fmt: skip
    one = evaluate(f"cvt.rn.satfinite.{kind}.f32 %rs1, %r10; cvt.f32.{kind} %r9, %rs1;", [x], np.float32)
    for got in (pair, one):
        assert got[:6].tolist() == want and math.isnan(got[6])


@pytest.mark.parametrize("kind", HALVES)
def test_every_half_widens_exactly(kind: str) -> None:
    for first in range(0, 65536, 1024):
        bits = np.arange(first, first + 1024).astype(np.uint16)
        got = evaluate(f"cvt.f32.{kind} %r9, %rs10;", [bits], np.float32)
        same(got, t(bits.view(np.int16)).view(HALVES[kind]).float().numpy())


@settings(max_examples=25, deadline=None)
@given(values=st.lists(st.one_of(floats32, st.sampled_from([math.inf, -math.inf])), min_size=32, max_size=32),
       kind=st.sampled_from(["s32", "u32", "s16", "u64", "s64", "u8", "s8"]),
       mode=st.sampled_from(["rni", "rzi", "rmi", "rpi"]))  # fmt: skip
def test_float_to_integer_clamps_and_rounds(values: list[float], kind: str, mode: str) -> None:
    bits = int(kind[1:])
    width = max(bits, 16)
    register = {16: "%rs9", 32: "%r9", 64: "%rd9"}[width]
    dtype = np.dtype(f"{'i' if kind[0] == 's' else 'u'}{width // 8}")
    got = evaluate(f"cvt.{mode}.{kind}.f32 {register}, %r10;", [np.array(values, np.float32)], dtype)
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)
    round_ = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}[mode]
    for value, result in zip(values, got.tolist(), strict=True):
        want = (high if value > 0 else low) if math.isinf(value) else min(max(round_(Fraction(value)), low), high)
        assert result == want, (value, kind, mode)


def test_nan_to_integer() -> None:
    nan = np.array([math.nan] * 32, np.float32)
    assert set(evaluate("cvt.rzi.s32.f32 %r9, %r10;", [nan], np.int32).tolist()) == {0}
    assert set(evaluate("cvt.rzi.s64.f32 %rd9, %r10;", [nan], np.int64).tolist()) == {-(2**63)}


@settings(max_examples=20, deadline=None)
@given(values=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=32, max_size=32),
       kind=st.sampled_from(["f32", "f64"]), mode=st.sampled_from(["rn", "rz", "rm", "rp"]))  # fmt: skip
def test_integer_to_float(values: list[int], kind: str, mode: str) -> None:
    register, dtype = ("%r9", np.float32) if kind == "f32" else ("%rd9", np.float64)
    got = evaluate(f"cvt.{mode}.{kind}.s64 {register}, %rd10;", [np.array(values, np.int64)], dtype)
    for value, result in zip(values, got, strict=True):
        check_rounding(Fraction(value), result, mode)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("cvt.s32.s8 %r9, %r10;", lambda v: struct.unpack("b", bytes([v & 255]))[0]),
        ("cvt.u32.u8 %r9, %r10;", lambda v: v & 255),
        (
            "cvt.u16.u32 %rs1, %r10; cvt.s32.s16 %r9, %rs1;",
            lambda v: struct.unpack("h", struct.pack("H", v & 65535))[0],
        ),
        ("cvt.sat.s8.s32 %r9, %r10;", lambda v: max(min(v - (v >> 31 << 32), 127), -128)),
        ("cvt.sat.u16.u32 %r9, %r10;", lambda v: min(v, 65535)),
        ("cvt.sat.u32.s32 %r9, %r10;", lambda v: 0 if v >> 31 else v),
    ],
)
def test_integer_to_integer(code: str, expected: Callable[[int], int]) -> None:
    values = [0, 1, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFF80]
    got = evaluate(code, [np.array(values, np.uint32)], np.uint32)
    assert got.tolist() == [expected(v) & 0xFFFFFFFF for v in values]


def test_float_to_float_integer_rounding_and_double() -> None:
    x = np.array([0.5, 1.5, -0.5, 2.7, -2.7], np.float32)
    assert evaluate("cvt.rni.f32.f32 %r9, %r10;", [x], np.float32).tolist() == [0, 2, -0.0, 3, -3]
    d = np.random.default_rng(0).standard_normal(64)
    assert (evaluate("cvt.rn.f32.f64 %r9, %rd10;", [d], np.float32) == d.astype(np.float32)).all()
    assert (evaluate("cvt.f64.f32 %rd9, %r10;", [x], np.float64) == x.astype(np.float64)).all()


@pytest.mark.parametrize("kind", ["f16x2", "bf16x2"])
def test_setp_of_packed_halves(kind: str) -> None:
    rng = np.random.default_rng(4)
    dtype = {"f16x2": torch.float16, "bf16x2": torch.bfloat16}[kind]
    halves = torch.from_numpy(rng.choice([-1.5, 0.0, -0.0, 2.0, float("nan"), float("inf")], (2, 128))).to(dtype)
    a, b = (row.view(torch.int16).numpy().view(np.uint32) for row in halves)
    code = f"setp.lt.{kind} %p1|%p2, %r10, %r11; selp.b32 %r9, 1, 0, %p1; @%p2 add.s32 %r9, %r9, 2;"
    less = (halves[0] < halves[1]).view(-1, 2).int()
    assert evaluate(code, [a, b], np.uint32).tolist() == (less[:, 0] + 2 * less[:, 1]).tolist()
