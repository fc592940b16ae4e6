"""Lanes that come apart to an instruction of their whole warp wait for each other (PTX ISA 9.7.9.6 shfl.sync, 9.7.13.1
bar.sync and others): one of them may have waited for an mbarrier."""
# ruff: noqa: E501 - tables of kernels

from __future__ import annotations

import numpy as np
import pytest

from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.emulator import Options, Order
from tests.emulator.ptx_kernel import kernel, run

# 64 threads. %p1: the first lane of each warp, %p2: the first warp, %p3: the first thread, %p4: lanes below 16. %r4: the
# thread's 4 bytes of shared memory, %r6: those of the same lane of the other warp; %r8: an mbarrier for one arrival.
BEGIN = """
  mov.u32 %r1, %tid.x; and.b32 %r5, %r1, 31; setp.eq.u32 %p1, %r5, 0; setp.lt.u32 %p2, %r1, 32;
  setp.eq.u32 %p3, %r1, 0; setp.lt.u32 %p4, %r5, 16; mov.b32 %r2, tile; mov.b32 %r8, bar; shl.b32 %r4, %r1, 2; xor.b32 %r6, %r4, 128;
  add.s32 %r4, %r2, %r4; add.s32 %r6, %r2, %r6; mov.u32 %r11, 0xffffffff; and.b32 %r12, %r4, 0xfffffff0;
  @%p3 mbarrier.init.shared.b64 [%r8], 1; fence.mbarrier_init.release.cluster; bar.sync 0;
"""
WAIT = "A: mbarrier.try_wait.parity.shared.b64 %p9, [%r8], 0; @!%p9 bra A;\nAX:\n"
# The first warp stores and arrives; of the second one lane alone waits for that.
ONE_WAITS = f"@!%p2 bra W; st.shared.b32 [%r4], %r1; bar.warp.sync 0xffffffff; @%p1 mbarrier.arrive.shared.b64 %rd9, [%r8]; bra %s; W: @!%p1 bra AX; {WAIT}"
READ = "ld.shared.b32 %r9, [%r6];"
TOGETHER = {  # where the first warp goes on, and what the second one does then
    "shfl": ("END", f"shfl.sync.idx.b32 %r10, %r1, 0, 31, 0xffffffff; {READ}"),
    "shfl, its mask in a register": ("END", f"shfl.sync.idx.b32 %r10, %r1, 0, 31, %r11; {READ}"),
    "vote": ("END", f"vote.sync.ballot.b32 %r10, %p3, 0xffffffff; {READ}"),
    "redux": ("END", f"redux.sync.add.s32 %r10, %r1, 0xffffffff; {READ}"),
    "elect": ("END", f"elect.sync %r10|%p5, 0xffffffff; {READ}"),
    "ldmatrix": ("END", "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r12];"),
    "a barrier of the block": ("Z", f"Z: bar.sync 0; {READ}"),
    "a barrier of the warp's own": ("END", f"bar.sync 1, 32; {READ}"),
    "an arrival": ("B", f"bar.arrive 1, 64; {READ} bra END; B: bar.sync 1, 64;"),
    "a cluster's barrier": ("Z", f"Z: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; {READ}"),
}
LOADED = f"@%p3 mbarrier.arrive.expect_tx.shared.b64 %rd20, [%r8], 256; @%p3 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 256, [%r8]; @!%p3 bra AX; {WAIT} bar.sync 0; {READ}"
# The first warp arrives and ends; the first lane of the second one waits for that, and ends.
WAITS_AND_ENDS = f"@!%p2 bra W; @%p3 mbarrier.arrive.shared.b64 %rd9, [%r8]; bra END; W: @!%p1 bra AX; {WAIT.replace('AX:', 'ret; AX:')}"
LEGAL = {
    "a guard that holds for all lanes": ONE_WAITS.replace("%s", "END")
    + "setp.lt.u32 %p6, %r1, 99; @%p6 vote.sync.any.pred %p7, %p4, 0xffffffff;",
    "a guard that holds for a whole warp": f"@%p3 mbarrier.arrive.expect_tx.shared.b64 %rd20, [%r8], 256; @%p3 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 256, [%r8]; @!%p3 bra AX; {WAIT} @%p2 bar.arrive 1, 64; @!%p2 bar.arrive 1, 64;",
    "a guarded bar.warp.sync of half a warp": ONE_WAITS.replace("%s", "END") + "@%p4 bar.warp.sync 0xffff;",
    "two bar.warp.sync with one mask": "@%p4 bra L; st.shared.b32 [%r4], %r1; bar.warp.sync 0xffffffff; bra M; L: bar.warp.sync 0xffffffff; M: bar.sync 0;",
    "a lane that waits and ends, then a vote": WAITS_AND_ENDS + "vote.sync.any.pred %p5, %p4, 0xffffffff;",
    "a lane that waits and ends, then a barrier": WAITS_AND_ENDS + "bar.sync 0;",
    "half of each warp returns": "@!%p4 ret; bar.sync 1, 64;",
    "halves at two barrier.sync of one number": "@%p4 bra A; barrier.sync 1, 64; bra B; A: barrier.sync 1, 64; B:",
}
MISSED = {  # with what is said
    "half of each warp at a barrier without .aligned": (
        "@!%p4 bra M; barrier.sync 1, 32; M: bar.sync 0;",
        "a barrier is reached by 16 of the 32",
    ),
    "a lane at a cluster's wait without .aligned": (
        "barrier.cluster.arrive.aligned; @!%p1 bra M; barrier.cluster.wait; M: bar.sync 0;",
        "a cluster barrier is reached by 1 of the 32",
    ),
    "halves of a warp at two barriers": (
        "selp.u32 %r20, 1, 2, %p4; bar.sync %r20, 32;",
        "lanes of one warp are at barriers 1 and 2",
    ),
    "a guard that holds for half of a warp": (
        "@%p4 vote.sync.any.pred %p5, %p4, 0xffffffff;",
        "a warp-wide instruction is reached by 16 of the 32",
    ),
    "a lane that waits and ends, then ldmatrix": (
        WAITS_AND_ENDS + "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r12];",
        "ldmatrix is reached by 31 of the 32",
    ),
}
APART = {  # lanes that leave an instruction of their warp out
    "others end": "@!%p4 bra END; bar.sync 0;",
    "others are at another one": "@%p4 bra L; bar.sync 0; bra END; L: bar.sync 0;",
    "others shuffle elsewhere": "@%p4 bra L; shfl.sync.idx.b32 %r10, %r1, 0, 31, 0xffffffff; bra END; L: shfl.sync.idx.b32 %r10, %r1, 1, 31, 0xffffffff;",
}


def fault_in(body: str, warps: int, races: bool = True, threads: int = 64) -> Fault | None:
    declared = ".shared .align 128 .b8 tile[1024]; .shared .align 8 .b8 bar[8];"
    options = Options(races=races, shadow=False, order=Order(warps=warps), budget=20_000)
    ptx = kernel(BEGIN + body + "\nEND:\n  ret;", 1, declared)
    tensors = [np.arange(100, 612, dtype=np.uint32)]
    return run(ptx, tensors, block=(threads, 1, 1), inputs=0, options=options).execution.fault


@pytest.mark.parametrize("warps", [0, 3, 4, 6])
@pytest.mark.parametrize("name", TOGETHER)
def test_one_lane_waits_and_the_others_wait_for_it(name: str, warps: int) -> None:
    onwards, then = TOGETHER[name]
    assert fault_in(ONE_WAITS.replace("%s", onwards) + then, warps) is None


@pytest.mark.parametrize("warps", [0, 3, 4, 6, 7])
@pytest.mark.parametrize("name", LEGAL)
def test_lanes_that_all_come_or_have_ended_before_may_go_on(name: str, warps: int) -> None:
    assert fault_in(LEGAL[name], warps) is None


@pytest.mark.parametrize("warps", [0, 3, 4, 6, 7])
@pytest.mark.parametrize("name", MISSED)
def test_lanes_that_are_missed_are_named_in_every_order(name: str, warps: int) -> None:
    body, words = MISSED[name]
    fault = fault_in(body, warps)
    assert fault is not None and fault.verdict is Verdict.BARRIER_DIVERGENCE and words in fault.message, fault


def test_a_barrier_with_a_count_says_nothing_of_threads_that_have_ended() -> None:
    """Half of warp 0 stores and ends; warp 1 meets at a barrier of its own and reads that."""
    stored = "@!%p2 bra W; st.shared.b32 [%r4], %r1; @%p3 st.relaxed.gpu.global.b32 [%rd1], 7; @!%p4 ret; bra Z;"
    seen = "W: ld.relaxed.gpu.global.b32 %r20, [%rd1]; setp.ne.u32 %p6, %r20, 7; @%p6 bra W; bar.sync 1, 32;"
    fault = fault_in(f"{stored} {seen} {READ} Z: bar.warp.sync 0xffff;", 0)
    assert fault is not None and fault.verdict is Verdict.NON_DETERMINISTIC and "a race" in fault.message


# The first warp stores and arrives; the first lane of the second one waits for that, relaxed.
RELAXED = ONE_WAITS.replace("%s", "END").replace("try_wait.parity.shared", "try_wait.parity.relaxed.cta.shared::cta")


@pytest.mark.parametrize("warps", [0, 3, 4, 6, 7])
@pytest.mark.parametrize(
    ("then", "ordered"),
    [
        (f"fence.acquire.cta; @!%p1 {READ}", False),  # of lanes that have waited for nothing
        (f"@!%p1 fence.acquire.cta; @!%p1 {READ}", False),
        (f"bar.warp.sync 0xffffffff; fence.acquire.cta; {READ}", True),
        (f"@%p1 fence.acquire.cta; bar.warp.sync 0xffffffff; {READ}", True),
    ],
)
def test_a_fence_learns_what_its_own_lanes_came_upon(then: str, ordered: bool, warps: int) -> None:
    fault = fault_in(RELAXED + then, warps)
    if ordered:
        assert fault is None
    else:
        assert fault is not None and fault.verdict is Verdict.NON_DETERMINISTIC and "a race" in fault.message


def test_a_warp_of_fewer_threads_is_counted_whole() -> None:
    assert fault_in("bar.sync 1, 64;", 0, threads=48) is None


@pytest.mark.parametrize("races", [False, True])
@pytest.mark.parametrize("warps", [0, 3, 4])
def test_one_thread_waits_for_a_copy_before_a_barrier(warps: int, races: bool) -> None:
    """As `if tidx == 0: wait(barrier)` and `sync_threads()` do it."""
    assert fault_in(LOADED, warps, races) is None


@pytest.mark.parametrize("warps", [0, 3, 4])
@pytest.mark.parametrize("name", APART)
def test_lanes_that_never_come_are_named(name: str, warps: int) -> None:
    fault = fault_in(APART[name], warps)
    assert fault is not None and fault.verdict is Verdict.BARRIER_DIVERGENCE
    assert "is reached by 16 of the 32 running threads of a warp" in fault.message


@pytest.mark.parametrize("warps", [0, 3])
def test_a_lane_that_waits_for_ever_is_a_deadlock(warps: int) -> None:
    fault = fault_in(f"@!%p2 bra END; @!%p3 bra AX; {WAIT} bar.sync 1, 32;", warps)
    assert fault is not None and fault.verdict is Verdict.DEADLOCK
