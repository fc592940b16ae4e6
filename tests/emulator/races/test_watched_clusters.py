"""Runs too large for a full search for races: a few clusters of each launch are watched."""
# ruff: noqa: E501 - tables of kernels

from __future__ import annotations

import threading

import numpy as np
import pytest

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.devices.emulator import EmulatorDevice
from cutegen_lab.emulator import Options, Order
from cutegen_lab.emulator.options import RACES_BYTES
from tests.emulator.planted import line_of, ptx_lines, variant
from tests.emulator.ptx_kernel import build, kernel, run

GRID = 600
START = """
  mov.u32 %r3, s; mov.u32 %r4, %tid.x; shl.b32 %r5, %r4, 2; add.s32 %r5, %r3, %r5; xor.b32 %r6, %r4, 32;
  shl.b32 %r7, %r6, 2; add.s32 %r7, %r3, %r7; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd1, %rd3;
  xor.b32 %r8, %r1, 32; mul.wide.u32 %rd4, %r8, 4; add.s64 %rd4, %rd1, %rd4;
  xor.b32 %r8, %r1, 64; mul.wide.u32 %rd5, %r8, 4; add.s64 %rd5, %rd1, %rd5; setp.ne.u32 %p1, %r4, 0;
"""
PLANTED = {
    "shared memory": "st.shared.b32 [%r5], %r4;  // EARLIER\n <bar.sync 0;> ld.shared.b32 %r9, [%r7];  // FAULT\n",
    "global memory of a block": "st.global.b32 [%rd3], %r4;  // EARLIER\n <bar.sync 0;> ld.global.b32 %r9, [%rd4];  // FAULT\n",
    "of its neighbour": "st.global.b32 [%rd3], %r4;  // EARLIER\n <bra END;> ld.global.b32 %r9, [%rd5];  // FAULT\n",
}  # fmt: skip


def fault_in(ptx: str, options: Options, tensor_bytes: int = RACES_BYTES * 2) -> Fault | None:
    tensor = np.zeros(tensor_bytes // 4, np.uint32)
    ran = run(ptx, [tensor], block=(64, 1, 1), grid=(GRID, 1, 1), inputs=0, lines=ptx_lines(ptx), options=options)
    return ran.execution.fault


def text(name: str, fixed: bool) -> str:
    return kernel(START + variant(PLANTED[name], fixed) + "\nEND: ret;", 1, ".shared .align 16 .b8 s[256];")


@pytest.mark.parametrize("sample", [None, 64])
@pytest.mark.parametrize("name", PLANTED)
def test_a_race_is_found_in_a_large_run(name: str, sample: int | None) -> None:
    ptx = text(name, fixed=False)
    for seed in (0, 5):
        options = Options(shadow=False, sample_blocks=sample, order=Order(clock=77 + seed), watched=4)
        fault = fault_in(ptx, options)
        if name != "of its neighbour" or sample is None:  # a sample's blocks lie far apart
            assert fault is not None and fault.verdict is Verdict.NON_DETERMINISTIC and "a race" in fault.message, fault
            assert fault.line == line_of(ptx, "FAULT") and f"(line {line_of(ptx, 'EARLIER')}, " in fault.message
        assert fault_in(text(name, fixed=True), options) is None


RARE = "mov.u32 %r10, %ctaid.x; setp.{compare}.u32 %p2, %r10, 413; @%p2 bra {label};"


@pytest.mark.parametrize(("compare", "label"), [("ne", "END"), ("eq", "RACE")], ids=["goes on", "jumps"])
def test_a_race_is_found_behind_a_branch_that_one_cluster_takes(compare: str, label: str) -> None:
    """Wherever it is: the clusters that were drawn do not take it."""
    rare = RARE.format(compare=compare, label=label) + (" bra END; RACE:" if label == "RACE" else "")
    for fixed in (False, True):
        ptx = text("shared memory", fixed).replace("st.shared", rare + "\n st.shared", 1)
        for clock in (0, 77, 1 << 40):
            for lanes in (64, 8192):
                options = Options(shadow=False, lanes=lanes, order=Order(clock=clock), watched=1)
                fault = fault_in(ptx, options)
                assert (fault is None) == fixed, fault
                if fault is not None:
                    assert fault.block == (413, 0, 0) and fault.line == line_of(ptx, "FAULT")


def test_a_cluster_that_is_looked_at_again_leaves_no_trace() -> None:
    """It prints once, counts once and adds once to what it finds."""
    adds = kernel(
        "mov.u32 %r4, %ctaid.x; setp.ne.u32 %p2, %r4, 413; @%p2 bra END; mul.wide.u32 %rd3, %r1, 4; "
        "add.s64 %rd3, %rd1, %rd3; ld.global.b32 %r9, [%rd3]; add.u32 %r9, %r9, 1; st.global.b32 [%rd3], %r9;\n"
        "END: ret;", 1,
    )  # fmt: skip
    tensor, counted = np.zeros(RACES_BYTES, np.uint32), []
    for number, watched in enumerate((0, 1), 1):
        options = Options(order=Order(clock=77), watched=watched)
        ran = run(adds, [tensor], block=(64, 1, 1), grid=(GRID, 1, 1), options=options)
        assert ran.execution.fault is None
        assert (tensor[413 * 64 : 414 * 64] == number).all() and tensor.sum() == 64 * number
        counted.append(ran.execution.counters)
    assert counted[0] == counted[1]


def test_every_block_runs_once() -> None:
    adds = kernel("mov.u32 %r4, %ctaid.x; mul.wide.u32 %rd3, %r4, 4; add.s64 %rd3, %rd1, %rd3; "
                  "red.global.add.u32 [%rd3], 1; ret;", 1)  # fmt: skip
    for lanes in (64, 8192):
        tensor = np.zeros(RACES_BYTES, np.uint32)
        options = Options(shadow=False, lanes=lanes, order=Order(seed=3, clock=99), watched=4)
        assert run(adds, [tensor], block=(64, 1, 1), grid=(GRID, 1, 1), options=options).execution.fault is None
        assert (tensor[:GRID] == 64).all() and not tensor[GRID:].any()


def test_blocks_that_may_wait_for_each_other_stay_together() -> None:
    """The first to come waits for the last."""
    waits = """
  mov.u32 %r4, %ctaid.x; setp.eq.u32 %p1, %r4, 5; @%p1 st.release.gpu.global.b32 [%rd1], 1;
SPIN:
  ld.acquire.gpu.global.b32 %r9, [%rd1]; setp.ne.u32 %p2, %r9, 1; @%p2 bra SPIN; ret;"""
    tensor = np.zeros(RACES_BYTES, np.uint32)
    options = Options(shadow=False, watched=4, budget=20_000)
    assert run(kernel(waits, 1), [tensor], block=(32, 1, 1), grid=(8, 1, 1), options=options).execution.fault is None


HANDS_ON = """
  mov.u32 %r3, %ctaid.x; mov.u32 %r4, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd1, %rd3; setp.ne.u32 %p1, %r4, 0;
  mul.wide.u32 %rd4, %r3, 4; add.s64 %rd4, %rd2, %rd4;
  st.global.b32 [%rd3], %r1;  // EARLIER
  bar.sync 0; @%p1 bra TOLD; st.release.gpu.global.b32 [%rd4+4], 1;
TOLD:
  setp.eq.u32 %p3, %r3, 0; @%p3 bra END; @%p1 bra MET;
SPIN:
  ld.{look}.gpu.global.b32 %r9, [%rd4]; setp.ne.u32 %p2, %r9, 1; @%p2 bra SPIN;
MET:
  bar.sync 0; ld.global.b32 %r9, [%rd3+-256];  // FAULT
END:
  ret;
"""


@pytest.mark.parametrize("grid", [100, GRID])
def test_blocks_that_wait_for_each_other_are_watched_together(grid: int) -> None:
    """Each block reads what the block before it wrote. Where tensors are large, one of four chunks or more is watched."""
    for look, lanes, tensor_bytes, found in (
        ("relaxed", 1024, RACES_BYTES * 2, True), ("relaxed", 1024, RACES_BYTES * 8, True),
        ("relaxed", 1 << 16, RACES_BYTES * 8, False), ("acquire", 1024, RACES_BYTES * 2, False),
    ):  # fmt: skip
        ptx = kernel(HANDS_ON.format(look=look), 2)
        tensors = [np.zeros(tensor_bytes // 4, np.uint32), np.zeros(GRID + 1, np.uint32)]
        options = Options(shadow=False, watched=4, order=Order(clock=77), lanes=lanes)
        fault = run(ptx, tensors, block=(64, 1, 1), grid=(grid, 1, 1), inputs=0, lines=ptx_lines(ptx), options=options)
        assert (fault.execution.fault is not None) == found, (look, lanes, fault.execution.fault)
        if found:
            assert fault.execution.fault is not None and fault.execution.fault.line == line_of(ptx, "FAULT")


def test_no_cluster_is_watched_unless_asked() -> None:
    assert fault_in(text("shared memory", fixed=False), Options(shadow=False)) is None
    assert fault_in(text("shared memory", fixed=False), Options(shadow=False, races=False, watched=4)) is None


def test_the_first_runs_of_a_build_are_watched() -> None:
    """On the device: of the whole plan, and of a sample. A workload that runs twice on its first draw has four runs
    with its two mixed draws."""
    tensor = np.zeros(RACES_BYTES // 2, np.uint32)
    made = build(text("shared memory", fixed=False), [tensor], block=(64, 1, 1), grid=(GRID, 1, 1))
    specs, views = [TensorSpec("y", DType.U8, (tensor.nbytes,))], [memoryview(tensor.view(np.uint8))]
    for run_once in (
        lambda device: device.execute(made, specs, views, threading.Event()),
        lambda device: device.sample(made, specs, views, threading.Event(), 0.2),
    ):
        device = EmulatorDevice(Options(shadow=False))
        *first, last = (run_once(device).fault for _ in range(5))
        assert [fault and fault.verdict for fault in first] == [Verdict.NON_DETERMINISTIC] * 4 and last is None
