"""Honest formulas pass whatever the seed, and shortcuts that hold on ordinary numbers fail.

Formulas are judged on a third of their derived workloads with one seed; ``--exhaustive`` takes all, with 20 seeds.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from cutegen_lab.core.trial import CheckResult
from cutegen_lab.core.verdict import Verdict
from tests.harness.checking import every_third
from tests.judge.honest import Function
from tests.judge.more_formulas import ALL_FORMULAS
from tests.judge.test_draws import judged as judged_on_torch
from tests.judge.test_draws import problem, writes

ALL_SEEDS = 20


def judged(expression: str, inputs: str, function: Function, seed: int = 1) -> CheckResult:
    return judged_on_torch(problem(expression, inputs), writes(function), seed=1000 * seed)


@pytest.mark.filterwarnings("ignore:.*degrees of freedom is <= 0")
@pytest.mark.parametrize(
    ("expression", "inputs", "function"), [f[1:] for f in ALL_FORMULAS], ids=[f[0] for f in ALL_FORMULAS]
)
def test_no_toss_of_a_coin(request: pytest.FixtureRequest, expression: str, inputs: str, function: Function) -> None:
    first, exhaustive = request.config.getoption("--seed"), request.config.getoption("--exhaustive")
    whole = problem(expression, inputs)
    task = whole if exhaustive else every_third(whole)
    for seed in range(first, first + (ALL_SEEDS if exhaustive else 1)):
        result = judged_on_torch(task, writes(function), seed=1000 * seed)
        assert result.verdict is Verdict.PASSED, f"seed {seed}: {result.reason}"


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        ("sigmoid by tanh", 20261123),  # a row of results that fp32 loses beside 1/2
        ("layer norm, fp32", 7604),  # one row far from zero: each column's error is one number's
        ("two products", 7500),  # square matrices, each of whose dimensions was graded against both others
        ("sigmoid by tanh", 7002),  # a single row, all of whose results vanish
        ("attention in one pass", 43),  # shares that are all alike round alike, and their products cancel
        ("masked attention, 16-bit shares", 20261133),  # two results, of keys among which hidden ones are infinite
        ("SiLU of bf16 by tanh", 7104),  # a column of results that all vanish
        ("SiLU of bf16 by tanh", 8018),  # … and all of a small output
        ("a cancelling quotient", 8009),  # of 4,800 errors, what rounding did to the largest was little in three runs
        ("three factors", 0),  # of numbers over all exponents: the quotient alone overflows
        ("above the mean", 20270001),  # a sum of 61 terms, one after another, rounds more than once
        ("attention in bf16", 20270001),  # a query of infinities: PyTorch's attention gives zeros, plain softmax NaN
        ("attention in one pass", 20270001),
        ("attention in bf16", 20300006),  # the same by an infinity among ordinary numbers
        ("layer norm, folded", 20300003),  # one column over all exponents: its variance is 0, and x · s cancels
        ("above the mean", 20300004),  # 61 roundings of a sum that lie further out than any of 12 runs of PyTorch's
        ("tanh of bf16 by a sigmoid", 20400003),  # a draw of small numbers, all of which vanish beside 1
        ("smoothed cross-entropy", 20400001),  # one column, where three multiples of x cancel
        ("Winograd's convolution", 20600006),  # which subtracts a heavy number beside the taps from small ones
        ("linear attention", 20500008),  # a sum beyond 1e30 whose terms nearly cancel
        ("masked attention, 16-bit shares", 9003),  # a share that rounds to 0 hides an infinity in one column of five
    ],
)
def test_trials_that_an_honest_formula_once_lost(name: str, seed: int) -> None:
    expression, inputs, function = next(f[1:] for f in ALL_FORMULAS if f[0] == name)
    result = judged(expression, inputs, function, seed)
    assert result.verdict is Verdict.PASSED, result.reason


def halves(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """A product of fp32 numbers as two fp16 halves each, scaled by rows of a and columns of b."""

    def split(x: torch.Tensor, dim: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        scale = x.abs().nan_to_num(0.0, 0.0, 0.0).amax(dim, keepdim=True).clamp_min(2.0**-100).log2().floor().exp2()
        high = (x / scale).half().float()
        return scale, high, (x / scale - high).mul(2048).half().float() / 2048

    row, ah, al = split(a, 1)
    column, bh, bl = split(b, 0)
    fast = (ah @ bh + (ah @ bl + al @ bh)) * row * column
    return torch.where(fast.isfinite(), fast, a @ b)


def spoiled_where(rows: Callable[[torch.Tensor], torch.Tensor]) -> Function:
    """softmax, but for rows of which ``rows`` holds."""

    def function(x: torch.Tensor) -> torch.Tensor:
        right = torch.softmax(x.float(), -1)
        return torch.where(rows(x)[:, None], right * 1.01, right)

    return function


def by_a_tame_beginning(x: torch.Tensor) -> torch.Tensor:
    few = x[:, :64].abs().amax() < 100
    return (x.half().float() if bool(few) else x).square().mean(-1)


def skipping_quiet_tiles(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Leaves out a step of 8 columns of a whose largest number is small beside the whole's."""
    top, total = a.abs().nan_to_num(0.0, 0.0, 0.0).amax(), torch.zeros(a.shape[0], b.shape[1])
    for k in range(0, a.shape[1], 8):
        if not bool(a[:, k : k + 8].abs().amax() < 1e-3 * top):
            total = total + a[:, k : k + 8] @ b[k : k + 8]
    return total


SOFTMAX = ("torch.softmax(x, -1)", "x: f32[16,300]")
PRODUCT = ("a @ b", "a: f32[40,200], b: f32[200,72]")
BYTES = "(x / (x.abs().amax(-1, keepdim=True).clamp(min=1e-10) / 127)).round().to(torch.int8)"


def _quotient(x: torch.Tensor) -> torch.Tensor:
    return x / (x.abs().amax(-1, keepdim=True).clamp(min=1e-10) / 127)


SHORTCUTS: dict[str, tuple[str, str, Function]] = {
    "fp16 halves": (*PRODUCT, halves),
    "halves go up": ("(x * 2).round().clamp(-99, 99).to(torch.int8)", "x: f32[16,300]",
                     lambda x: (x * 2 + 0.5).floor().clamp(-99, 99).to(torch.int8)),
    "almost a half goes up": (BYTES, "x: f32[16,300]", lambda x: (_quotient(x) + 1e-3).round().to(torch.int8)),
    "quiet tiles": (*PRODUCT, skipping_quiet_tiles),
    "a tame beginning": ("x.square().mean(-1)", "x: f32[16,3000]", by_a_tame_beginning),
    "ascending rows": (*SOFTMAX, spoiled_where(lambda x: (x.diff(dim=-1) >= 0).all(-1) & (x.shape[-1] > 1))),
    "constant rows": (*SOFTMAX, spoiled_where(lambda x: (x == x[:, :1]).all(-1) & (x[:, 0] != 0) & (x.shape[-1] > 1))),
    "many near the maximum": (
        *SOFTMAX,
        spoiled_where(lambda x: (x.amax(-1, keepdim=True) - x < 2**-6).sum(-1) > max(x.shape[-1] // 8, 2)),
    ),
    "beyond a million": ("x * 2", "x: f32[16,300]", lambda x: torch.where(x.abs() > 1e6, x, x * 2)),
    "clamped to a million": ("x * 1.5", "x: f32[16,300]", lambda x: (x * 1.5).clamp(-1e6, 1e6)),
    "floor by int32": ("torch.floor(x)", "x: f32[16,300]", lambda x: x.clamp(-(2.0**31), 2.0**31 - 128).floor()),
    "infinities that cancel": (
        "x.sum(-1)", "x: f32[16,300]",
        lambda x: torch.where((x == torch.inf).any(-1) & ~x.isnan().any(-1), torch.inf, x.sum(-1)),
    ),
    "two NaN": (
        "torch.relu(x)", "x: f32[16,300]", lambda x: torch.where((x.isnan().sum() > 1) & x.isnan(), 0.0, torch.relu(x))
    ),
    "int8 at its ends": ("x.int() * 3", "x: i8[16,300]", lambda x: x.int() * 3 + (x == -128).int()),
    "int64 as int32": ("x * 3", "x: i64[16,300]",
                       lambda x: torch.where(x.abs() < 1 << 20, x * 3, (x * 3).int().long())),
    "one of a tie twice": ("torch.topk(x, 2)[1]", "x: bf16[64,60]", lambda x: x.argmax(-1, keepdim=True).expand(-1, 2)),
    "no NaN anywhere": ("x.isnan().any(-1)", "x: f32[16,300]", lambda x: torch.zeros(x.shape[0], dtype=torch.bool)),
    "an index beside the maximum": (
        "x.argmax(-1)", "x: bf16[64,60]", lambda x: torch.topk(x, min(2, x.shape[-1]))[1][..., -1]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SHORTCUTS)
def test_a_shortcut_is_refused(name: str, seeds: range) -> None:
    for seed in seeds:
        result = judged(*SHORTCUTS[name], seed=seed)
        assert result.verdict is Verdict.WRONG_RESULT, f"seed {seed}: {result.verdict.value}"
