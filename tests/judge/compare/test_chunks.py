"""Large outputs are compared in chunks that fit a cache: where these end changes no error and no limit."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch

from cutegen_lab.core.problem import TensorSpec, Tolerances
from cutegen_lab.core.trial import OutputError
from cutegen_lab.judge.compare import distances
from cutegen_lab.judge.compare.allowance import Allowance
from cutegen_lab.judge.compare.correctness import compare

ROWS, COLUMNS = 32, 12
SPEC = TensorSpec.parse(f"y: bf16[{ROWS},{COLUMNS}]")
ALLOWANCES = {
    "by slice": Allowance(by_slice=1e-9),
    "lossy, by slice": Allowance(torch_lossy=True, by_slice=1e-9),
    "relative": Allowance(relative=True),
    "mean": Allowance(bias=True),
    "mean, unbiased": Allowance(bias=True, unbiased=True),
}
FAULTS = {"none": (), "one row": (slice(7, 8), slice(None)), "one column": (slice(None), slice(9, 10)), "all": (...,)}


def errors(fault: str, factor: float, ends: bool, allowance: Allowance) -> OutputError:
    g = torch.Generator().manual_seed(3)
    exact = torch.randn(ROWS, COLUMNS, generator=g, dtype=torch.float64).exp()
    exact[:, 9] *= 1e-3
    if ends:
        exact[5, 3], exact[20, 11], exact[31, 11] = math.nan, math.inf, -math.inf
    own, got = exact.bfloat16(), exact.clone()
    if ends:
        own[9, 9] = math.inf  # where PyTorch overflows and the reference does not
    if FAULTS[fault]:
        got[FAULTS[fault]] *= factor
    samples = [exact * (1 + 1e-7 * torch.randn(exact.shape, generator=g)) for _ in range(2)]
    return compare(SPEC, got.bfloat16(), exact, own, Tolerances(), 64, allowance, samples)


@pytest.mark.parametrize("ends", [False, True], ids=["finite", "not finite"])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("limits", ALLOWANCES)
def test_where_a_chunk_ends_changes_nothing(
    limits: str, fault: str, ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = errors(fault, 1.004, ends, ALLOWANCES[limits])
    for chunk in (1, 3 * COLUMNS, 100):
        monkeypatch.setattr(distances, "_CHUNK", chunk)
        parts = errors(fault, 1.004, ends, ALLOWANCES[limits])
        for field in dataclasses.fields(OutputError):
            one, other = getattr(whole, field.name), getattr(parts, field.name)
            assert one == (pytest.approx(other, rel=1e-9, nan_ok=True) if isinstance(one, float) else other), field.name


@pytest.mark.parametrize(("limits", "fault"), [("by slice", "one column"), ("by slice", "one row"), ("mean", "all")])
def test_every_chunk_counts(limits: str, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of 3% in one slice, or of 0.4% everywhere, is found in whichever chunk it lies."""
    monkeypatch.setattr(distances, "_CHUNK", 3 * COLUMNS)
    found = errors(fault, 1.004 if fault == "all" else 1.03, False, ALLOWANCES[limits])
    assert not found.ok
    if fault != "all":
        assert found.worst_index[0 if fault == "one row" else 1] == (7 if fault == "one row" else 9)
