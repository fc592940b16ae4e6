"""Kernels that are right where lanes and warps run in lockstep and wrong on hardware, each beside a legal twin; and
unusual kernels that are legal."""
# ruff: noqa: E501 - tables of kernels, one a line

from __future__ import annotations

import numpy as np
import pytest

from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.emulator import Options, Order
from tests.emulator.planted import ptx_lines, variant
from tests.emulator.ptx_kernel import run
from tests.emulator.races.shared_kernel import text

V = Verdict
MET = "barrier.cluster.arrive; barrier.cluster.wait; "
PEER = "mov.u32 %r8, %cluster_ctarank; xor.b32 %r8, %r8, 1; mapa.shared::cluster.u32 %r9, %r3, %r8; mapa.shared::cluster.u32 %r10, %r4, %r8; "
MADE = "@%p2 mbarrier.init.shared.b64 [%r3], 1; @%p2 fence.mbarrier_init.release.cluster; bar.sync 0; "
ARRIVED = "@%p2 mbarrier.arrive.shared.b64 %rd9, [%r3]; "
WAITED = "W0: mbarrier.try_wait.parity.shared.b64 %p5, [%r3], 0; @!%p5 bra W0; "
LANES = "and.b32 %r12, %r1, 31; setp.lt.u32 %p3, %r12, 16; mov.b32 %r14, 0xffff0000; @%p3 mov.b32 %r14, 0xffff; "
OTHER_HALF = "xor.b32 %r15, %r2, 64; add.s32 %r15, %r15, %r3; ld.shared.b32 %r16, [%r15]; "
STORED = "st.shared.b32 [%r4], %r1; fence.proxy.async.shared::cta; bar.sync 0; setp.eq.u32 %p6, %r1, 1; @%p2 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r3], 64; "
OVERWRITTEN = (
    "bar.sync 0; st.shared.b32 [%r4], 7; bar.sync 0; @%p2 cp.async.bulk.commit_group; @%p2 cp.async.bulk.wait_group 0; "
)
ASYNC = "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r11], %r1, "
EXPECTS = "@%p2 mbarrier.arrive.expect_tx.shared.b64 %rd9, [%r3], "
LOADS = "@%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
OWN = "mov.u32 %r15, %cluster_ctarank; mapa.shared::cluster.u32 %r16, %r3, %r15; "
FOURTH = "and.b32 %r8, %r1, 15; mul.wide.u32 %rd5, %r8, 4; add.s64 %rd5, %rd1, %rd5; "

# kernel, blocks of a cluster, threads, verdict and words of the planted bug
PLANTED = {
    "a test_wait whose answer nobody minds": (MADE + "@!%p1 bra LATE; @%p2 st.shared.b32 [%r3+64], %r5; " + ARRIVED + "bra END; LATE: mbarrier.test_wait.parity.shared.b64 %p5, [%r3], 0; <@!%p5 bra LATE; >ld.shared.b32 %r7, [%r3+64]; END: ", 1, 64, V.NON_DETERMINISTIC, "a race"),
    "a try_wait whose answer nobody minds": (MADE + "@!%p1 bra LATE; @%p2 st.shared.b32 [%r3+64], %r5; " + ARRIVED + "bra END; LATE: mbarrier.try_wait.parity.shared.b64 %p5, [%r3], 0; <@!%p5 bra LATE; >ld.shared.b32 %r7, [%r3+64]; END: ", 1, 64, V.NON_DETERMINISTIC, "a race"),
    "st.async that only the cluster has met after": (PEER + MADE + EXPECTS + "128; " + MET + "add.s32 %r11, %r10, 512; " + ASYNC + "[%r9]; " + MET + "<" + WAITED + ">ld.shared.b32 %r7, [%r4+512]; " + WAITED.replace("W0", "W1") + MET, 2, 32, V.NON_DETERMINISTIC, "a race"),
    "st.async to one block and another's mbarrier": (PEER + OWN + MADE + EXPECTS + "128; " + MET + "add.s32 %r11, %r10, 512; " + ASYNC + "[<%r16|%r9>]; " + WAITED + MET, 2, 32, V.LAUNCH_FAILURE, "another block's mbarrier"),
    "a bulk copy to one block and another's mbarrier": (PEER + MADE + EXPECTS + "64; " + MET + "add.s32 %r11, %r3, 512; " + LOADS + "[%r11], [%rd1], 64, [<%r9|%r3>]; " + WAITED + MET, 2, 32, V.LAUNCH_FAILURE, "another block's mbarrier"),
    "a thread copies over an mbarrier": (MADE + "@%p2 cp.async.ca.shared.global [%r3<|+64>], [%rd1], 16; cp.async.wait_all; bar.sync 0; " + ARRIVED + WAITED, 1, 64, V.NON_DETERMINISTIC, "which was overwritten"),
    "a tile lies over an mbarrier": (MADE + EXPECTS + "32; " + LOADS + "[%r3<|+64>], [%rd1], 32, [%r3]; " + WAITED, 1, 64, V.NON_DETERMINISTIC, "which was overwritten"),
    "an mbarrier is read": ("@%p2 st.shared.b64 [%r3], 0; @%p2 st.shared.b32 [%r3+64], 0; " + MADE + "ld.shared.b32 %r9, [%r3<|+64>]; st.global.b32 [%rd1], %r9; " + ARRIVED + WAITED, 1, 64, V.UNINITIALISED_READ, "which nothing has written"),
    "an mbarrier ends while another warp may wait": (MADE + ARRIVED + WAITED + "<bar.sync 0; >@%p2 mbarrier.inval.shared.b64 [%r3]; ", 1, 64, V.NON_DETERMINISTIC, "ends the mbarrier at byte 0"),
    "an mbarrier is made anew while another warp may wait": (MADE + ARRIVED + WAITED + "<bar.sync 0; >@%p2 mbarrier.init.shared.b64 [%r3], 1; bar.sync 0; " + ARRIVED + WAITED.replace("W0", "W1"), 1, 64, V.NON_DETERMINISTIC, "ends the mbarrier at byte 0"),
    "a second arrival at the cluster's barrier": ("barrier.cluster.arrive; <barrier.cluster.wait; >barrier.cluster.arrive; barrier.cluster.wait; ", 2, 32, V.LAUNCH_FAILURE, "again before it has waited"),
    "a second wait at the cluster's barrier": (MET + "<barrier.cluster.wait; |>" + MET, 2, 32, V.LAUNCH_FAILURE, "without having arrived"),
    "one lane fences, another sets the flag": ("mov.u32 %r20, %ctaid.x; setp.eq.u32 %p6, %r1, 1; setp.ne.u32 %p5, %r20, 0; @%p5 bra R; @%p2 st.global.b32 [%rd1+64], 5; @%p2 fence.acq_rel.gpu; <bar.warp.sync 0xffffffff; >@%p6 st.relaxed.gpu.global.b32 [%rd1], 1; bra E; R: ld.acquire.gpu.global.b32 %r16, [%rd1]; setp.eq.u32 %p6, %r16, 0; @%p6 bra R; ld.global.b32 %r7, [%rd1+64]; E: " + MET, 2, 32, V.NON_DETERMINISTIC, "with no order between"),
    "an mbarrier of too many": ("@%p2 mbarrier.init.shared.b64 [%r3], <1048576|1048575>; ", 1, 64, V.LAUNCH_FAILURE, "1,048,575"),
    "more bytes than an mbarrier counts": (MADE + "@%p2 mbarrier.expect_tx.relaxed.cta.shared.b64 [%r3], <1048576|1048575>; @%p2 mbarrier.complete_tx.relaxed.cta.shared.b64 [%r3], <1048576|1048575>; " + ARRIVED + WAITED, 1, 64, V.LAUNCH_FAILURE, "1,048,575"),
    "nobody arrives": (MADE + "@%p2 mbarrier.arrive.shared.b64 %rd8, [%r3], <0|1>; " + WAITED.replace("W0:", "<" + ARRIVED + "|>W0:"), 1, 64, V.LAUNCH_FAILURE, "a count of 0"),
    "cp.async of less than it reads": (FOURTH + "mov.u32 %r9, <8|4>; cp.async.ca.shared.global [%r4], [%rd5], 4, %r9; cp.async.wait_all; ", 1, 64, V.LAUNCH_FAILURE, "with a source size of 8"),
    "ld.shared from another block": ("st.shared.b32 [%r4], %r1; " + PEER + MET + "ld.shared<|::cluster>.b32 %r7, [%r10]; " + MET, 2, 32, V.OUT_OF_BOUNDS, ".shared::cluster"),
    "st.shared to another block": (PEER + MET + "st.shared::<cta|cluster>.b32 [%r10], %r1; " + MET, 2, 32, V.OUT_OF_BOUNDS, ".shared::cluster"),
    "red.shared in another block": ("st.shared.b32 [%r4], %r1; " + PEER + MET + "red.shared::<cta|cluster>.add.u32 [%r10], 1; " + MET, 2, 32, V.OUT_OF_BOUNDS, ".shared::cluster"),
    "a wait for another block's mbarrier": (MADE + PEER + MET + ARRIVED + WAITED.replace("%r3", "<%r9|%r3>") + MET, 2, 32, V.OUT_OF_BOUNDS, ".shared::cluster"),
    "an arrival for the block at another's mbarrier": (MADE + PEER + MET + "@%p2 mbarrier.arrive.<shared.b64 %rd9|release.cluster.shared::cluster.b64 _>, [%r9]; " + WAITED + MET, 2, 32, V.OUT_OF_BOUNDS, ".shared::cluster"),
    "copies that arrive at another block's mbarrier": ("@%p2 mbarrier.init.shared.b64 [%r3], 32; bar.sync 0; " + PEER + MET + FOURTH + "cp.async.ca.shared.global [%r4+512], [%rd5], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [<%r9|%r3>]; " + WAITED + MET, 2, 32, V.OUT_OF_BOUNDS, ".shared::cluster"),
    "a shuffle from the lanes of another mask": (LANES + "xor.b32 %r15, %r12, <16|1>; shfl.sync.idx.b32 %r16, %r1, %r15, 31, %r14; ", 1, 32, V.BARRIER_DIVERGENCE, "does not take part"),
    "halves that sync by themselves and exchange": (LANES + "st.shared.b32 [%r4], %r1; bar.warp.sync <%r14|0xffffffff>; " + OTHER_HALF, 1, 32, V.NON_DETERMINISTIC, "a race"),
    "halves that vote by themselves and exchange": (LANES + "st.shared.b32 [%r4], %r1; vote.sync.ballot.b32 %r17, %p3, <%r14|0xffffffff>; " + OTHER_HALF, 1, 32, V.NON_DETERMINISTIC, "a race"),
    "half a warp syncs, and reads what the other wrote": (LANES + "st.shared.b32 [%r4], %r1; <bar.warp.sync 0xffffffff; >@!%p3 bra END; bar.warp.sync 0xffff; " + OTHER_HALF + "END: ", 1, 32, V.NON_DETERMINISTIC, "a race"),
    "half a warp arrives at the cluster's barrier": (LANES + "@%p3 bra A; barrier.cluster.arrive<.aligned|>; bra B; A: barrier.cluster.arrive<.aligned|>; B: barrier.cluster.wait.aligned; ", 2, 32, V.BARRIER_DIVERGENCE, "a cluster barrier"),
    "half a warp waits at the cluster's barrier": (LANES + "barrier.cluster.arrive.aligned; @%p3 bra A; barrier.cluster.wait<.aligned|>; bra B; A: barrier.cluster.wait<.aligned|>; B: ", 2, 32, V.BARRIER_DIVERGENCE, "a cluster barrier"),
    "a lane waits for another's bulk group": (STORED + "@%p2 cp.async.bulk.commit_group; @<%p6|%p2> cp.async.bulk.wait_group.read 0; " + OVERWRITTEN, 1, 64, V.NON_DETERMINISTIC, "which a bulk copy reads"),
    "a lane commits another's copies": (STORED + "@<%p6|%p2> cp.async.bulk.commit_group; @%p2 cp.async.bulk.wait_group.read 0; " + OVERWRITTEN, 1, 64, V.NON_DETERMINISTIC, "which a bulk copy reads"),
    "a lane counts another's bulk groups": (STORED + "@%p2 cp.async.bulk.commit_group; @<%p6|%p2> cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 1; " + OVERWRITTEN, 1, 64, V.NON_DETERMINISTIC, "which a bulk copy reads"),
    "a cluster's blocks add for themselves": ("st.shared.b32 [%r4], %r1; " + PEER + MET + "mapa.shared::cluster.u32 %r11, %r3, 0; red.relaxed.<cta|cluster>.shared::cluster.add.u32 [%r11], 1; " + MET, 2, 32, V.NON_DETERMINISTIC, "a race"),
    "two blocks add for themselves": ("red.relaxed.<cta|gpu>.global.add.u32 [%rd1], 1; ", 2, 32, V.NON_DETERMINISTIC, "a race"),
    "a vector's atomic add beside its alignment": ("mov.f32 %f1, 0f00000000; red.global.add.v4.f32 [%rd1<+8|+16>], {%f1, %f1, %f1, %f1}; ", 1, 32, V.MISALIGNED, "16 bytes"),
    "a lane copies a tensor map alone": ("st.shared.b32 [%r4], 7; bar.sync 0; @<!%p2|!%p1> bra E; tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd1], [%r3], 128; E: ", 1, 32, V.BARRIER_DIVERGENCE, "tensormap.cp_fenceproxy"),
}  # fmt: skip
LEGAL = {
    "halves of a warp at a barrier": (LANES + "@%p3 bra A; barrier.sync 1, 32; bra B; A: barrier.sync 1, 32; B: ", 1, 32),
    "halves of a warp that exchange by themselves": (LANES + "st.shared.b32 [%r4], %r1; bar.warp.sync %r14; xor.b32 %r15, %r2, 32; add.s32 %r15, %r15, %r3; ld.shared.b32 %r16, [%r15]; ", 1, 32),
    "halves of a warp, then all of it": (LANES + "st.shared.b32 [%r4], %r1; bar.warp.sync %r14; bar.sync 0; " + OTHER_HALF, 1, 32),
    "quarters, then halves": (LANES + "shr.u32 %r17, %r12, 3; shl.b32 %r17, %r17, 3; mov.b32 %r18, 255; shl.b32 %r18, %r18, %r17; st.shared.b32 [%r4], %r1; bar.warp.sync %r18; bar.warp.sync %r14; xor.b32 %r15, %r2, 32; add.s32 %r15, %r15, %r3; ld.shared.b32 %r16, [%r15]; ", 1, 32),
    "the last barrier, arrived at": ("@!%p1 bra A; bar.arrive 15, 64; bra B; A: bar.sync 15, 64; B: ", 1, 64),
    "an mbarrier made again": (MADE + ARRIVED + WAITED + "bar.sync 0; @%p2 mbarrier.inval.shared.b64 [%r3]; @%p2 mbarrier.init.shared.b64 [%r3], 1; bar.sync 0; " + ARRIVED + WAITED.replace("W0", "W1"), 1, 64),
    "memory of an mbarrier that is done": (MADE + ARRIVED + WAITED + "bar.sync 0; st.shared.b32 [%r4], %r1; bar.sync 0; ld.shared.b32 %r7, [%r6]; ", 1, 64),
    "a wait that peeks": (MADE + "@!%p1 bra LATE; " + ARRIVED + "bra END; LATE: mbarrier.try_wait.parity.shared.b64 %p5, [%r3], 0; @%p5 bra END; W1: mbarrier.try_wait.parity.shared.b64 %p5, [%r3], 0; @!%p5 bra W1; END: ", 1, 64),
    "a phase that a barrier has told of is not asked for twice": (MADE + ARRIVED + "bar.sync 0; mbarrier.test_wait.parity.shared.b64 %p5, [%r3], 0; @!%p5 bra NEVER; bra END; NEVER: trap; END: ", 1, 64),
    "the own block by its rank": (OWN + "st.shared.b32 [%r16], 7; bar.sync 0; ld.shared.b32 %r7, [%r3]; " + MET, 2, 32),
    "bulk groups that every lane commits": (STORED + "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; " + OVERWRITTEN, 1, 64),
    "an elected lane stores": (STORED.replace("@%p2", "elect.sync _|%p4, 0xffffffff; @%p1 and.pred %p4, %p4, %p1; @!%p1 bra E; @%p4") + "@%p4 cp.async.bulk.commit_group; @%p4 cp.async.bulk.wait_group.read 0; E: " + OVERWRITTEN, 1, 64),
    "all add": ("red.relaxed.gpu.global.add.u32 [%rd1], 1; red.global.add.f32 [%rd1+4], 0f3F800000; @%p2 st.shared.b32 [%r3], 0; bar.sync 0; red.relaxed.cta.shared::cta.add.u32 [%r3], 1; ", 2, 64),
}  # fmt: skip


def fault_in(body: str, cluster: int, threads: int, seed: int, out: np.ndarray | None = None) -> Fault | None:
    ptx = text(body.replace("; ", ";\n").replace(": ", ":\n"), fixed=False)
    order = Order(warps=seed, clock=seed)
    return run(
        ptx, [np.zeros(32, np.uint32) if out is None else out], block=(threads, 1, 1), grid=(cluster, 1, 1),
        cluster=(cluster, 1, 1), options=Options(races=True, shadow=True, order=order), lines=ptx_lines(ptx),
    ).execution.fault  # fmt: skip


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_found(name: str, seed: int) -> None:
    body, cluster, threads, verdict, words = PLANTED[name]
    planted = variant(body, fixed=False)
    fault = fault_in(planted, cluster, threads, seed)
    assert fault is not None and fault.verdict is verdict and words in fault.message, fault


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", PLANTED)
def test_its_twin_is_legal(name: str, seed: int) -> None:
    body, cluster, threads, _, _ = PLANTED[name]
    twin = variant(body, fixed=True)
    assert fault_in(twin, cluster, threads, seed) is None


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
@pytest.mark.parametrize("name", LEGAL)
def test_what_is_unusual_is_legal(name: str, seed: int) -> None:
    assert fault_in(*LEGAL[name], seed) is None


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_barrier_votes(seed: int) -> None:
    out = np.zeros(32, np.uint32)
    body = (
        "bar.red.popc.u32 %r7, 0, %p1; barrier.red.or.pred %p3, 0, 96, %p2; barrier.red.and.pred %p4, 0, 96, !%p2; "
        "barrier.red.and.pred %p4, 0, %p4; bar.red.popc.u32 %r10, 0, !%p1; selp.b32 %r8, 1, 0, %p3; "
        "selp.b32 %r9, 1, 0, %p4; @!%p2 bra END; st.global.v4.b32 [%rd1], {%r7, %r8, %r9, %r10}; END: "
    )
    assert fault_in(body, 1, 96, seed, out) is None
    assert out[:4].tolist() == [32, 1, 0, 64]
