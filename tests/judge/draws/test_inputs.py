"""What kernels are judged on: secret moments, special values, integers, and means spread over a trial."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
import torch

from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.judge.draws.distributions import AROUND_NEAR, AROUND_UP_TO, DISTRIBUTIONS, distributions
from cutegen_lab.judge.draws.inputs import draw, fill
from cutegen_lab.judge.draws.integers import terms
from cutegen_lab.judge.draws.names import AROUND, FULL_RANGE, WIDE_RANGE


def workload(*inputs: str) -> Workload:
    return Workload("w", tuple(map(TensorSpec.parse, inputs)), (TensorSpec.parse("out: f32[64]"),))


FLOATS = workload("x: f32[64,100]", "y: bf16[100]")
INTEGERS = workload("x: i32[16,300]", "s: i8[16]", "f: bool[16]")


def test_a_workload_gets_at_least_ten_draws_and_normal_comes_first() -> None:
    for one in (FLOATS, INTEGERS):
        names = distributions(one)
        assert len(names) >= 10 and names[0] == "normal" and len(set(names)) == len(names)
    assert FULL_RANGE in distributions(INTEGERS) and FULL_RANGE not in distributions(FLOATS)
    assert FULL_RANGE in distributions(workload("x: f32[8]", "index: i64[8]"))


@pytest.mark.parametrize("name", [*distributions(FLOATS)])
def test_a_draw_follows_from_its_name_and_seed_and_is_never_the_same_twice(name: str) -> None:
    first, again, other = (draw(FLOATS, name, seed) for seed in (7, 7, 8))
    for spec, a, b, c in zip(FLOATS.inputs, first, again, other, strict=True):
        assert tuple(a.shape) == spec.shape
        assert torch.equal(a.nan_to_num(), b.nan_to_num()) and torch.equal(a.isnan(), b.isnan())
        assert name == "zeros" or not torch.equal(a.nan_to_num(), c.nan_to_num())


@pytest.mark.parametrize("name", ["normal", "uniform", "offset", "large", "tiny"])
def test_moments_are_secret(name: str) -> None:
    drawn = [draw(FLOATS, name, seed)[0] for seed in range(20)]
    deviations = [float(x.std()) for x in drawn]
    assert max(deviations) > 1.3 * min(deviations)
    assert max(float(x.mean()) for x in drawn) - min(float(x.mean()) for x in drawn) > 0.01 * min(deviations)


def test_special_values_stand_once_in_every_floating_point_input() -> None:
    for x in draw(FLOATS, "nan", 3):
        assert int(x.isnan().sum()) == 1
    for x in draw(FLOATS, "infinity", 3):
        assert int(x.isinf().sum()) == 1 and not bool(x.isnan().any())
    signs = {math.copysign(1, float(draw(FLOATS, "infinity", s)[0].sum())) for s in range(20)}
    assert signs == {-1.0, 1.0}


def test_bits_are_zeros_and_ones_of_every_type() -> None:
    for x in [*draw(FLOATS, "bits", 1), *draw(INTEGERS, "bits", 1)]:
        assert {float(v) for v in x.reshape(-1).tolist()} == {0.0, 1.0}


def test_means_of_a_trial_leave_no_gap() -> None:
    turns = 6
    names = [n for turn in range(turns) for n in distributions(FLOATS, turn, turns, secret=0.123)]
    means = sorted(float(n.removeprefix(AROUND)) for n in names if n.startswith(AROUND))
    gaps = [b - a for a, b in itertools.pairwise(means)]
    assert len(means) == 18 and max(gaps) < 12
    assert max(b - a for a, b in itertools.pairwise(m for m in means if abs(m) <= AROUND_NEAR)) < 3.8
    assert abs(float(draw(FLOATS, f"{AROUND}17.5", 2)[0].mean()) - 17.5) < 0.5


def test_full_integers_fill_their_type_but_for_its_ends() -> None:
    x, s, f = draw(INTEGERS, FULL_RANGE, 5)
    assert int(x.max()) > 2_000_000_000 and int(x.min()) < -2_000_000_000 and int(x.min()) > -(2**31) + 1
    assert int(s.abs().max()) > 100 and f.dtype is torch.bool


def test_wide_integers_sum_within_32_bits() -> None:
    x = draw(INTEGERS, WIDE_RANGE, 5)[0]
    assert terms(INTEGERS) == 300
    assert int(x.abs().max()) > 6_000_000 and int(x.abs().max()) * 300 <= 1 << 31


def test_no_distribution_is_forgotten() -> None:
    assert set(DISTRIBUTIONS) <= set(distributions(FLOATS))


def test_large_tensors_are_drawn_in_parallel_and_depend_on_the_seed_alone() -> None:
    large = workload(f"x: f32[{(1 << 23) + 17}]")
    for name in ("normal", "uniform", "mixed"):
        (one,), (two,), (other,) = (draw(large, name, seed) for seed in (5, 5, 6))
        assert torch.equal(one, two) and not torch.equal(one, other)
        halves = one[: 1 << 22], one[1 << 22 : 1 << 23]
        assert not torch.equal(*halves)
        assert float(halves[0].mean()) == pytest.approx(float(halves[1].mean()), abs=0.05 * float(one.std()))


@pytest.mark.parametrize("secret", [0.0, 0.3, 0.99])
def test_the_means_of_a_small_workload_leave_no_gap(secret: float) -> None:
    def means(elements: int) -> list[float]:
        names = distributions(workload(f"x: f32[{elements}]"), 1, 7, secret)
        return sorted(float(name.removeprefix(AROUND)) for name in names if name.startswith(AROUND))

    small = [-AROUND_UP_TO, *means(512), AROUND_UP_TO]
    assert max(b - a for a, b in itertools.pairwise(small)) <= 8.7
    near = [-AROUND_NEAR, *(mean for mean in small if abs(mean) < AROUND_NEAR), AROUND_NEAR]
    assert max(b - a for a, b in itertools.pairwise(near)) <= 3.01
    assert len(means(7)) == len(means(1 << 20)) == 3


def test_an_index_stays_in_its_range_or_is_what_it_may_be_beside_it() -> None:
    spec = replace(TensorSpec.parse("t: i64[4000]"), below=7, beside=(-100,))
    one = Workload("w", (spec,), (TensorSpec.parse("out: f32[64]"),))
    for name in distributions(one):
        (values,) = draw(one, name, 5)
        assert set(values.tolist()) <= {-100, *range(7)}
    assert set(draw(one, "normal", 5)[0].tolist()) == {-100, *range(7)}
    assert set(fill(one, 5)[0].tolist()) <= {-100, *range(7)}


@pytest.mark.parametrize("distribution", ["normal", FULL_RANGE])
def test_bytes_that_hold_two_numbers_hold_every_pair(distribution: str) -> None:
    spec = TensorSpec.parse("packed: uint8[64,256]")
    (packed,) = draw(Workload("w", (spec,), ()), distribution, 3)
    assert packed.unique().numel() == 256
