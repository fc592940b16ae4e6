"""What is said of a wrong result is about the error that is over its limit."""

from __future__ import annotations

from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.core.trial import OutputError
from cutegen_lab.judge.checks.diagnosis import diagnose

WORKLOAD = Workload("main", (), (TensorSpec.parse("y: f16[4]"),))


def reason(norm: float, worst: float) -> str:
    error = OutputError(
        output="y", norm=norm, worst=worst, torch_norm=1e-4, torch_worst=2e-4, limit_norm=3e-4, limit_worst=6e-4,
        worst_index=(2,), got=1.0, expected=2.0,
    )  # fmt: skip
    return diagnose(error, 0, WORKLOAD, 0)[1]


def test_the_error_that_is_over_its_limit_is_named() -> None:
    assert reason(5e-4, 5e-4).startswith("error 5.00e-04 against float64 (limit 3.00e-04, PyTorch 1.00e-04)")
    one = reason(2e-4, 9e-4)
    assert one.startswith("error of one element 9.00e-04 against float64 (limit 6.00e-04, PyTorch 2.00e-04)")
    assert reason(float("nan"), 0.0).startswith("error nan against")
