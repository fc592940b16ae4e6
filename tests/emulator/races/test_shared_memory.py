"""Races in shared memory: each planted race is found with both lines and threads, its twin is not reported."""

from __future__ import annotations

import re
import threading
from dataclasses import replace

import numpy as np
import pytest

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator import Options, run_plan
from tests.emulator.planted import line_of, ptx_lines, variant
from tests.emulator.ptx_kernel import build, kernel, run
from tests.emulator.races.shared_kernel import START, fault_in, text

READ_TOO_EARLY = """
  st.shared.b32 [%r4], %r1;  // EARLIER
  <bar.sync 0;>
  ld.shared.b32 %r7, [%r6];  // FAULT
"""
WRITTEN_WHILE_READ = """
  st.shared.b32 [%r4], %r1;
  bar.sync 0;
  ld.shared.b32 %r7, [%r6];  // EARLIER
  <bar.sync 0;>
  st.shared.b32 [%r4], %r7;  // FAULT
"""
WRITTEN_AFTER_ALL_READ = """
  @%p2 st.shared.b32 [%r3], %r5;
  bar.sync 0;
  ld.shared.b32 %r7, [%r3];  // EARLIER
  <bar.sync 0;>
  @%p2 st.shared.b32 [%r3], %r1;  // FAULT
"""
TWO_WRITERS = """
  @%p1 st.shared.b32 [%r4], %r1;  // EARLIER
  <bar.sync 0;>
  @!%p1 st.shared.b32 [%r6], %r1;  // FAULT
"""
ALL_WRITE_ONE = """
  <setp.eq.u32 %p3, %r1, 0; @!%p3 bra DONE;>
  st.shared.b32 [%r3], %r1;  // FAULT
DONE:
"""
BARRIER_FOR_SOME = """
  mov.u32 %r8, 64; mov.u32 %r9, 0;
  setp.lt.u32 %p4, %r1, 64;
  <mov.u32 %r8, 128; setp.eq.u32 %p4, %r1, %r1;>
  st.shared.b32 [%r4], %r1;  // EARLIER
  @!%p4 bra LATE;
  bar.sync 1, %r8;
LATE:
  ld.shared.b32 %r7, [%r6];  // FAULT
"""
WARP_OUT_OF_STEP = """
  st.shared.b32 [%r4], %r1;  // EARLIER
  <bar.warp.sync 0xffffffff;>
  xor.b32 %r5, %r2, 4; add.s32 %r5, %r3, %r5;
  ld.shared.b32 %r7, [%r5];  // FAULT
"""
COUNTED_AND_READ = """
  @%p2 st.shared.b32 [%r3], 0;
  bar.sync 0;
  red.shared.add.u32 [%r3], 1;  // EARLIER
  <bar.sync 0;>
  ld.shared.b32 %r7, [%r3];  // FAULT
"""
ARRIVED_BEFORE_WRITING = """
  @%p2 mbarrier.init.shared.b64 [%r3], 1;
  bar.sync 0;
  @!%p1 bra WAIT;
  @%p2 st.shared.b32 [%r3+64], %r5;{first}
  @%p2 mbarrier.arrive.shared.b64 %rd9, [%r3];
  @%p2 st.shared.b32 [%r3+64], %r5;{second}
  bra END;
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p5, [%r3], 0;
  @!%p5 bra WAIT;
  ld.shared.b32 %r7, [%r3+64];  // FAULT
END:
"""
PEER_NOT_WAITED_FOR = """
  mov.u32 %r8, %cluster_ctarank; xor.b32 %r8, %r8, 1; mapa.shared::cluster.u32 %r9, %r4, %r8;
  st.shared.b32 [%r4], %r1;
  barrier.cluster.arrive; barrier.cluster.wait;
  st.shared::cluster.b32 [%r9], %r2;  // EARLIER
  <barrier.cluster.arrive; barrier.cluster.wait;>
  ld.shared.b32 %r7, [%r4];  // FAULT
"""
COPIED_ASYNCHRONOUSLY = """
  and.b32 %r8, %r1, 15; mul.wide.u32 %rd5, %r8, 4; add.s64 %rd5, %rd1, %rd5;
  cp.async.ca.shared.global [%r4], [%rd5], 4;  // EARLIER
  cp.async.commit_group; cp.async.wait_group 0;
  <bar.sync 0;>
  ld.shared.b32 %r7, [%r6];  // FAULT
"""
PLANTED = {
    # kernel, blocks of a cluster, first thread, its counterpart
    "read_too_early": (READ_TOO_EARLY, 1, 0, "thread (127, 0, 0) wrote"),
    "written_while_read": (WRITTEN_WHILE_READ, 1, 0, "thread (127, 0, 0) read"),
    "written_after_all_read": (WRITTEN_AFTER_ALL_READ, 1, 0, "read"),
    "two_writers": (TWO_WRITERS, 1, 96, "thread (31, 0, 0) wrote"),
    "all_write_one": (ALL_WRITE_ONE, 1, 0, "thread (127, 0, 0) wrote something else at the same time"),
    "barrier_for_some": (BARRIER_FOR_SOME, 1, 0, "thread (127, 0, 0) wrote"),
    "warp_out_of_step": (WARP_OUT_OF_STEP, 1, 0, "thread (1, 0, 0) wrote"),
    "counted_and_read": (COUNTED_AND_READ, 1, 0, "wrote"),
    "peer_not_waited_for": (PEER_NOT_WAITED_FOR, 2, 0, "thread (0, 0, 0) of block (1, 0, 0) wrote"),
    "copied_asynchronously": (COPIED_ASYNCHRONOUSLY, 1, 0, "thread (127, 0, 0) wrote"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_race_is_found(name: str) -> None:
    body, cluster, thread, other = PLANTED[name]
    ptx = text(body, fixed=False)
    fault = fault_in(ptx, cluster)
    assert fault is not None and fault.verdict is Verdict.NON_DETERMINISTIC, fault
    assert fault.line == line_of(ptx, "FAULT") and other in fault.message
    assert fault.thread == (thread, 0, 0) and fault.block == (0, 0, 0)
    earlier = line_of(ptx, "EARLIER") if "// EARLIER" in ptx else fault.line
    assert f"(line {earlier}, `" in fault.message


def test_a_workspace_of_any_size_leaves_no_race_out() -> None:
    ptx = kernel(START + variant(READ_TOO_EARLY, fixed=False) + "  ret;", 2, ".shared .align 16 .b8 s[1024];")
    tensors = [np.zeros(16, np.uint32), np.zeros(40 << 20, np.uint8)]
    made = build(ptx, tensors, block=(128, 1, 1), lines=ptx_lines(ptx))
    specs = (TensorSpec("x", DType.U8, (64,)), TensorSpec("mine", DType.U8, (40 << 20,)))
    made = replace(made, plan=replace(made.plan, workspace=specs[1:]))
    views = [memoryview(tensor.view(np.uint8)) for tensor in tensors]
    fault = run_plan(made, specs, views, threading.Event()).execution.fault
    assert fault is not None and fault.verdict is Verdict.NON_DETERMINISTIC, fault


@pytest.mark.parametrize("name", PLANTED)
def test_its_clean_twin_is_not_reported(name: str) -> None:
    body, cluster, _, _ = PLANTED[name]
    assert fault_in(text(body, fixed=True), cluster) is None


def test_what_is_written_after_the_arrival_is_not_waited_for() -> None:
    early = text(ARRIVED_BEFORE_WRITING.format(first="", second=""), fixed=False)
    first, second = (m.start() for m in re.finditer(r"  @%p2 st\.shared\.b32 \[%r3\+64\], %r5;\n", early))
    clean, planted = early[:second] + early[second + 37 :], early[:first] + early[first + 37 :]
    assert fault_in(clean, threads=64) is None
    fault = fault_in(planted, threads=64)
    assert (
        fault is not None and fault.verdict is Verdict.NON_DETERMINISTIC and "thread (0, 0, 0) wrote" in fault.message
    )
    assert fault.line == line_of(planted, "FAULT") and fault.thread == (32, 0, 0)


CLEAN = {
    "neighbours of two bytes": "shl.b32 %r8, %r1, 1; add.s32 %r8, %r3, %r8; st.shared.b16 [%r8], %rs1; "
    "ld.shared.b16 %rs2, [%r8];",
    "the same value from all": "st.shared.b32 [%r3], 7;",
    "an atomic by all": "@%p2 st.shared.b32 [%r3], 0; bar.sync 0; red.shared.add.u32 [%r3], 1; "
    "atom.shared.add.u32 %r7, [%r3], 1;",
    "who wrote has ended": "@!%p1 st.shared.b32 [%r4], %r1; @!%p1 bra END; bar.sync 0; ld.shared.b32 %r7, [%r6]; END:",
    "an exchange within the warp": "st.shared.b32 [%r4], %r1; shfl.sync.bfly.b32 %r7, %r1, 1, 31, 0xffffffff; "
    "xor.b32 %r8, %r2, 4; add.s32 %r8, %r3, %r8; ld.shared.b32 %r7, [%r8];",
    "a flag with fences": "@%p2 st.volatile.shared.b32 [%r3+4], 0; bar.sync 0; @!%p1 bra SPIN; "
    "@%p2 st.shared.b32 [%r3], %r5; @%p2 membar.cta; @%p2 st.volatile.shared.b32 [%r3+4], 1; bra END; "
    "SPIN: ld.volatile.shared.b32 %r7, [%r3+4]; setp.eq.u32 %p5, %r7, 0; @%p5 bra SPIN; membar.cta; "
    "ld.shared.b32 %r8, [%r3]; END:",
    "rounds of a buffer": "mov.u32 %r9, 0; MORE: add.s32 %r7, %r9, %r1; st.shared.b32 [%r4], %r7; bar.sync 0; "
    "ld.shared.b32 %r8, [%r6]; bar.sync 0; add.s32 %r9, %r9, 1; setp.lt.u32 %p5, %r9, 4; @%p5 bra MORE;",
    "arrive and sync": "@!%p1 bra LATE; st.shared.b32 [%r4], %r1; bar.arrive 3, 128; bra END; LATE: bar.sync 3, 128; "
    "ld.shared.b32 %r7, [%r3]; END:",
}


@pytest.mark.parametrize("name", CLEAN)
def test_what_is_ordered_is_not_reported(name: str) -> None:
    assert fault_in(text(CLEAN[name].replace("; ", ";\n"), fixed=True)) is None


def test_a_producer_does_not_wait_where_it_only_arrives() -> None:
    """bar.arrive tells the others of what was done before it, and learns nothing."""
    ptx = text(
        """
  @!%p1 bra LATE;
  bar.arrive 3, 128;
  ld.shared.b32 %r7, [%r6];  // FAULT
  bra END;
LATE:
  st.shared.b32 [%r4], %r1;
  bar.sync 3, 128;
END:""",
        fixed=True,
    )
    fault = run(ptx, [np.zeros(16, np.uint32)], block=(128, 1, 1), options=Options(races=True, shadow=False),
                lines=ptx_lines(ptx)).execution.fault  # fmt: skip
    assert fault is not None and "a race" in fault.message
