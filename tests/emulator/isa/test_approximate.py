"""Approximate instructions are as wrong as the PTX ISA says that they may be: no more, and not much less.

Beyond ±1 tanh is the exception: the ISA allows 2⁻¹¹, and an H200 is as wrong as the bounds here.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from cutegen_lab.emulator import Options, Order
from tests.emulator.ptx_kernel import evaluate

Bound = Callable[[np.ndarray, np.ndarray], np.ndarray]


def relative(bits: float) -> Bound:
    return lambda x, want: np.abs(want) * 2.0**-bits


def absolute(bits: float) -> Bound:
    return lambda x, want: np.full(len(x), 2.0**-bits)


def ulps(count: float) -> Bound:
    return lambda x, want: count * np.spacing(np.abs(want).astype(np.float32)).astype(np.float64)


def lg2_bound(x: np.ndarray, want: np.ndarray) -> np.ndarray:
    return np.where((x > 0.5) & (x < 2), 2.0**-22, np.abs(want) * 2.0**-22)


def spread(low: float, high: float, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, 1024).astype(np.float32)


def scattered(seed: int) -> np.ndarray:
    return np.exp2(spread(-20, 20, seed)).astype(np.float32)


CASES = {
    "ex2": (spread(-20, 20, 1), lambda x: 2.0**x, ulps(2)),
    "ex2.ftz": (spread(-20, 20, 2), lambda x: 2.0**x, ulps(2)),
    "lg2": (scattered(3), math.log2, lg2_bound),
    "lg2 near one": (spread(0.5, 2, 4), math.log2, lg2_bound),
    "sin": (spread(-6.28, 6.28, 5), math.sin, absolute(20.5)),
    "cos": (spread(-6.28, 6.28, 6), math.cos, absolute(20.5)),
    "sin of much": (spread(-314, 314, 7), math.sin, absolute(14.7)),
    "cos of much": (spread(-314, 314, 8), math.cos, absolute(14.7)),
    "tanh": (spread(-1, 1, 9), math.tanh, relative(11)),
    "tanh of little": (spread(-0.01, 0.01, 10), math.tanh, relative(11)),
    "tanh of one to two": (spread(1, 2, 9), math.tanh, relative(16.6)),
    "tanh of two to three": (spread(2, 3, 17), math.tanh, absolute(18.6)),
    "tanh of three to four": (spread(-4, -3, 18), math.tanh, absolute(20.8)),
    "tanh of four to five": (spread(4, 5, 19), math.tanh, absolute(18.7)),
    "rsqrt": (scattered(11), lambda x: x**-0.5, relative(22.9)),
    "rcp": (scattered(12), lambda x: 1 / x, ulps(1)),
    "sqrt": (scattered(13), math.sqrt, relative(23)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_error_fills_what_the_isa_allows(name: str) -> None:
    x, function, bound = CASES[name]
    opcode, _, ftz = name.split()[0].partition(".")
    got = evaluate(f"{opcode}.approx{'.ftz' if ftz else ''}.f32 %r9, %r10;", [x], np.float32).astype(np.float64)
    want = np.array([function(float(v)) for v in x])
    used = np.abs(got - want) / bound(x.astype(np.float64), want)
    assert used.max() <= 1
    assert used.max() >= 0.4 and used.mean() >= 0.1, f"more exact than hardware: {used.max():.2f}, {used.mean():.2f}"


def near_as_hardware() -> list[Options]:
    orders = [Order(clock=clock) for clock in range(1, 9)]
    assert all(order.noise == order.opposite().noise for order in orders)
    return [Options(order=order) for order in orders if order.noise is not None]


@pytest.mark.parametrize("name", CASES)
def test_in_other_runs_no_bit_tells_it_from_hardware(name: str) -> None:
    """Within the bound, on both sides of the true value, with all last bits, and otherwise in every run."""
    x, function, bound = CASES[name]
    opcode = name.split()[0].partition(".")[0]
    want = np.array([function(float(v)) for v in x])
    found = [evaluate(f"{opcode}.approx.f32 %r9, %r10;", [x], np.float32, o) for o in near_as_hardware()]
    assert len(found) == 4
    for got in found:
        assert (np.abs(got.astype(np.float64) - want) <= bound(x.astype(np.float64), want)).all()
        assert 0.3 < (got > want).mean() < 0.7
        assert [set((got.view(np.uint32) >> bit & 1).tolist()) for bit in range(8)] == [{0, 1}] * 8
    assert (found[0] != found[1]).mean() > 0.1


@pytest.mark.parametrize("form", ["approx", "full"])
def test_division_is_a_times_one_over_b(form: str) -> None:
    a, b = scattered(14), scattered(15)
    got = evaluate(f"div.{form}.f32 %r9, %r10, %r11;", [a, b], np.float32).astype(np.float64)
    want = a.astype(np.float64) / b
    assert (np.abs(got - want) <= ulps(2)(a, want)).all()
    assert (got != want.astype(np.float32)).any()


@pytest.mark.parametrize(("form", "large"), [("approx", 0.0), ("full", 1.5)])
def test_division_by_what_has_no_normal_inverse(form: str, large: float) -> None:
    a = np.array([1.5 * 2.0**127, 3, 2.0**-130, 1, 0, math.inf, 1], np.float32)
    b = np.array([2.0**127, math.inf, 2.0**-131, 0, 0, 2, math.nan], np.float32)
    got = evaluate(f"div.{form}.f32 %r9, %r10, %r11;", [a, b], np.float32)
    assert got[0] == large and got[1] == 0 and math.isinf(got[3]) and math.isnan(got[4])
    assert math.isinf(got[5]) and math.isnan(got[6])
    if form == "full":
        assert got[2] == 2


@pytest.mark.parametrize(
    ("code", "given", "want"),
    [
        ("ex2", [0, 1, -3, 10], [1, 2, 0.125, 1024]), ("lg2", [1, 2, 8, 0.25], [0, 1, 3, -2]), ("sin", [0], [0]),
        ("cos", [0], [1]), ("tanh", [0, 20, -20], [0, 1, -1]), ("rcp", [1, 2, -0.25], [1, 0.5, -4]),
        ("sqrt", [0, 4, 9], [0, 2, 3]), ("rsqrt", [1, 4, 0.25], [1, 0.5, 2]),
    ],
)  # fmt: skip
def test_what_is_exact_in_few_bits_stays_exact(code: str, given: list[float], want: list[float]) -> None:
    for options in (None, *near_as_hardware()):
        got = evaluate(f"{code}.approx.f32 %r9, %r10;", [np.array(given, np.float32)], np.float32, options)
        assert got.tolist() == want


@pytest.mark.parametrize(
    ("code", "given", "want"),
    [
        ("ex2", [math.inf, -math.inf, 200], [math.inf, 0, math.inf]), ("lg2", [0, math.inf], [-math.inf, math.inf]),
        ("rcp", [0, math.inf, 2.0**-140], [math.inf, 0, math.inf]), ("rsqrt", [0, math.inf], [math.inf, 0]),
        ("sqrt", [math.inf], [math.inf]), ("tanh", [math.inf, -math.inf], [1, -1]),
    ],
)  # fmt: skip
def test_ends_of_the_range(code: str, given: list[float], want: list[float]) -> None:
    with_nan = np.array([*given, math.nan], np.float32)
    got = evaluate(f"{code}.approx.f32 %r9, %r10;", [with_nan], np.float32).tolist()
    assert got[:-1] == want and math.isnan(got[-1])


@pytest.mark.parametrize(("opcode", "power"), [("rcp", -1.0), ("rsqrt", -0.5)])
def test_gross_double_precision(opcode: str, power: float) -> None:
    x = scattered(16).astype(np.float64)
    got = evaluate(f"{opcode}.approx.ftz.f64 %rd9, %rd10;", [x], np.float64)
    assert not (got.view(np.uint64) & np.uint64(0xFFFFFFFF)).any()
    assert (np.abs(got / x**power - 1) < 2.0**-20).all()
