"""Bulk copies and global memory: a copy to memory is complete when its thread has waited for it, and copies see threads'
writes behind a proxy fence (PTX ISA 8.4, 9.7.9.25.6)."""
# ruff: noqa: E501 - tables of kernels

from __future__ import annotations

import numpy as np
import pytest

from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.emulator import Options
from tests.emulator.planted import line_of, ptx_lines, variant
from tests.emulator.ptx_kernel import kernel, run

# 64 threads; %p1 is the first. %rd3: the thread's word of the workspace, %rd4: of the results. %r2 is the tile of 256
# bytes, %r4 the thread's word of it, %r3 its mbarrier. %p3: block 0, %p4: the first warp.
BEGIN = """
  mov.u32 %r6, %ctaid.x; setp.eq.u32 %p3, %r6, 0; mov.u32 %r1, %tid.x; setp.lt.u32 %p4, %r1, 32;
  mov.b32 %r2, tile; mov.b32 %r3, bar; setp.eq.s32 %p1, %r1, 0; shl.b32 %r4, %r1, 2; add.s32 %r4, %r2, %r4;
  mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd2, %rd3; add.s64 %rd3, %rd1, %rd3;
  @%p1 mbarrier.init.shared.b64 [%r3], 1; fence.mbarrier_init.release.cluster;
  st.shared.b32 [%r4], %r1; fence.proxy.async.shared::cta; bar.sync 0;
"""
STORE = "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], 256; @%p1 cp.async.bulk.commit_group;"
READ = "@%p1 cp.async.bulk.wait_group.read 0;"
LOAD = """
  @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd20, [%r3], 256;
  @%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 256, [%r3];  // FAULT
A:
  mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0; @!%p2 bra A;
  ld.shared.b32 %r9, [%r4]; st.global.b32 [%rd4], %r9;
"""
MEET = "barrier.cluster.arrive; barrier.cluster.wait;"
PLANTED = {
    # kernel, blocks of a cluster, in the message
    "read before the copy is over": (
        STORE + "  // EARLIER\n @%p1 cp.async.bulk.wait_group<.read|> 0; bar.sync 0;"
        "ld.global.b32 %r9, [%rd3];  // FAULT\n st.global.b32 [%rd4], %r9;", 1, "which nobody has waited for"),
    "one group too many under way": (
        STORE + "  // EARLIER\n @%p1 cp.async.bulk.wait_group <1|0>; bar.sync 0;\n"
        "ld.global.b32 %r9, [%rd3];  // FAULT\n st.global.b32 [%rd4], %r9;", 1, "which nobody has waited for"),
    "read by its own thread": (
        STORE + "  // EARLIER\n @%p1 cp.async.bulk.wait_group<.read|> 0;"
        "@%p1 ld.global.b32 %r9, [%rd3];  // FAULT\n", 1, "which nobody has waited for"),
    "waited for by another thread": (
        STORE + "  // EARLIER\n <@!%p4|@%p1> cp.async.bulk.wait_group 0; bar.sync 0;"
        "ld.global.b32 %r9, [%rd3];  // FAULT\n", 1, "which nobody has waited for"),
    "overwritten before the copy is over": (
        STORE + "  // EARLIER\n @%p1 cp.async.bulk.wait_group<.read|> 0; bar.sync 0;"
        "@!%p1 st.global.b32 [%rd3], 7;  // FAULT\n", 1, "which nobody has waited for"),
    "read by a block of the cluster": (
        "@!%p3 bra M;" + STORE + f"  // EARLIER\n @%p1 cp.async.bulk.wait_group<.read|> 0; M: {MEET}"
        "@!%p3 ld.global.b32 %r9, [%rd3];  // FAULT\n", 2, "which nobody has waited for"),
    "loaded without a proxy fence": (
        "st.global.b32 [%rd3], %r1;  // EARLIER\n <|fence.proxy.async;> bar.sync 0;" + LOAD, 1, "no fence.proxy.async"),
    "loaded behind the other proxy fence": (
        "st.global.b32 [%rd3], %r1;  // EARLIER\n fence.proxy.async.<shared::cta|global>; bar.sync 0;" + LOAD,
        1, "no fence.proxy.async"),
    "loaded behind a fence before the others wrote": (
        "<@%p1 fence.proxy.async;|> st.global.b32 [%rd3], %r1;  // EARLIER\n bar.sync 0; <|@%p1 fence.proxy.async;>" + LOAD,
        1, "no fence.proxy.async"),
    "loaded with no barrier before": (
        "st.global.b32 [%rd3], %r1;  // EARLIER\n fence.proxy.async; <|bar.sync 0;>" + LOAD, 1, "with no order between"),
    "stored over without a proxy fence": (
        "st.global.b32 [%rd3], 7;  // EARLIER\n <|fence.proxy.async;> bar.sync 0;" + STORE.replace(";", ";  // FAULT\n", 1) + READ,
        1, "no fence.proxy.async"),
    "loaded by a block of the cluster": (
        f"@%p3 st.global.b32 [%rd3], %r1;  // EARLIER\n <|@%p3 fence.proxy.async.global;> {MEET} @%p3 bra END;" + LOAD,
        2, "no fence.proxy.async"),
}  # fmt: skip


def text(body: str, fixed: bool) -> str:
    declared = ".shared .align 128 .b8 tile[256]; .shared .align 8 .b8 bar[8];"
    return kernel(BEGIN + variant(body, fixed) + "\nEND:\n  ret;", 2, declared)


def fault_in(ptx: str, cluster: int = 1, launches: int = 1) -> Fault | None:
    tensors = [np.full(64, 9, np.uint32), np.zeros(64, np.uint32)]
    return run(
        ptx, tensors, block=(64, 1, 1), grid=(cluster, 1, 1), cluster=(cluster, 1, 1), inputs=0, lines=ptx_lines(ptx),
        options=Options(races=True, shadow=False), launches=launches,
    ).execution.fault  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_found(name: str) -> None:
    body, cluster, words = PLANTED[name]
    ptx = text(body, fixed=False)
    fault = fault_in(ptx, cluster)
    assert fault is not None and fault.verdict is Verdict.NON_DETERMINISTIC and words in fault.message, fault
    assert fault.line == line_of(ptx, "FAULT") and f"(line {line_of(ptx, 'EARLIER')}, " in fault.message


@pytest.mark.parametrize("name", PLANTED)
def test_its_clean_twin_is_not_reported(name: str) -> None:
    body, cluster, _ = PLANTED[name]
    assert fault_in(text(body, fixed=True), cluster) is None


REDUCE = "@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r2], 256;"
CLEAN = {
    "the end of a launch completes its copies": ("@%p1 ld.global.b32 %r9, [%rd1]; bar.sync 0; fence.proxy.async;" + STORE + READ, 1, 2),
    "sums of several blocks": (REDUCE + "@%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group.read 0;", 2, 1),
    "a copy of what was copied": (STORE + "@%p1 cp.async.bulk.wait_group 0;" + LOAD, 1, 1),
    "nobody looks": (STORE + READ, 1, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", CLEAN)
def test_what_is_no_race_is_not_reported(name: str) -> None:
    body, cluster, launches = CLEAN[name]
    assert fault_in(text(body, fixed=True), cluster, launches) is None


def test_a_block_of_another_cluster_needs_some_proxy_fence() -> None:
    """Block 0 writes and releases; block 1 acquires and copies."""
    body = """
  @!%p3 bra SECOND;
  st.global.b32 [%rd3], %r1; {writer} bar.sync 0; @%p1 st.release.gpu.global.b32 [%rd2+512], 1; bra END;
SECOND:
  @!%p1 bra MET;
SPIN:
  ld.acquire.gpu.global.b32 %r9, [%rd2+512]; setp.ne.u32 %p2, %r9, 1; @%p2 bra SPIN;
  {reader}
MET:
  bar.sync 0;
"""
    for parts in ({"writer": "fence.proxy.async;"}, {"reader": "fence.proxy.async.global;"}, {}):
        ptx = text((body + LOAD).format(**{"writer": "", "reader": ""} | parts), fixed=True)
        tensors = [np.full(64, 9, np.uint32), np.zeros(256, np.uint32)]
        options = Options(races=True, shadow=False)
        ran = run(ptx, tensors, block=(64, 1, 1), grid=(2, 1, 1), inputs=0, lines=ptx_lines(ptx), options=options)
        if parts:
            assert ran.execution.fault is None and (tensors[1][:64] == np.arange(64)).all()
        else:
            assert ran.execution.fault is not None and "no fence.proxy.async" in ran.execution.fault.message
