"""A plan that would run for ever or take all memory ends soon, with a verdict that says so."""

from __future__ import annotations

import time

import numpy as np
import pytest

from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.emulator import Options
from tests.emulator.machine import fixture, kernel, run

NOTHING = kernel("  ret;", 1)


def fault_of(ptx: str, options: Options | None = None, **launch: object) -> Fault | None:
    tensors = [np.zeros(64, np.uint32) for _ in range(2 if ptx is not NOTHING and "p1" in ptx else 1)]
    return run(ptx, tensors, options=options, **{"block": (32, 1, 1), **launch}).execution.fault


@pytest.mark.parametrize("grid", [(2**31 - 1, 1, 1), (2**31 - 1, 65_535, 65_535), (1, 65_535, 65_535)])
def test_a_grid_that_would_take_for_ever_is_refused_at_once(grid: tuple[int, int, int]) -> None:
    started = time.perf_counter()
    fault = fault_of(NOTHING, grid=grid)
    assert time.perf_counter() - started < 1
    assert fault is not None and fault.verdict is Verdict.HANG
    assert f"a grid of {grid[0] * grid[1] * grid[2]} blocks" in fault.message


def test_a_sample_of_it_runs() -> None:
    assert fault_of(NOTHING, Options(sample_blocks=64), grid=(2**31 - 1, 1, 1)) is None


def test_a_large_grid_runs() -> None:
    assert fault_of(NOTHING, grid=(100_000, 1, 1)) is None


def test_the_plan_has_a_budget_too() -> None:
    """Each launch alone is within it."""
    assert fault_of(NOTHING, Options(plan_budget=3_000), grid=(1_000, 1, 1), launches=5) is None
    fault = fault_of(NOTHING, Options(plan_budget=3_000), grid=(1_000, 1, 1), launches=20)
    assert fault is not None and fault.verdict is Verdict.HANG


def test_an_endless_loop_ends_by_the_clock() -> None:
    started = time.perf_counter()
    fault = fault_of(fixture("endless_loop.ptx"), Options(budget=1 << 60, plan_budget=1 << 60, seconds=0.2))
    assert 0.2 < time.perf_counter() - started < 5
    assert fault is not None and fault.verdict is Verdict.HANG and "the time is spent" in fault.message
    assert fault.instruction


def test_a_failed_allocation_is_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise MemoryError("Unable to allocate 9 TiB")

    monkeypatch.setattr("cutegen_lab.emulator.run.Chunk", full)
    fault = fault_of(NOTHING)
    assert fault is not None and fault.verdict is Verdict.OUT_OF_MEMORY and "9 TiB" in fault.message
    assert fault.kernel == "k"


def test_memory_is_counted_before_it_is_taken() -> None:
    local = kernel("  ret;", 1, declarations=".local .align 4 .b8 l[500000];")
    assert fault_of(local) is None
    fault = fault_of(local, block=(1024, 1, 1), grid=(4, 1, 1), cluster=(4, 1, 1))
    assert fault is not None and fault.verdict is Verdict.OUT_OF_MEMORY and "cluster of 4 blocks" in fault.message
    fault = fault_of(kernel("  ret;", 1, declarations=".local .align 4 .b8 l[600000];"))
    assert fault is not None and fault.verdict is Verdict.INVALID_PLAN and "local memory" in fault.message
    fault = fault_of(kernel("  ret;", 1, before=f".global .align 4 .b8 g[{1 << 40}];"))
    assert fault is not None and fault.verdict is Verdict.OUT_OF_MEMORY and "variable g" in fault.message
