"""A plan that would run for ever or take all memory ends soon, with a verdict that says so."""

from __future__ import annotations

import itertools
import threading
import time
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.devices.emulator import EmulatorDevice
from cutegen_lab.emulator import Options
from tests.emulator.ptx_kernel import build, kernel, run

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


COUNTS = """
  mov.u32 %r4, %ctaid.x; mov.u32 %r5, 0; setp.ne.u32 %p1, %r4, 1; @%p1 bra DONE;
LOOP: add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, LIMIT; @%p2 bra LOOP;
DONE: mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd1, %rd3; st.global.b32 [%rd3], %r5; ret;
"""


def counting(turns: int, options: Options) -> Fault | None:
    """Three blocks of 32 threads, one after another, of which the second takes 3 instructions a turn."""
    ptx = kernel(COUNTS.replace("LIMIT", str(turns)), 1)
    options = replace(options, lanes=32, races=False)
    return run(ptx, [np.zeros(96, np.uint32)], options=options, block=(32, 1, 1), grid=(3, 1, 1)).execution.fault


def test_a_long_loop_is_no_hang_however_slow_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(0.0, 1_000.0)
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    assert counting(20_000, Options()) is None


def test_an_endless_loop_says_how_far_it_came() -> None:
    fault = counting(1 << 31, Options(budget=10_000))
    assert fault is not None and fault.verdict is Verdict.HANG and fault.instruction
    most = 10_000 + 64 * 96 * 4 // 96
    for words in (
        f"block (1, 0, 0) has not ended after {most + 1:,} instructions",
        "1 of 3 blocks have",
        f"is {most:,}",
    ):
        assert words in fault.message, fault.message


def test_what_may_be_executed_follows_from_the_work() -> None:
    """20,000 turns are too many for nothing, and not for as many FLOPs a thread."""
    assert counting(20_000, Options(budget=10_000)) is not None
    assert counting(20_000, Options(budget=10_000, flops=96 * 20_000)) is None


def test_a_device_goes_by_the_work_it_is_told_of() -> None:
    out, options = np.zeros(96, np.uint32), Options(budget=10_000, lanes=32, races=False)
    made = build(kernel(COUNTS.replace("LIMIT", "20000"), 1), [out], block=(32, 1, 1), grid=(3, 1, 1))
    given = made, [TensorSpec.parse("t: u8[384]")], [memoryview(out.view(np.uint8))], threading.Event()
    assert EmulatorDevice(options).execute(*given).fault is not None
    assert EmulatorDevice(options).execute(*given, flops=96 * 20_000).fault is None


def test_a_failed_allocation_is_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise MemoryError("Unable to allocate 9 TiB")

    monkeypatch.setattr("cutegen_lab.emulator.run.CtaBatch", full)
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


@pytest.mark.slow
def test_large_local_memory_is_given_back_block_by_block() -> None:
    """A block of 128 threads with 512 KB each takes 64 MB: four of twenty are there at once, and the four before."""
    local = kernel("  ret;", 1, declarations=".local .align 4 .b8 l[524288];")
    tracemalloc.start()
    try:
        assert fault_of(local, block=(128, 1, 1), grid=(20, 1, 1)) is None
        assert tracemalloc.get_traced_memory()[1] < 1 << 30
    finally:
        tracemalloc.stop()
