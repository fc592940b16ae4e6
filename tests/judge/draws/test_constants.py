"""Numbers that a reference or a kernel names are drawn: sentinels, thresholds, magic numbers."""

from __future__ import annotations

import pytest
import torch

from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.judge.draws.constants import Constants, constants_in_ptx, constants_in_reference, draw_constants
from tests.judge.honest import Function
from tests.judge.test_formulas import judged

ROWS = "x: f32[40,96]"
PTX = """
  setp.eq.f32 %p1, %f1, 0f3F490FDB;
  fma.rn.f64 %fd1, %fd2, 0d40091EB851EB851F, %fd3;
  setp.eq.s32 %p2, %r1, 123456;
  mov.b32 %r2, 1078530011;
  setp.eq.u32 %p3, %r4, 0x42F6E979;
  ld.global.b32 %r3, [%rd1+4096];
"""


def test_constants_are_found_in_ptx() -> None:
    found = constants_in_ptx(PTX)
    pi = pytest.approx(3.14159274, rel=1e-7)
    assert pytest.approx(0.785398185, rel=1e-7) in found and 3.14 in found and 123456.0 in found and pi in found
    assert pytest.approx(123.456, rel=1e-6) in found, "an integer in hexadecimal, whose bits are a number's"
    assert 4096.0 not in found, "an offset is nothing that a kernel compares with"


def test_constants_are_found_in_a_reference() -> None:
    x = torch.randn(8)
    found = constants_in_reference(
        lambda: torch.where(x == -999.0, torch.tensor([2.5, 7.0]).sum(), x.clamp(max=5.3125))
    )
    assert {-999.0, 2.5, 7.0, 5.3125} <= {*found}


@pytest.mark.parametrize("text", ["x: f32[5,61]", "x: bf16[5,61]", "x: f16[300]", "x: i32[5,61]", "x: i8[300]"])
def test_they_stand_among_others_and_within_the_type(text: str) -> None:
    spec = TensorSpec.parse(text)
    generator = torch.Generator().manual_seed(1)
    named = Constants((-999.0, 12.0, 5.3125), tuple(map(float, range(2, 4000))))
    values = draw_constants(spec, named, generator, most=100)
    assert values is not None and tuple(values.shape) == spec.shape
    assert bool(values.double().isfinite().all())
    assert bool((values == 12).any()) and len(values.unique()) > 4


def test_indices_stay_indices() -> None:
    spec = TensorSpec.parse("x: i64[40,8]")
    spec = TensorSpec(spec.name, spec.dtype, spec.shape, below=50)
    values = draw_constants(spec, Constants((7.0, 49.0, 50.0, -1.0)), torch.Generator().manual_seed(2), most=1 << 20)
    assert values is not None and int(values.min()) >= 0 and int(values.max()) == 49


def test_a_kernel_s_many_constants_hide_no_reference_s() -> None:
    spec, generator = TensorSpec.parse(ROWS), torch.Generator().manual_seed(3)
    values = draw_constants(spec, Constants((-999.0,), tuple(float(n) for n in range(500, 90_000))), generator, most=0)
    assert values is not None and bool((values == -999.0).any())


@pytest.mark.parametrize(
    ("expression", "inputs", "wrong", "right"),
    [
        ("torch.where(x == -999.0, 0.0, x)", ROWS, lambda x: x.clone(), lambda x: torch.where(x == -999.0, 0.0, x)),
        ("torch.where(x > 5.3125, x, 0.0)", ROWS, lambda x: torch.where(x >= 5.3125, x, 0.0),
         lambda x: torch.where(x > 5.3125, x, 0.0)),
        ("(x != 50256).sum(-1)", "x: i64[40,96]", lambda x: torch.full(x.shape[:1], x.shape[1]),
         lambda x: (x != 50256).sum(-1)),
    ],
)  # fmt: skip
def test_sentinels_and_thresholds_are_drawn(
    expression: str, inputs: str, wrong: Function, right: Function, seeds: range
) -> None:
    for seed in seeds:
        assert judged(expression, inputs, wrong, seed).verdict is Verdict.WRONG_RESULT, f"seed {seed}"
        result = judged(expression, inputs, right, seed)
        assert result.verdict is Verdict.PASSED, f"seed {seed}: {result.reason}"
