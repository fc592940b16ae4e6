"""What is slow to emulate. Of the analyst's own workload two draws tell what a kernel gets wrong at its shape alone; of
small ones a kernel cannot choose how many there are: it meets as many as the problem's bytes allow, or passes none."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.core.protocols import Cancel, Execution
from cutegen_lab.core.trial import CheckResult
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.judge import StandardJudge
from tests.judge.honest import Function
from tests.judge.test_draws import problem, writes
from tests.judge.torch_device import TorchDevice, artifact_for


class Costly(TorchDevice):
    """Says that a kernel took ``cost`` warp instructions: where its tensors are these many bytes, or everywhere."""

    cost, at_bytes = 1e9, 0

    def execute(
        self, build: Build, tensors: Sequence[TensorSpec], buffers: Sequence[memoryview], cancel: Cancel,
        counting: bool = True, flops: int = 0,
    ) -> Execution:  # fmt: skip
        done = super().execute(build, tensors, buffers, cancel, counting, flops)
        there = not self.at_bytes or sum(spec.nbytes for spec in tensors) == self.at_bytes
        return replace(done, counters={"warp_instructions": self.cost if there else 1.0})


def judged(expression: str, inputs: str, function: Function, seed: int = 1, cost: float | None = None) -> CheckResult:
    """``cost``: of every workload; without, that of the analyst's own is too much."""
    task, seeds = problem(expression, inputs), itertools.count(1000 * seed)
    device = Costly(writes(function))
    device.cost, device.at_bytes = cost or 1e9, 0 if cost else task.workload.nbytes
    judge = StandardJudge(lambda: next(seeds))
    return judge.check(task, artifact_for(task, device), device, lambda line: None, threading.Event())


ROWS, SHAPE = "x: f32[64,300]", (64, 300)


def on_main(right: Function, wrong: Function, shape: tuple[int, ...] = SHAPE) -> Function:
    """``wrong`` at ``shape`` alone."""

    def function(x: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        return (wrong if tuple(x.shape) == shape else right)(x, *others)

    return function


def softmax_but(rows: Function) -> Function:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.where(rows(x)[:, None], 0.5, torch.softmax(x, -1))

    return on_main(lambda x: torch.softmax(x, -1), function)


def masked_mean(x: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
    return (x * m).sum(-1) / m.sum(-1).clamp_min(1)


def mean_but(rows: Function) -> Function:
    def function(x: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
        right = masked_mean(x, m)
        return torch.where(rows(m), right * 1.1 + 1.0, right)

    return on_main(masked_mean, function)


SOFTMAX = ("torch.softmax(x, -1)", ROWS)
MEAN = ("(x * m).sum(-1) / m.sum(-1).clamp_min(1)", f"{ROWS}, m: bool[64,300]")
LINE, LONG = "x: f32[20000]", (20000,)
PAIR = (2, 6000)


def swallowing(nan: float | None = None, above: float | None = None, below: float | None = None) -> Function:
    def function(x: torch.Tensor) -> torch.Tensor:
        odd = (torch.nan if nan is None else nan, torch.inf if above is None else above)
        return (x * 2).nan_to_num(*odd, -torch.inf if below is None else below)

    return function


def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def looks_up(wrong: Function) -> Function:
    def function(t: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return t.gather(1, torch.where(wrong(i), 0, i))

    return on_main(lambda t, i: t.gather(1, i), function)


LOOKED_UP = ("t.gather(1, i)", "t: f32[64,300], i: i64[64,300]")

WRONG: dict[str, tuple[str, str, Function]] = {
    "NaN": (*SOFTMAX, softmax_but(lambda x: x.isnan().any(-1))),
    "zeros": (*SOFTMAX, softmax_but(lambda x: (x == 0).all(-1))),
    "large": (*SOFTMAX, softmax_but(lambda x: x.abs().amax(-1) > 5000)),
    "small": ("F.normalize(x, dim=-1)", ROWS,
              on_main(lambda x: x / x.norm(dim=-1, keepdim=True).clamp_min(1e-12),
                      lambda x: x / x.norm(dim=-1, keepdim=True).clamp_min(1e-4))),
    "sorted": (*SOFTMAX, softmax_but(lambda x: (x.diff(dim=-1) >= 0).all(-1) & (x[:, 0] < x[:, -1]))),
    **{
        f"{name} of {what}": ("x * 2", text, on_main(twice, function, shape))
        for name, function in (("NaN", swallowing(nan=0.0)), ("infinity", swallowing(above=3e38)),
                               ("-infinity", swallowing(below=-3e38)))
        for what, text, shape in (("rows", ROWS, SHAPE), ("four rows", "x: f32[4,300]", (4, 300)))
    },
    "large numbers of one row": ("x * 2", LINE, on_main(twice, lambda x: (x * 2).clamp(-5000, 5000), LONG)),
    "zeros of one row": (
        "x.sign() + x.abs()", LINE,
        on_main(lambda x: x.sign() + x.abs(), lambda x: torch.where(x < 0, -1.0, 1.0) + x.abs(), LONG)
    ),
    "small numbers of two rows": (
        "x * 2", "x: f32[2,6000]", on_main(twice, lambda x: torch.where(x.abs() < 1e-4, 1.0, x * 2), PAIR)
    ),
    "all true": (*MEAN, mean_but(lambda m: m.all(-1))),
    "one true": (*MEAN, mean_but(lambda m: m.sum(-1) == 1)),
    "all false": (*MEAN, mean_but(lambda m: ~m.any(-1))),
    "a prefix": (*MEAN, mean_but(lambda m: (m[:, :-1] >= m[:, 1:]).all(-1) & m[:, 0] & ~m[:, -1])),
    "one index": (*LOOKED_UP, looks_up(lambda i: (i == i[:, :1]).all(-1, keepdim=True))),
    "indices in order": (*LOOKED_UP, looks_up(lambda i: (i.diff(dim=-1) >= 0).all(-1, keepdim=True))),
    "integers beyond 16 bits": (
        "x ^ 5", "x: i32[64,300]", on_main(lambda x: x ^ 5, lambda x: x.clamp(-32768, 32767) ^ 5)
    ),
    "masks alone": (
        "m.sum(-1)", "m: bool[64,300]", on_main(lambda m: m.sum(-1), lambda m: m.sum(-1).clamp_max(255))
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_two_draws_of_a_costly_workload_hold_every_kind(name: str, seeds: range) -> None:
    for seed in seeds:
        result = judged(*WRONG[name], seed=seed)
        assert result.verdict is Verdict.WRONG_RESULT, f"seed {seed}: {result.verdict.value}"
        assert " on main " in result.reason, result.reason
        assert len([check for check in result.checks if check.workload == "main"]) <= 2


KINDS = (["patchwork", "mosaic"], ["patchwork", "full integers"], ["patchwork"])  # beside normal values


@pytest.mark.parametrize(
    ("expression", "inputs", "function"),
    [
        (*SOFTMAX, lambda x: torch.softmax(x, -1)),
        ("torch.softmax(x, -1)", "x: f32[1,6000]", lambda x: torch.softmax(x, -1)),
        ("x * 2", LINE, twice),
        (*MEAN, masked_mean),
        ("x.sum(-1)", "x: i32[64,300]", lambda x: x.sum(-1)),
        ("m.sum(-1)", "m: bool[64,300]", lambda m: m.sum(-1)),
    ],
)
def test_what_is_right_passes_on_the_fewest(expression: str, inputs: str, function: Function, seeds: range) -> None:
    for seed in seeds:
        result = judged(expression, inputs, function, seed)
        assert result.verdict is Verdict.PASSED, result.reason
        assert [c.distribution for c in result.checks if c.workload == "main"][1:] in KINDS


def two_nan(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x.isnan().sum(-1) > 1, 0.0, x.sum(-1))


def from_minus_1e20(x: torch.Tensor) -> torch.Tensor:
    power = (x - x.amax(-1, keepdim=True).clamp_min(-1e20)).exp()
    return power / power.sum(-1, keepdim=True)


def constant_rows(x: torch.Tensor) -> torch.Tensor:
    right = torch.softmax(x, -1)
    return torch.where((x == x[:, :1]).all(-1, keepdim=True) & (x[:, :1] != 0) & (x.shape[-1] > 1), right * 1.01, right)


IDLE = 200_000  # warp instructions: a loop that only takes time, on every workload
PADDED: dict[str, tuple[str, str, Function]] = {
    "a maximum from -1e20": (*SOFTMAX, from_minus_1e20),
    "constant rows": (*SOFTMAX, constant_rows),
    "two NaN": ("x.sum(-1)", ROWS, two_nan),
    "zeros skipped": ("x * y", f"{ROWS}, y: f32[64,300]", lambda x, y: torch.where(x == 0, 0.0, x * y)),
    "nothing above 1e36": ("x * 2", ROWS, lambda x: torch.where(x.isfinite() & (x.abs() > 1e36), 0.0, x * 2)),
    "a threshold": ("torch.where(x > 0.5, x, 0)", ROWS, lambda x: torch.where(x >= 0.5, x, 0)),
    "a hypotenuse": ("torch.hypot(x, y)", f"{ROWS}, y: f32[64,300]", lambda x, y: (x * x + y * y).sqrt()),
}


@pytest.mark.parametrize("name", PADDED)
def test_a_kernel_that_idles_is_judged_by_as_many_draws(name: str, seeds: range) -> None:
    for seed in seeds:
        result = judged(*PADDED[name], seed=seed, cost=IDLE)
        assert result.verdict is Verdict.WRONG_RESULT, f"seed {seed}: {result.verdict.value}"


def test_a_right_kernel_that_takes_its_time_passes_by_as_many() -> None:
    drawn = [
        [(check.workload, check.distribution) for check in result.checks if check.workload in ("prime", "one_row")]
        for result in (judged(*SOFTMAX, lambda x: torch.softmax(x, -1), cost=cost) for cost in (1.0, IDLE))
    ]
    assert drawn[0] == drawn[1] and len(drawn[0]) > 60


def test_one_that_is_too_slow_for_that_is_no_pass() -> None:
    result = judged(*SOFTMAX, lambda x: torch.softmax(x, -1), cost=1e8)
    assert result.verdict is Verdict.INCONCLUSIVE and not result.verdict.passed
    assert {check.verdict for check in result.checks} == {Verdict.PASSED}
    assert "draws of prime, each of which takes 100,000,000 warp instructions (" in result.reason, result.reason
    assert "judge it on a GPU" in result.reason
