"""Masks, indices and lengths are drawn with structure: kernels that count on chance are refused."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.judge.draws.distributions import distributions
from cutegen_lab.judge.draws.inputs import draw
from cutegen_lab.judge.draws.names import FULL_RANGE, PATCHWORK
from cutegen_lab.judge.draws.patterns import INDICES, LENGTHS, MASKS, Grid
from tests.judge.honest import Function
from tests.judge.test_formulas import judged

MASKED_MEAN = ("(x * m).sum(-1) / m.sum(-1).clamp_min(1)", "x: f32[16,300], m: bool[16,300]")
MASKED_SOFTMAX = ("torch.softmax(x.masked_fill(~m, float('-inf')), -1)", "x: f32[16,300], m: bool[16,300]")
ADDED_UP = ("torch.zeros(50, device=x.device).index_add(0, i, x)", "x: f32[300], i: i64[300]")
LOOKED_UP = ("t[i]", "t: f32[1000,16], i: i64[200]")
BY_LENGTH = (
    "x.masked_fill(torch.arange(x.shape[1], device=x.device) >= n[:, None], 0.0).sum(-1)", "x: f32[16,300], n: i32[16]"
)  # fmt: skip


def masked_mean(x: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
    return (x * m).sum(-1) / m.sum(-1).clamp_min(1)


def wrong_where(rows: Function) -> Function:
    """The mean over each row's mask, but for rows whose mask ``rows`` holds of."""

    def function(x: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
        right = masked_mean(x, m)
        return torch.where(rows(m), right * 1.1, right) if m.shape[-1] > 8 else right

    return function


def by_tiles(x: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
    """An online softmax which takes the first maximum from the first tile: NaN where that is masked."""
    x = x.masked_fill(~m, -math.inf)
    first, *others = x.split(64, -1)
    top = first.amax(-1, keepdim=True)
    total = (first - top).exp().sum(-1, keepdim=True)
    for part in others:
        grown = torch.maximum(top, part.amax(-1, keepdim=True))
        total, top = total * (top - grown).exp() + (part - grown).exp().sum(-1, keepdim=True), grown
    return (x - top).exp() / total


def drops_collisions(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    """Gives up an atomic addition after 40 tries."""
    earlier = (i[:, None] == i[None]).tril(-1).sum(1)
    return torch.zeros(50).index_add(0, i, torch.where(earlier < 40, x, 0.0))


def looks_up(wrong: Function) -> Function:
    def function(t: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return t[i] * 1.5 if len(i) > 3 and bool(wrong(i % t.shape[0])) else t[i]

    return function


def by_length(mended: Function) -> Function:
    def function(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        return x.masked_fill(torch.arange(x.shape[1]) >= mended(n, x.shape[1])[:, None], 0.0).sum(-1)

    return function


WRONG: dict[str, tuple[str, str, Function]] = {
    "a first tile that is masked": (*MASKED_SOFTMAX, by_tiles),
    "zero for a row of which nothing is left": (
        *MASKED_SOFTMAX,
        lambda x, m: torch.softmax(x.masked_fill(~m, -math.inf), -1).masked_fill(~m.any(-1, keepdim=True), 0.0),
    ),
    "a count of at most 200": (*MASKED_MEAN, lambda x, m: (x * m).sum(-1) / m.sum(-1).clamp(1, 200)),
    "one true": (*MASKED_MEAN, wrong_where(lambda m: m.sum(-1) == 1)),
    "one false": (*MASKED_MEAN, wrong_where(lambda m: (~m).sum(-1) == 1)),
    "all true": (*MASKED_MEAN, wrong_where(lambda m: m.all(-1))),
    "a prefix": (*MASKED_MEAN, wrong_where(lambda m: (m[:, :-1] >= m[:, 1:]).all(-1) & m[:, 0] & ~m[:, -1])),
    "a tile of false": (*MASKED_MEAN, wrong_where(lambda m: ~m[:, 64:128].any(-1) & m[:, :64].any(-1))),
    "all but the last": ("m.any(-1)", "m: bool[16,300]", lambda m: m[:, : max(m.shape[-1] - 1, 1)].any(-1)),
    "a count in 8 bits": ("m.sum(-1)", "m: bool[16,300]", lambda m: m.sum(-1).clamp_max(255)),
    "never all": ("m.all(-1)", "m: bool[16,300]", lambda m: m.all(-1) & (m.shape[-1] <= 8)),
    "the first 32 alone": ("m.int().argmax(-1)", "m: bool[16,300]", lambda m: m[:, :32].int().argmax(-1)),
    "collisions": (*ADDED_UP, drops_collisions),
    "indices in order": (*LOOKED_UP, looks_up(lambda i: (i.diff() >= 0).all() & (i != i[0]).any())),
    "indices in reverse": (*LOOKED_UP, looks_up(lambda i: (i.diff() <= 0).all() & (i != i[0]).any())),
    "one index": (*LOOKED_UP, looks_up(lambda i: (i == i[0]).all() & (i[0] > 0))),
    "no index twice": (*LOOKED_UP, looks_up(lambda i: i.unique().numel() == i.numel())),
    "runs of an index": (*LOOKED_UP, looks_up(lambda i: (i.diff() == 0).float().mean() > 0.6)),
    "a full row": (*BY_LENGTH, by_length(lambda n, most: torch.where(n == most, n - 1, n))),
    "an empty row": (*BY_LENGTH, by_length(lambda n, most: torch.where(n == 0, 1, n))),
    "a row of one": (*BY_LENGTH, by_length(lambda n, most: torch.where(n == 1, 0, n))),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_chance_never_shows_is_refused(name: str, seeds: range) -> None:
    for seed in seeds:
        result = judged(*WRONG[name], seed=seed)
        assert result.verdict is Verdict.WRONG_RESULT, f"seed {seed}: {result.verdict.value}"


def drawn(spec: TensorSpec, name: str, seed: int = 5) -> torch.Tensor:
    return draw(Workload("w", (spec,), (TensorSpec.parse("out: f32[64]"),)), name, seed)[0]


MASK = TensorSpec.parse("m: bool[64,100]")
INDEX = replace(TensorSpec.parse("i: i64[64,100]"), below=7)


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 7, 1), (5, 1, 5), (6, 33, 3), (64, 100, 8)])
def test_every_kind_stays_in_its_range_whatever_the_shape(shape: tuple[int, int, int]) -> None:
    rows, columns, height = shape
    at, g = Grid(rows, columns, height, 9, (0, 33)), torch.Generator().manual_seed(1)
    for kind in MASKS:
        assert kind(at, g).dtype is torch.bool and tuple(kind(at, g).shape) == at.shape
    for kind in (*INDICES, *LENGTHS):
        values = kind(at, g)
        assert tuple(values.shape) == at.shape and set(values.unique().tolist()) <= {*range(9), 33}


def test_a_draw_of_many_kinds_has_each_in_some_row() -> None:
    mask = drawn(MASK, PATCHWORK)
    counts = mask.sum(-1).tolist()
    assert {0, 1, 99, 100} <= set(counts) and len(set(counts)) > 10
    rows = drawn(INDEX, PATCHWORK)
    steps = rows.diff(dim=-1)
    assert bool((steps == 0).all(-1).any()) and bool(((steps >= 0).all(-1) & (steps > 0).any(-1)).any())


def test_a_scalar_takes_the_values_of_a_length() -> None:
    length, x = TensorSpec.parse("n: i32[]"), TensorSpec.parse("x: f32[64,300]")
    of = Workload("w", (x, length), (replace(x, name="out"),))
    names = [(seed, name) for seed in range(3) for name in distributions(of)]
    values = [int(draw(of, name, 100 * seed + at)[1]) for at, (seed, name) in enumerate(names)]
    assert {0, 299, 300} <= set(values) and sum(1 < value < 299 for value in values) >= 20


def test_normal_draws_and_zeros_have_no_pattern() -> None:
    assert 0.4 < float(drawn(MASK, "normal").float().mean()) < 0.6 and not bool(drawn(MASK, "zeros").any())
    assert drawn(INDEX, "normal").unique().tolist() == [*range(7)]
    x = drawn(TensorSpec.parse("x: i32[64,100]"), FULL_RANGE)
    assert int(x.abs().max()) > 2_000_000_000 and x.unique().numel() > 6000


def test_a_trial_without_floats_meets_every_pattern() -> None:
    one = Workload("w", (MASK,), ())
    names = {name for turn in range(4) for name in distributions(one, turn, 4, secret=0.7)}
    assert {f"pattern {number}" for number in range(len(INDICES))} <= names
    assert all(PATCHWORK in distributions(one, turn, 4) for turn in range(4))
