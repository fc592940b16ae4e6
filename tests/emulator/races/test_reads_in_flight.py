"""The source of a copy may not be overwritten before the copy is complete (PTX ISA 9.7.9.25.1). Both lines are named."""
# ruff: noqa: E501 - tables of kernels

from __future__ import annotations

import numpy as np
import pytest

from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.emulator import Options
from tests.emulator.planted import line_of, ptx_lines, variant
from tests.emulator.ptx_kernel import kernel, run

# 64 threads; %p1 is the first, %p4: the first warp, %p3: block 0. %rd3: the thread's 4 bytes of the tensor, %rd5: its 16
# bytes. %r2: 1024 bytes of shared memory, %r4: the thread's 16 bytes of them, %r3: an mbarrier for one arrival, %r8: for 64.
BEGIN = """
  mov.u32 %r6, %ctaid.x; setp.eq.u32 %p3, %r6, 0; mov.u32 %r1, %tid.x; setp.lt.u32 %p4, %r1, 32;
  mov.b32 %r2, tile; mov.b32 %r3, bar; add.s32 %r8, %r3, 8; setp.eq.s32 %p1, %r1, 0; shl.b32 %r4, %r1, 4;
  add.s32 %r4, %r2, %r4; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd1, %rd3; mul.wide.u32 %rd5, %r1, 16;
  add.s64 %rd5, %rd1, %rd5;
  @%p1 mbarrier.init.shared.b64 [%r3], 1; @%p1 mbarrier.init.shared.b64 [%r8], 64;
  fence.mbarrier_init.release.cluster; bar.sync 0;
"""
LOAD = """
  @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd20, [%r3], 256;
  @%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 256, [%r3];  // EARLIER
"""
COPY = "cp.async.cg.shared.global [%r4], [%rd5], 16;  // EARLIER\n"
WRITE = "st.global.b32 [%rd3], 7;  // FAULT\n"
WRITE_OWN = "st.global.b32 [%rd5], 7;  // FAULT\n"


def wait(barrier: str, name: str = "A") -> str:
    return f"{name}: mbarrier.try_wait.parity.shared.b64 %p2, [{barrier}], 0; @!%p2 bra {name};\n"


STORE = (
    "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2+512], 256;  // FAULT\n"
    "@%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group 0;"
)
FILL = "st.shared.b32 [%r4+512], %r1; fence.proxy.async; bar.sync 0;\n"
PLANTED = {
    "stored over a bulk load": f"{LOAD} <{wait('%r3')}> {WRITE}",
    "stored over it behind a barrier": f"{LOAD} <{wait('%r3')}> bar.sync 0;\n {WRITE}",
    "waited for after the store": f"{LOAD} <{wait('%r3')}> @!%p1 {WRITE} {wait('%r3', 'B')}",
    "one warp has waited": f"{LOAD} @%p4 bra W; <{wait('%r3')}> {WRITE} bra END; W: {wait('%r3', 'B')}",
    "added to what it loads": f"{LOAD} <{wait('%r3')}> red.global.add.u32 [%rd3], 1;  // FAULT\n",
    "a bulk store over a bulk load": f"@%p4 {FILL.replace('bar.sync', 'bra F; F: bar.sync')} {LOAD} <{wait('%r3')}> {STORE}",
    "stored over by its own thread": f"{COPY} <cp.async.wait_all;> {WRITE_OWN}",
    "committed and not waited for": f"{COPY} cp.async.commit_group; <cp.async.wait_group 0;> {WRITE_OWN}",
    "one group too many": f"{COPY} cp.async.commit_group; cp.async.commit_group; <cp.async.wait_group 0;> cp.async.wait_group 2; {WRITE_OWN}",
    "stored over behind a barrier": f"{COPY} cp.async.commit_group; <cp.async.wait_group 0;> bar.sync 0; {WRITE}",
    "signals an mbarrier that nobody asks": f"{COPY} cp.async.mbarrier.arrive.noinc.shared.b64 [%r8]; <{wait('%r8')}> bar.sync 0; {WRITE}",
}  # fmt: skip


def text(body: str, fixed: bool) -> str:
    declared = ".shared .align 128 .b8 tile[2048]; .shared .align 8 .b8 bar[16];"
    return kernel(BEGIN + variant(body, fixed) + "\nEND:\n  ret;", 1, declared)


def fault_in(ptx: str, inputs: int = 0) -> Fault | None:
    tensors = [np.arange(100, 356, dtype=np.uint32)]
    options = Options(races=True, shadow=False)
    return run(ptx, tensors, block=(64, 1, 1), inputs=inputs, lines=ptx_lines(ptx), options=options).execution.fault


@pytest.mark.parametrize("name", PLANTED)
def test_found(name: str) -> None:
    ptx = text(PLANTED[name], fixed=False)
    fault = fault_in(ptx)
    assert fault is not None and fault.verdict is Verdict.NON_DETERMINISTIC, fault
    assert "overwrites what a copy reads" in fault.message or "writes something else" in fault.message, fault
    assert fault.line == line_of(ptx, "FAULT") and f"(line {line_of(ptx, 'EARLIER')}, " in fault.message


@pytest.mark.parametrize("name", PLANTED)
def test_its_clean_twin_is_not_reported(name: str) -> None:
    assert fault_in(text(PLANTED[name], fixed=True)) is None


CLEAN = {
    "reading beside a copy": f"{COPY} ld.global.b32 %r9, [%rd3]; cp.async.wait_all;",
    "what is not read": f"{LOAD} st.global.b32 [%rd3+256], 7; {wait('%r3')}",
    "a second copy of the same": f"{COPY} {COPY.replace('[%r4]', '[%r4+1024]').replace('EARLIER', '')} cp.async.wait_all; bar.sync 0; st.global.b32 [%rd3], 7;",
}  # fmt: skip


@pytest.mark.parametrize("name", CLEAN)
def test_what_is_no_race_is_not_reported(name: str) -> None:
    assert fault_in(text(CLEAN[name], fixed=True)) is None
