"""Warps in a random order: results that only lockstep makes right are found, correct kernels stay correct."""

from __future__ import annotations

import numpy as np
import pytest

from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.emulator import Options, Order
from tests.emulator.ptx_kernel import kernel, run

# Warp 1 reads a flag that warp 0 sets: strong operations, so no race, but nothing waits. Lockstep always reads it set.
FLAG = """
  mov.b32 %r10, flag; setp.ne.s32 %p1, %r1, 0; @%p1 bra MADE;
  st.volatile.shared.b32 [%r10], 0;
MADE:
  bar.sync 0; setp.ge.s32 %p1, %r1, 32; @%p1 bra READS;
  st.volatile.shared.b32 [%r10], 7;
READS:
  ld.volatile.shared.b32 %r11, [%r10]; shl.b32 %r12, %r1, 2; cvt.u64.u32 %rd10, %r12; add.s64 %rd10, %rd1, %rd10;
  st.global.b32 [%rd10], %r11; ret;
"""
WAITS = FLAG.replace("READS:", "READS: bar.sync 0;")
SPINS = FLAG.replace(" shl.b32", " setp.ne.s32 %p2, %r11, 7; @%p2 bra READS; shl.b32")


def answers(body: str) -> set[bytes]:
    found = set()
    for seed in range(12):
        out = np.zeros(128, np.uint32)
        options = Options(order=Order(warps=seed), races=True)
        ran = run(kernel(body, 1, ".shared .b32 flag;"), [out], block=(128, 1, 1), options=options)
        assert ran.execution.fault is None, ran.execution.fault
        found.add(out.tobytes())
    return found


def test_an_answer_that_depends_on_the_order_of_warps_is_seen() -> None:
    assert len(answers(FLAG)) > 1


@pytest.mark.parametrize("body", [WAITS, SPINS])
def test_one_that_waits_has_one_answer(body: str) -> None:
    assert answers(body) == {np.full(128, 7, np.uint32).tobytes()}


def test_without_a_search_for_races_warps_go_in_lockstep() -> None:
    out = np.zeros(128, np.uint32)
    for seed in range(6):
        run(kernel(FLAG, 1, ".shared .b32 flag;"), [out], block=(128, 1, 1),
            options=Options(order=Order(warps=seed), races=False))  # fmt: skip
        assert (out == 7).all()


def test_the_opposite_order_parts_warps() -> None:
    assert Order(clock=5).opposite().warps and not Order(clock=5).opposite().opposite().warps


ACTIVE = """
  activemask.b32 %r5; mov.u32 %r6, %laneid; brev.b32 %r7, %r5; clz.b32 %r8, %r7; setp.eq.u32 %p1, %r6, %r8;
  popc.b32 %r9, %r5;
  {}
"""
"""%p1: the lowest lane of the mask, %r9: how many lanes it has."""


def active(body: str, seed: int) -> tuple[list[int], Fault | None]:
    out = np.zeros(4, np.uint32)
    options = Options(races=True, shadow=False, order=Order(warps=seed))
    ran = run(kernel(ACTIVE.format(body) + "  ret;", 1), [out], inputs=0, block=(32, 1, 1), options=options)
    return out.tolist(), ran.execution.fault


@pytest.mark.parametrize("seed", [0, 1, 5, 1 << 61])
def test_lanes_that_are_active_are_no_more_than_that(seed: int) -> None:
    """A sum by the leaders of what is active is right whoever that is; a shuffle from lane 0 needs lane 0."""
    assert active("@%p1 red.global.add.u32 [%rd1], %r9;", seed) == ([32, 0, 0, 0], None)
    counted, fault = active("@%p1 st.global.b32 [%rd1], %r9;", seed)
    assert (counted[0] == 32) == (seed == 0) or fault is not None
    _, fault = active("shfl.sync.idx.b32 %r10, %r6, 0, 31, %r5; st.global.b32 [%rd1], 1;", seed)
    assert (fault is None) == (seed == 0)
    assert fault is None or (fault.verdict is Verdict.BARRIER_DIVERGENCE and "does not take part" in fault.message)


THREE_READERS = """
  mov.u32 %r3, tile; mov.u32 %r4, bar; mov.u32 %r5, %tid.x; and.b32 %r6, %r5, 31; setp.eq.u32 %p1, %r6, 0;
  shr.u32 %r7, %r5, 5; setp.eq.u32 %p2, %r5, 0; @%p2 mbarrier.init.shared.b64 [%r4], {count};
  @%p2 st.shared.b32 [%r3], 1;
  bar.sync 0; setp.eq.u32 %p2, %r7, 0; @%p2 bra WRITES; setp.eq.u32 %p2, %r7, 1; @%p2 bra FIRST; mov.u32 %r8, 0;
LATER:
  add.s32 %r8, %r8, 1; setp.lt.u32 %p3, %r8, 2000; @%p3 bra LATER;
  ld.shared.b32 %r9, [%r3]; bar.warp.sync 0xffffffff; @%p1 mbarrier.arrive.shared.b64 %rd9, [%r4]; ret;
FIRST:
  ld.shared.b32 %r9, [%r3]; bar.warp.sync 0xffffffff; {arrive} ret;
WRITES:
  mbarrier.try_wait.parity.shared.b64 %p4, [%r4], 0; @!%p4 bra WRITES; @%p1 st.shared.b32 [%r3], 7; ret;
"""


def read_by_three(seed: int, **parts: object) -> Fault | None:
    ptx = kernel(THREE_READERS.format(**parts), 1, ".shared .align 8 .b8 tile[8]; .shared .align 8 .b8 bar[8];")
    options = Options(races=True, shadow=False, order=Order(warps=seed))
    return run(ptx, [np.zeros(4, np.uint32)], block=(128, 1, 1), options=options).execution.fault


def test_the_first_of_three_readers_is_remembered_in_one_of_two_runs() -> None:
    """Warp 1 reads long before warps 2 and 3, and tells nobody."""
    found = [read_by_three(seed, count=2, arrive="") for seed in range(1, 6)]
    assert sum(fault is not None and "(32, 0, 0) read" in fault.message for fault in found) >= 3
    arrives = "@%p1 mbarrier.arrive.shared.b64 %rd9, [%r4];"
    assert all(read_by_three(seed, count=3, arrive=arrives) is None for seed in range(6))
