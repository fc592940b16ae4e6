"""Launches that cannot run on the GPU end with a fault: grids that wait for blocks without room on an SM, setmaxnreg
without free registers, launches that differ from what the kernel was compiled for."""

from __future__ import annotations

import struct
import threading
from dataclasses import replace

import numpy as np
import pytest

from cutegen_lab.core.artifact import KernelInfo
from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.emulator import Options, run_plan
from tests.emulator.ptx_kernel import build, kernel

COOPERATIVE = 2
# Every block adds one and waits until all have.
MEET = """
  mov.u32 %r4, %tid.x; setp.ne.s32 %p1, %r4, 0; @%p1 bra DONE;
  mov.u32 %r5, %nctaid.x; atom.acq_rel.gpu.global.add.u32 %r6, [%rd1], 1;
WAIT: ld.acquire.gpu.global.u32 %r6, [%rd1]; setp.lt.u32 %p1, %r6, %r5; @%p1 bra WAIT;
DONE: ret;
"""
# Two warpgroups: the first gives back what the second takes.
TRADE = """
  mov.u32 %r4, %tid.x; setp.ge.u32 %p1, %r4, 128; @%p1 bra TAKES;
  setmaxnreg.dec.sync.aligned.u32 GIVEN; bra DONE;
TAKES: setmaxnreg.inc.sync.aligned.u32 TAKEN;
DONE: ret;
"""


def ran(ptx: str, registers: int, cubin: bytes = b"", **launch) -> Fault | None:  # type: ignore[no-untyped-def]
    tensors = [np.zeros(16, np.uint32)]
    made = build(ptx, tensors, **launch)
    kernels = (KernelInfo("k", registers, 0, 0, 0, 0, (8,)),)
    launches = tuple(replace(x, attributes={COOPERATIVE: b"\1\0\0\0"}) for x in made.plan.launches)
    made = replace(made, cubin=cubin, kernels=kernels, plan=replace(made.plan, launches=launches))
    specs = [TensorSpec("t", DType.U8, (64,))]
    views = [memoryview(t.view(np.uint8)) for t in tensors]
    options = Options(budget=5_000, races=False)
    return run_plan(made, specs, views, threading.Event(), options).execution.fault


@pytest.mark.parametrize(("blocks", "smem", "registers"), [(132, 200_000, 32), (200, 100_000, 32), (150, 0, 255)])
def test_blocks_that_all_have_room_may_wait_for_each_other(blocks: int, smem: int, registers: int) -> None:
    assert ran(kernel(MEET, 1), registers, block=(32, 1, 1), grid=(blocks, 1, 1), smem=smem) is None


@pytest.mark.parametrize(("blocks", "smem"), [(133, 200_000), (240, 120_000)])
def test_blocks_without_room_are_waited_for_in_vain(blocks: int, smem: int) -> None:
    fault = ran(kernel(MEET, 1), 32, block=(32, 1, 1), grid=(blocks, 1, 1), smem=smem)
    assert fault is not None and fault.verdict is Verdict.HANG
    assert "132 run on the GPU at a time" in fault.message


@pytest.mark.parametrize(("given", "taken", "at_launch"), [(40, 152, 96), (24, 168, 96), (96, 96, 96)])
def test_registers_change_hands(given: int, taken: int, at_launch: int) -> None:
    ptx = kernel(TRADE.replace("GIVEN", str(given)).replace("TAKEN", str(taken)), 1)
    assert ran(ptx, at_launch, block=(256, 1, 1), grid=(3, 1, 1)) is None


@pytest.mark.parametrize(
    ("given", "taken", "at_launch", "verdict", "said"),
    [
        (40, 160, 96, Verdict.DEADLOCK, "asks for 25,600 registers per block, which has 24,576"),
        (40, 240, 128, Verdict.DEADLOCK, "waits for ever"),
        (104, 240, 96, Verdict.LAUNCH_FAILURE, "to 104 registers per thread, which are more than the 96"),
        (40, 88, 96, Verdict.LAUNCH_FAILURE, "to 88 registers per thread, which are fewer than the 96"),
        (44, 88, 96, Verdict.UNSUPPORTED, "multiple of 8"),
    ],
)
def test_registers_nobody_has_are_waited_for_in_vain(
    given: int, taken: int, at_launch: int, verdict: Verdict, said: str
) -> None:
    ptx = kernel(TRADE.replace("GIVEN", str(given)).replace("TAKEN", str(taken)), 1)
    fault = ran(ptx, at_launch, block=(256, 1, 1), grid=(3, 1, 1))
    assert fault is not None and fault.verdict is verdict and said in fault.message


def test_registers_that_ptxas_does_not_move_are_nobodys_to_wait_for() -> None:
    ptx = kernel(TRADE.replace("GIVEN", "40").replace("TAKEN", "232"), 1)
    without, kept = (struct.pack("<4Q", 0x7918, 0, opcode, 0) for opcode in (0x948, 0x9C8))
    assert ran(ptx, 58, without, block=(256, 1, 1)) is None
    fault = ran(ptx, 58, kept, block=(256, 1, 1))
    assert fault is not None and fault.verdict is Verdict.DEADLOCK


@pytest.mark.parametrize("threads", [64, 16])
def test_a_warpgroup_changes_its_registers_as_a_whole(threads: int) -> None:
    body = f"setp.ge.u32 %p1, %r1, {threads}; @%p1 bra DONE; setmaxnreg.dec.sync.aligned.u32 40; DONE: ret;"
    fault = ran(kernel(body, 1), 96, block=(128, 1, 1))
    assert fault is not None and fault.verdict is Verdict.BARRIER_DIVERGENCE and "setmaxnreg" in fault.message


@pytest.mark.parametrize(
    ("directive", "launch", "said"),
    [
        (".reqntid 64, 1, 1", {}, "(64, 1, 1) (.reqntid)"),
        (".reqntid 16, 2", {}, "(16, 2, 1) (.reqntid)"),
        (".maxntid 16", {}, "at most 16 (.maxntid)"),
        (".reqntid 32 .reqnctapercluster 2", {}, "(2, 1, 1) (.reqnctapercluster)"),
        (".reqntid 32", {}, ""),
        (".maxntid 16, 4, 1", {}, ""),
        (".reqnctapercluster 2", {"grid": (2, 1, 1), "cluster": (2, 1, 1)}, ""),
    ],
)
def test_a_kernel_is_launched_as_it_was_compiled(directive: str, launch: dict[str, object], said: str) -> None:
    ptx = kernel("ret;", 1).replace("(.param .b64 p0)\n{", f"(.param .b64 p0)\n{directive}\n{{")
    assert directive in ptx
    fault = ran(ptx, 32, **{"block": (32, 1, 1), **launch})
    assert (fault is None) if not said else (fault is not None and fault.verdict is Verdict.INVALID_PLAN)
    assert fault is None or said in fault.message
