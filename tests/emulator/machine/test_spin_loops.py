"""Loops that poll memory until another thread has written: the thread that they wait for makes progress, wherever it is
in the text (CUDA C++ Programming Guide, "Independent Thread Scheduling")."""

from __future__ import annotations

import numpy as np
import pytest

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator import Options, Order
from tests.emulator.ptx_kernel import kernel, run

BLOCKS = 12
# Blocks take turns, as in a sum over k that they add up one after another: each waits for its number.
TURNSTILE = """
  mov.u32 %r3, %ctaid.x; mov.u32 %r4, %tid.x; setp.ne.u32 %p1, %r4, 0; @%p1 bra MET;
SPIN:
  {ask} setp.ne.u32 %p2, %r9, %r3; @%p2 bra SPIN;
MET:
  bar.sync 0; mul.wide.u32 %rd3, %r4, 4; add.s64 %rd3, %rd2, %rd3;
  ld.global.b32 %r10, [%rd3]; mad.lo.s32 %r10, %r10, 3, %r3; st.global.b32 [%rd3], %r10;
  bar.sync 0; @%p1 bra END; add.s32 %r11, %r3, 1; st.release.gpu.global.b32 [%rd1], %r11;
END:
  ret;
"""
ASKS = {
    "a load": "ld.acquire.gpu.global.b32 %r9, [%rd1];",
    "an atomic operation": "atom.acquire.gpu.global.add.u32 %r9, [%rd1], 0;",
    "a compare-and-swap": "atom.acquire.gpu.global.cas.b32 %r9, [%rd1], %r3, %r3;",
}


@pytest.mark.slow
@pytest.mark.parametrize("warps", [0, 5])
@pytest.mark.parametrize("races", [True, False])
@pytest.mark.parametrize("ask", ASKS)
def test_blocks_that_take_turns(ask: str, races: bool, warps: int) -> None:
    tensors = [np.zeros(1, np.uint32), np.zeros(64, np.uint32)]
    options = Options(races=races, shadow=False, order=Order(warps=warps), budget=30_000)
    ran = run(kernel(TURNSTILE.format(ask=ASKS[ask]), 2), tensors, block=(64, 1, 1), grid=(BLOCKS, 1, 1), options=options, inputs=0)  # fmt: skip  # noqa: E501
    assert ran.execution.fault is None, ran.execution.fault
    total = 0
    for block in range(BLOCKS):
        total = (total * 3 + block) % (1 << 32)
    assert (tensors[1] == total).all()


# Three warps: one waits above, one reads memory for a while and then writes, one waits below.
BETWEEN = """
  mov.u32 %r4, %tid.x; mov.u32 %r5, 0; setp.ge.u32 %p1, %r4, 64; @%p1 bra BELOW;
  setp.ge.u32 %p1, %r4, 32; @%p1 bra READS;
ABOVE:
  ld.acquire.gpu.global.b32 %r9, [%rd1]; setp.ne.u32 %p2, %r9, 7; @%p2 bra ABOVE; ret;
READS:
  ld.acquire.gpu.global.b32 %r9, [%rd1+128]; add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, {reads}; @%p2 bra READS;
  setp.ne.u32 %p2, %r4, 32; @%p2 bra END; st.release.gpu.global.b32 [%rd1], 7;
END:
  ret;
BELOW:
  ld.acquire.gpu.global.b32 %r9, [%rd1]; setp.ne.u32 %p2, %r9, 7; @%p2 bra BELOW; ret;
"""


@pytest.mark.parametrize("reads", [1, 33, 100])
def test_who_rests_goes_on_where_those_that_are_left_ask_too(reads: int) -> None:
    for warps in range(4):
        flag = np.zeros(64, np.uint32)
        options = Options(races=True, shadow=False, order=Order(warps=warps), budget=20_000)
        ran = run(kernel(BETWEEN.format(reads=reads), 1), [flag], block=(96, 1, 1), options=options, inputs=0)
        assert ran.execution.fault is None, (warps, ran.execution.fault)
        assert flag[0] == 7


# Warp 1 waits at a barrier that warp 2 opens; then warp 2 asks, below, for what warp 1 writes.
OPENED = """
  mov.u32 %r4, %tid.x; setp.ge.u32 %p1, %r4, 64; @%p1 bra OPENS; setp.ge.u32 %p1, %r4, 32; @%p1 bra WRITES;
ABOVE:
  ld.acquire.gpu.global.b32 %r9, [%rd1]; setp.ne.u32 %p2, %r9, 7; @%p2 bra ABOVE; ret;
WRITES:
  bar.sync 1, 64; setp.ne.u32 %p2, %r4, 32; @%p2 bra END; st.release.gpu.global.b32 [%rd1], 7;
END:
  ret;
OPENS:
  bar.arrive 1, 64;
BELOW:
  ld.acquire.gpu.global.b32 %r9, [%rd1]; setp.ne.u32 %p2, %r9, 7; @%p2 bra BELOW; ret;
"""


def test_a_barrier_that_is_open_lets_go_on_who_is_waited_for() -> None:
    for warps in range(4):
        flag = np.zeros(1, np.uint32)
        options = Options(races=True, shadow=False, order=Order(warps=warps), budget=20_000)
        ran = run(kernel(OPENED, 1), [flag], block=(96, 1, 1), options=options, inputs=0)
        assert ran.execution.fault is None, (warps, ran.execution.fault)


def test_a_warp_waits_for_one_further_on_in_the_text() -> None:
    body = """
  mov.u32 %r3, flag; mov.u32 %r4, %tid.x; setp.lt.u32 %p1, %r4, 32; setp.eq.u32 %p3, %r4, 0;
  @%p3 st.volatile.shared.b32 [%r3], 0; bar.sync 0; @%p1 bra WRITES;
SPIN:
  ld.volatile.shared.b32 %r5, [%r3]; setp.eq.s32 %p2, %r5, 0; @%p2 bra SPIN;
  st.global.b32 [%rd1], %r5; ret;
WRITES:
  @%p3 st.volatile.shared.b32 [%r3], 7; ret;
"""
    out = np.zeros(1, np.uint32)
    ptx = kernel(body, 1, ".shared .align 8 .b8 flag[8];")
    assert run(ptx, [out], inputs=0, block=(64, 1, 1), options=Options(budget=3_000)).execution.fault is None
    assert out[0] == 7


def test_who_waits_for_nobody_still_hangs() -> None:
    spins = "SPIN: ld.acquire.gpu.global.b32 %r9, [%rd1]; setp.ne.u32 %p2, %r9, 1; @%p2 bra SPIN; ret;"
    fault = run(
        kernel(spins, 1), [np.zeros(1, np.uint32)], block=(64, 1, 1), options=Options(budget=3_000)
    ).execution.fault
    assert fault is not None and fault.verdict is Verdict.HANG
