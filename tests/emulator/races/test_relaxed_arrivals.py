"""Relaxed arrivals and waits order nothing by themselves (PTX ISA 9.7.13.3 barrier.cluster.arrive.relaxed, 9.7.13.15
mbarrier). The async proxy sees a new mbarrier only behind a fence (9.7.13.4)."""

from __future__ import annotations

import re

import numpy as np
import pytest

from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.emulator import Options
from tests.emulator.planted import line_of, ptx_lines
from tests.emulator.ptx_kernel import kernel, run
from tests.emulator.races.shared_kernel import fault_in, text

PEER = """
  mov.u32 %r8, %cluster_ctarank; xor.b32 %r8, %r8, 1; mapa.shared::cluster.u32 %r9, %r3, %r8;
"""
MET = "barrier.cluster.arrive; barrier.cluster.wait;"
CLUSTER = (
    PEER
    + """
  st.shared.b32 [%r4], %r1;  // EARLIER
  {fence} barrier.cluster.arrive{arrive}; barrier.cluster.wait.acquire;
  mapa.shared::cluster.u32 %r10, %r6, %r8; ld.shared::cluster.b32 %r7, [%r10];  // FAULT
  barrier.cluster.arrive.relaxed; barrier.cluster.wait;
"""
)
# Thread 0 arrives, the second warp waits; the mbarrier is at byte 512.
MBARRIER = """
  @%p2 mbarrier.init.shared.b64 [%r3+512], 1;
  bar.sync 0;
  @!%p1 bra WAIT;
  @!%p2 bra END;
  st.shared.b32 [%r3], %r5;  // EARLIER
  {fence}
  mbarrier.arrive{arrive}.shared.b64 %rd9, [%r3+512];
  bra END;
WAIT:
  mbarrier.try_wait.parity{wait}.shared.b64 %p5, [%r3+512], 0;
  @!%p5 bra WAIT;
  {then}
  ld.shared.b32 %r7, [%r3];  // FAULT
END:
"""
NONE = {"fence": "", "arrive": "", "wait": "", "then": ""}
FENCE = "fence.acq_rel.cluster;"
RIGHT = {
    "a barrier of the cluster": (CLUSTER, 2, {"arrive": ".release"}),
    "a relaxed one behind a fence": (CLUSTER, 2, {"fence": FENCE, "arrive": ".relaxed"}),
    "a larger fence": (CLUSTER, 2, {"fence": "fence.acq_rel.gpu;", "arrive": ".relaxed"}),
    "an mbarrier": (MBARRIER, 1, {}),
    "explicit": (MBARRIER, 1, {"arrive": ".release.cta", "wait": ".acquire.cta"}),
    "a relaxed arrival behind a fence": (MBARRIER, 1, {"fence": FENCE, "arrive": ".relaxed.cluster"}),
    "for the block": (MBARRIER, 1, {"fence": "fence.acq_rel.cta;", "arrive": ".relaxed.cta"}),
    "a relaxed wait before a fence": (MBARRIER, 1, {"wait": ".relaxed.cta", "then": FENCE}),
}
WRONG = {
    "a relaxed barrier of the cluster": (CLUSTER, 2, {"arrive": ".relaxed"}),
    "a fence for the block": (CLUSTER, 2, {"fence": "fence.acq_rel.cta;", "arrive": ".relaxed"}),
    "a fence of new mbarriers": (CLUSTER, 2, {"fence": "fence.mbarrier_init.release.cluster;", "arrive": ".relaxed"}),
    "a relaxed arrival": (MBARRIER, 1, {"arrive": ".relaxed.cta"}),
    "a fence too small for it": (MBARRIER, 1, {"fence": "fence.acq_rel.cta;", "arrive": ".relaxed.cluster"}),
    "a relaxed wait": (MBARRIER, 1, {"wait": ".relaxed.cta"}),
    "a fence too small for the wait": (MBARRIER, 1, {"wait": ".relaxed.cluster", "then": "fence.acq_rel.cta;"}),
}


def filled(body: str, parts: dict[str, str]) -> str:
    return text(body.format(**NONE | parts), fixed=True)


@pytest.mark.parametrize("name", RIGHT)
def test_what_orders_is_not_reported(name: str) -> None:
    body, cluster, parts = RIGHT[name]
    assert fault_in(filled(body, parts), cluster, threads=64) is None


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_is_found(name: str) -> None:
    body, cluster, parts = WRONG[name]
    ptx = filled(body, parts)
    fault = fault_in(ptx, cluster, threads=64)
    assert fault is not None and fault.verdict is Verdict.NON_DETERMINISTIC and "a race: reads byte" in fault.message
    assert fault.line == line_of(ptx, "FAULT") and f"(line {line_of(ptx, 'EARLIER')}, " in fault.message


def test_bytes_that_are_only_counted_order_nothing() -> None:
    counted = MBARRIER.replace(
        "mbarrier.arrive{arrive}.shared.b64 %rd9, [%r3+512];",
        "mbarrier.complete_tx.relaxed.cluster.shared.b64 [%r3+512], 16;",
    ).replace("bar.sync 0;", "@%p2 mbarrier.arrive.expect_tx.shared.b64 %rd9, [%r3+512], 16; bar.sync 0;")
    fault = fault_in(filled(counted, {}), threads=64)
    assert fault is not None and "a race: reads byte 0" in fault.message


REMOTE = (
    PEER
    + """
  @%p2 mbarrier.init.shared.b64 [%r3+512], 1;  // EARLIER
  <fence.mbarrier_init.release.cluster;>
  barrier.cluster.arrive.relaxed; barrier.cluster.wait;
  @%p2 mbarrier.arrive.shared::cluster.b64 _, [%r9+512];  // FAULT
  barrier.cluster.arrive; barrier.cluster.wait;
"""
)


def test_a_block_uses_anothers_mbarrier_behind_its_fence() -> None:
    assert fault_in(text(REMOTE, fixed=True), 2) is None
    ptx = text(REMOTE, fixed=False)
    fault = fault_in(ptx, 2)
    assert fault is not None and fault.line == line_of(ptx, "FAULT")
    assert "uses the mbarrier at byte 512" in fault.message


COPIES = """
  mov.b32 %r2, tile; mov.b32 %r3, bar; setp.eq.s32 %p1, %r1, 0; shl.b32 %r4, %r1, 2; add.s32 %r4, %r2, %r4;
  mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd2, %rd3;
  @%p1 mbarrier.init.shared.b64 [%r3], 1;  // EARLIER
  {fence}
  {meet}
  @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd20, [%r3], 128;
  @%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 128, [%r3];  // FAULT
A:
  mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0; @!%p2 bra A;
  ld.shared.b32 %r9, [%r4]; st.global.b32 [%rd3], %r9;
  ret;
"""
FENCES = {
    "made": "@%p1 fence.mbarrier_init.release.cluster;", "proxy": "@%p1 fence.proxy.async.shared::cta;",
    "any proxy": "fence.proxy.async;",
}  # fmt: skip


def copied(fence: str, meet: str = "bar.sync 0;") -> tuple[str, Fault | None]:
    declared = ".shared .align 128 .b8 tile[128]; .shared .align 8 .b8 bar[8];"
    ptx = kernel(COPIES.format(fence=fence, meet=meet), 2, declared)
    tensors = [np.arange(32, dtype=np.uint32), np.zeros(32, np.uint32)]
    options = Options(races=True)
    return ptx, run(ptx, tensors, inputs=1, block=(32, 1, 1), options=options, lines=ptx_lines(ptx)).execution.fault


@pytest.mark.parametrize("name", FENCES)
def test_hardware_sees_an_mbarrier_behind_a_fence(name: str) -> None:
    assert copied(FENCES[name])[1] is None


def test_it_sees_none_without() -> None:
    for fence in ("", "fence.acq_rel.cta;", "@%p1 fence.proxy.async.global;"):
        ptx, fault = copied(fence)
        assert fault is not None and fault.verdict is Verdict.NON_DETERMINISTIC, fault
        assert fault.line == line_of(ptx, "FAULT") and f"(line {line_of(ptx, 'EARLIER')}, " in fault.message
        assert re.search(r"mbarrier at byte \d+ of shared memory, with no fence", fault.message)


def test_a_barrier_of_the_cluster_counts_as_one() -> None:
    assert copied("", MET)[1] is None
