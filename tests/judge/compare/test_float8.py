"""Results of 8-bit floats: what a kernel had before it rounded, and what each type has beyond its largest."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import TensorSpec, Tolerances, Workload
from cutegen_lab.core.trial import OutputError
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.judge.checks.diagnosis import diagnose
from cutegen_lab.judge.compare.correctness import compare
from cutegen_lab.judge.compare.float8 import unrounded
from cutegen_lab.problems import read_text
from cutegen_lab.problems.dtypes import TORCH
from tests.harness.checking import Compiler, answered
from tests.honest.corpus import honest

TYPES = [DType.F8E4M3, DType.F8E5M2]
NORMAL = torch.randn(8192, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def judged(dtype: DType, got: torch.Tensor, reference: torch.Tensor, own: torch.Tensor | None = None) -> OutputError:
    spec = TensorSpec("y", dtype, tuple(reference.shape))
    kind = TORCH[dtype]
    mine = reference.float().to(kind) if own is None else own
    return compare(spec, got.to(kind), reference, mine, Tolerances())


@pytest.mark.parametrize("dtype", TYPES)
def test_every_number_lies_between_what_rounds_up_and_what_rounds_down(dtype: DType) -> None:
    codes = torch.arange(256, dtype=torch.uint8).view(TORCH[dtype])
    finite = sorted({float(v) for v in codes.float() if math.isfinite(v)})
    for low, high in pairwise(finite):
        middle = (low + high) / 2
        at = torch.tensor([low, high], dtype=torch.float64).to(TORCH[dtype])
        for reference in (0.75 * low + 0.25 * high, middle, 0.25 * low + 0.75 * high):
            wanted = torch.full((2,), reference, dtype=torch.float64)
            nearest = unrounded(at, wanted)
            allowed = [min(reference, middle), max(reference, middle)]
            torch.testing.assert_close(nearest, torch.tensor(allowed, dtype=torch.float64), rtol=1e-15, atol=0)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("off", "ok"), [(1.0, True), (1 + 1e-6, True), (1 + 2**-9, True), (1.02, False), (1.05, False), (0.95, False)]
)
@pytest.mark.parametrize("scale", [1.0, 2.0**-8, 40.0])
def test_what_was_rounded_must_be_right_within_bfloat16_s_limits(
    dtype: DType, off: float, ok: bool, scale: float
) -> None:
    reference = (NORMAL * scale).clamp(-400, 400)
    assert judged(dtype, (reference * off).float(), reference).ok is ok


def test_limits_grow_with_what_pytorch_lost_before_it_rounded() -> None:
    coarse = (NORMAL * (1 + 0.03 * NORMAL.sin())).float()
    own = (NORMAL * (1 + 0.03 * NORMAL.cos())).float().to(torch.float8_e4m3fn)
    assert not judged(DType.F8E4M3, coarse, NORMAL).ok
    assert judged(DType.F8E4M3, coarse, NORMAL, own).ok


@pytest.mark.parametrize(
    ("dtype", "reference", "got", "ok"),
    [
        (DType.F8E4M3, 1e4, 448.0, True),  # cvt.satfinite
        (DType.F8E4M3, 1e4, math.nan, True),  # PyTorch's cast
        (DType.F8E4M3, 1e4, -448.0, False),
        (DType.F8E4M3, 1e4, 416.0, False),
        (DType.F8E4M3, math.inf, 448.0, True),
        (DType.F8E4M3, -math.inf, math.nan, True),
        (DType.F8E4M3, -math.inf, 448.0, False),
        (DType.F8E4M3, math.nan, math.nan, True),
        (DType.F8E4M3, math.nan, 448.0, False),
        (DType.F8E4M3, 455.0, 448.0, True),
        (DType.F8E4M3, 455.0, math.nan, False),
        (DType.F8E4M3, 300.0, math.nan, False),
        (DType.F8E4M3, 300.0, 448.0, False),
        (DType.F8E4M3, 0.0, -0.0, True),
        (DType.F8E4M3, 2.0**-10, 0.0, True),  # half of the smallest
        (DType.F8E5M2, 1e6, math.inf, True),
        (DType.F8E5M2, 1e6, 57344.0, True),
        (DType.F8E5M2, 1e6, math.nan, False),
        (DType.F8E5M2, 1e6, -math.inf, False),
        (DType.F8E5M2, -math.inf, -math.inf, True),
        (DType.F8E5M2, math.nan, math.inf, False),
        (DType.F8E5M2, 3e4, math.inf, False),
    ],
)
def test_what_is_not_finite_or_beyond_the_largest(dtype: DType, reference: float, got: float, ok: bool) -> None:
    wanted, mine = NORMAL.clone(), NORMAL.float()
    wanted[7], mine[7] = reference, got
    assert judged(dtype, mine, wanted).ok is ok


def test_an_element_that_is_the_poison_by_chance_is_not_called_unwritten() -> None:
    spec = TensorSpec("y", DType.F8E4M3, (8192,))
    error = judged(DType.F8E4M3, (NORMAL * 2).float(), NORMAL)
    assert diagnose(error, 3, Workload("main", (), (spec,)), 0)[0] is Verdict.WRONG_RESULT


@pytest.mark.parametrize(
    ("right", "wrong", "verdict"),
    [
        ("if first + i < n:\n       ", "if 0 < first + i < n:\n       ", Verdict.UNWRITTEN_OUTPUT),
        ("/ scale", "/ (scale * cutlass.Float32(1.02))", Verdict.WRONG_RESULT),
        ("cutlass.Float32(1e-10)", "cutlass.Float32(1e-3)", Verdict.WRONG_RESULT),
    ],
)
def test_a_kernel_whose_8_bit_result_is_wrong(compiler: Compiler, right: str, wrong: str, verdict: Verdict) -> None:
    kernel = honest("quantize_fp8")
    assert right in kernel.source
    source = kernel.source.replace(right, wrong)
    outcome, _ = answered(compiler, read_text(kernel.problem, name="quantize_fp8"), source)
    assert outcome.verdict is verdict, outcome.reason
