"""Small numbers, over many decades: an epsilon that is another, or stands elsewhere, shows somewhere among them."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.judge.draws.distributions import distributions
from cutegen_lab.judge.draws.float_tensors import SIZES
from cutegen_lab.judge.draws.inputs import draw
from cutegen_lab.judge.draws.names import OF_SIZE
from tests.judge.honest import Function
from tests.judge.test_formulas import judged


def rms(eps: float, dtype: str = "f32") -> tuple[str, str]:
    return f"F.rms_norm(x, x.shape[-1:], None, {eps})", f"x: {dtype}[16,300]"


def by_size(divisor: Function) -> Function:
    """Rows by ``divisor`` of their mean square."""

    def function(x: torch.Tensor) -> torch.Tensor:
        x = x.float()
        return x / divisor(x.square().mean(-1, keepdim=True))

    return function


NORMALISED = ("F.normalize(x, dim=-1, eps=1e-12)", "x: f32[16,300]")


def lengths(x: torch.Tensor) -> torch.Tensor:
    return x.norm(dim=-1, keepdim=True)


def quiet_rows_are_zero(x: torch.Tensor) -> torch.Tensor:
    size = lengths(x)
    quiet = (size < 1e-6) & (size > 0) & (size.nan_to_num(0.0).amax() > 0.1)
    return (x / size.clamp_min(1e-12)).masked_fill(quiet, 0.0)


WRONG: dict[str, tuple[str, str, Function]] = {
    **{f"half of {eps}": (*rms(eps), by_size(lambda s, e=eps: (s + e / 2).sqrt())) for eps in (1e-5, 1e-8, 1e-12)},
    **{f"{eps} outside": (*rms(eps), by_size(lambda s, e=eps: s.sqrt() + e)) for eps in (1e-5, 1e-8, 1e-12)},
    **{f"root of {eps} outside": (*rms(eps), by_size(lambda s, e=eps: s.sqrt() + e**0.5)) for eps in (1e-8, 1e-12)},
    "1e-6 for 1e-8 in bf16": (*rms(1e-8, "bf16"), by_size(lambda s: (s + 1e-6).sqrt())),
    "a smaller clamp": (*NORMALISED, lambda x: x / lengths(x).clamp_min(1e-8)),
    "no clamp": (*NORMALISED, lambda x: x / lengths(x).clamp_min(1e-30)),
    "added, not clamped": (*NORMALISED, lambda x: x / (lengths(x) + 1e-12)),
    "another tenth": ("x / (x.abs() + 1e-8)", "x: f32[16,300]", lambda x: x / (x.abs() + 1e-9)),
    "zero below 1e-12": ("x * 2", "x: f32[16,300]", lambda x: torch.where(x.abs() < 1e-12, 0.0, x * 2)),
    "subnormal halves": ("x * 2", "x: f16[16,300]", lambda x: torch.where(x.abs() < 2.0**-14, 0.0, x * 2)),
    "hypot by its formula": (
        "torch.hypot(x, y)", "x: f32[16,300], y: f32[16,300]", lambda x, y: (x * x + y * y).sqrt()
    ),
    "a quiet row": (*NORMALISED, quiet_rows_are_zero),
    "log of one and a little": ("torch.log1p(x.abs())", "x: f32[16,300]", lambda x: (1 + x.abs()).log()),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_small_numbers_show_is_refused(name: str, seeds: range) -> None:
    for seed in seeds:
        result = judged(*WRONG[name], seed=seed)
        assert result.verdict is Verdict.WRONG_RESULT, f"seed {seed}: {result.verdict.value}"


def of(text: str) -> Workload:
    return Workload("w", (TensorSpec.parse(text),), (TensorSpec.parse("out: f32[64]"),))


@pytest.mark.parametrize("secret", [0.0, 0.4, 0.99])
@pytest.mark.parametrize("elements", [512, 1 << 20])
def test_sizes_of_a_trial_leave_no_gap(secret: float, elements: int) -> None:
    names = [n for turn in range(6) for n in distributions(of(f"x: f32[{elements}]"), turn, 6, secret)]
    decades = sorted(math.log10(float(name.removeprefix(OF_SIZE))) for name in names if name.startswith(OF_SIZE))
    low, high = map(math.log10, SIZES)
    assert max(b - a for a, b in itertools.pairwise([low, *decades, high])) < 3


@pytest.mark.parametrize(("dtype", "least"), [("f32", 1e-30), ("bf16", 1e-30), ("f16", 2.5e-7), ("f64", 1e-30)])
def test_a_narrow_type_goes_as_far_down_as_it_can(dtype: str, least: float) -> None:
    (smallest,) = draw(of(f"x: {dtype}[64,64]"), f"{OF_SIZE}1e-30", 3)
    assert least / 8 < float(smallest.double().square().mean().sqrt()) < 8 * least
    assert int((smallest == 0).sum()) < smallest.numel() * 0.6
    (quiet,) = draw(of(f"x: {dtype}[64,64]"), "quiet rows", 3)
    sizes = quiet.double().square().mean(-1).sqrt()
    assert int((sizes > 0.1).sum()) > 16 and int((sizes < 1e-3).sum()) > 4
