"""Bytes of a cp.async that are touched before it is waited for are found, with both lines. Its twin waits."""

from __future__ import annotations

import re

import numpy as np
import pytest

from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.emulator import Options
from tests.emulator.planted import ptx_lines, variant
from tests.emulator.ptx_kernel import kernel, run

THREADS = 64
DECLARED = ".shared .align 16 .b8 s[1024]; .shared .align 8 .b8 b[8];"
START = """
  mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 4; mov.u32 %r3, s; add.s32 %r4, %r3, %r2; xor.b32 %r5, %r2, 512;
  add.s32 %r6, %r3, %r5; mul.wide.u32 %rd5, %r1, 16; add.s64 %rd5, %rd1, %rd5;
  setp.lt.u32 %p1, %r1, 32; setp.eq.u32 %p2, %r1, 0; mov.u32 %r8, b;
  @%p2 mbarrier.init.shared.b64 [%r8], 64;
  bar.sync 0;
"""
COPY = "cp.async.cg.shared.global [%r4], [%rd5], 16;  // EARLIER\n"
MATRIX = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r6];  // FAULT\n"
LOAD = "ld.shared.b32 %r10, [%r4];  // FAULT\n"
FREE = "cp.async.mbarrier.arrive{noinc}.shared.b64 [%r8];\n"
SPIN = "SPIN: mbarrier.try_wait.parity.shared.b64 %p5, [%r8], 0;\n @!%p5 bra SPIN;\n"
PLANTED = {
    "read_at_once": f"{COPY} <cp.async.wait_all;>\n {LOAD}",
    "committed_only": f"{COPY} cp.async.commit_group; <cp.async.wait_group 0;>\n {LOAD}",
    "read_by_another_warp": f"{COPY} cp.async.commit_group; <cp.async.wait_group 0;>\n bar.sync 0;\n {MATRIX}",
    "waited_without_commit": f"{COPY} <cp.async.commit_group;> cp.async.wait_group 0;\n bar.sync 0;\n {MATRIX}",
    "waited_after_the_barrier": f"{COPY} cp.async.commit_group; <cp.async.wait_group 0;> bar.sync 0;\n"
    f" cp.async.wait_group 0;\n {MATRIX}",
    "one_warp_does_not_wait": f"{COPY} cp.async.commit_group;\n <@!%p1 cp.async.wait_group 0;>\n"
    f" @%p1 cp.async.wait_group 0;\n bar.sync 0;\n {MATRIX}",
    "one_group_too_many": f"{COPY} cp.async.commit_group; <cp.async.commit_group;>\n"
    f" cp.async.wait_group 1;\n bar.sync 0;\n {MATRIX}",
    "overwritten": f"{COPY} cp.async.commit_group; <cp.async.wait_group 0;>\n st.shared.b32 [%r4], %r1;  // FAULT\n",
    "two_copies": f"{COPY} <cp.async.wait_all;>\n cp.async.cg.shared.global [%r4], [%rd1], 16;  // FAULT\n",
    "copied_over_what_is_read": "st.shared.b32 [%r6], %r1; bar.sync 0; ld.shared.b32 %r10, [%r6];  // EARLIER\n"
    " <bar.sync 0;>\n cp.async.cg.shared.global [%r4], [%rd5], 16;  // FAULT\n cp.async.wait_all;",
    "mbarrier_not_waited": f"{COPY} {FREE.format(noinc='.noinc')} <{SPIN}>\n {LOAD}",
    "arrived_apart": f"{COPY} {FREE.format(noinc='')} mbarrier.arrive.shared.b64 %rd9, [%r8];\n <{SPIN}>\n {LOAD}",
    "copied_after_the_arrival": f"{FREE.format(noinc='.noinc')} {COPY} {SPIN}"
    f" <cp.async.wait_all; bar.sync 0;>\n {MATRIX}",
}


def text(name: str, fixed: bool) -> str:
    return kernel(START + variant(PLANTED[name], fixed) + "  ret;", 1, declarations=DECLARED)


def fault_in(ptx: str) -> Fault | None:
    tensors = [np.arange(THREADS * 4, dtype=np.uint32)]
    return run(ptx, tensors, block=(THREADS, 1, 1), lines=ptx_lines(ptx), options=Options(races=True)).execution.fault


@pytest.mark.parametrize("name", PLANTED)
def test_bytes_that_have_not_come_are_found(name: str) -> None:
    ptx = text(name, fixed=False)
    fault = fault_in(ptx)
    assert fault is not None and fault.verdict is Verdict.NON_DETERMINISTIC, fault
    lines = ptx.split("\n")
    assert "// FAULT" in lines[fault.line - 1]
    earlier = re.search(r"\(line (\d+), `", fault.message)
    assert earlier and "// EARLIER" in lines[int(earlier[1]) - 1], fault.message


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_waited_for_is_not_reported(name: str) -> None:
    assert fault_in(text(name, fixed=True)) is None


@pytest.mark.parametrize("wait", ["", "cp.async.wait_all;"])
def test_zeros_that_fill_up_a_copy_are_as_late_as_the_copy(wait: str) -> None:
    body = f"mov.u32 %r9, 4; cp.async.cg.shared.global [%r4], [%rd5], 16, %r9; {wait} ld.shared.b32 %r10, [%r4+8]; ret;"
    assert (fault_in(kernel(START + body, 1, declarations=DECLARED)) is None) is bool(wait)


@pytest.mark.parametrize("committed", ["", "cp.async.commit_group;", "cp.async.commit_group; cp.async.wait_group 1;"])
def test_a_block_may_end_before_its_copies_have_come(committed: str) -> None:
    """Nobody reads what they fill. CUTLASS's examples/cute/tutorial/sgemm_sm80.cu does not wait for its last groups."""
    assert fault_in(kernel(f"{START} {COPY} {committed} ret;", 1, declarations=DECLARED)) is None
