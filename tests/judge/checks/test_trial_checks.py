"""A trial's checks: the worst error, and a draw's kind without its numbers."""

from __future__ import annotations

import pytest

from cutegen_lab.core.trial import CheckResult, OutputError, WorkloadCheck
from cutegen_lab.core.verdict import Verdict


@pytest.mark.parametrize(
    ("distribution", "kind"),
    [("normal", "normal"), ("around -3.25", "around"), ("around 1e-05", "around"), ("full integers", "full integers"),
     ("normal 7", "normal"), ("bits, emulator", "bits, emulator")],
)  # fmt: skip
def test_a_kind_has_no_numbers(distribution: str, kind: str) -> None:
    assert WorkloadCheck("main", distribution, 1, Verdict.PASSED).kind == kind


def test_any_error_is_the_worst_where_none_is_allowed() -> None:
    def error(norm: float, limit: float) -> OutputError:
        return OutputError("out", norm, norm, 0.0, 0.0, limit, limit)

    def worst(*errors: OutputError) -> OutputError | None:
        return CheckResult(Verdict.PASSED, "", (WorkloadCheck("w", "bits", 1, Verdict.PASSED, "", errors),)).worst()

    half, exact, wrong = error(0.05, 0.1), error(0.0, 0.0), error(1e-9, 0.0)
    assert worst() is None
    assert worst(exact, half) is half
    assert worst(half, wrong, exact) is wrong
    loose, failed = error(2.9, 3.0), error(9.0, 3.0)
    assert worst(half, loose) is half  # nearer to its limit, which sums that cancel have raised above the answer itself
    assert worst(half, failed) is failed
    assert worst(loose) is loose
