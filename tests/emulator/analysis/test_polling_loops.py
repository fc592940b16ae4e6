"""The number of polls of a wait depends on time: a kernel may not use it."""

from __future__ import annotations

import numpy as np
import pytest

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator.analysis.examine import examined
from tests.emulator.ptx_kernel import build, kernel, run

# Warp 0 waits for warp 1, which is late.
BEGIN = """
  mov.u32 %r5, s; mov.u32 %r10, %tid.x; setp.ne.u32 %p1, %r10, 0; @%p1 bra ON;
  mbarrier.init.shared.b64 [%r5], 1;
ON: bar.sync 0; mov.u32 %r6, 0; mov.u32 %r7, 0; setp.ge.u32 %p1, %r10, 32; @%p1 bra LATE;
"""
END = """
  bra DONE;
LATE: setp.ne.u32 %p1, %r10, 32; @%p1 bra DONE;
SPIN: add.u32 %r7, %r7, 1; setp.lt.u32 %p2, %r7, 500; @%p2 bra SPIN;
  mbarrier.arrive.shared.b64 _, [%r5];
DONE: bar.sync 0; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd1, %rd3; st.global.b32 [%rd3], %r6; ret;
"""
WAIT = "mbarrier.test_wait.parity.shared.b64 %p3, [%r5], 0;"

REFUSED = {
    "counts": f"POLL: {WAIT} add.u32 %r6, %r6, 1; @!%p3 bra POLL;",
    "counts before it asks": f"POLL: add.u32 %r6, %r6, 1; {WAIT} @%p3 bra GO; bra POLL; GO:",
    "leaves by another branch": f"POLL: {WAIT} add.u32 %r6, %r6, 1; not.pred %p4, %p3; @%p4 bra POLL;",
    "doubles": f"mov.u32 %r6, 1; POLL: {WAIT} shl.b32 %r6, %r6, 1; @!%p3 bra POLL;",
    "stores": f"POLL: {WAIT} atom.shared.add.u32 %r8, [%r5+8], 1; @!%p3 bra POLL;",
}
ALLOWED = {
    "waits": f"POLL: {WAIT} @!%p3 bra POLL;",
    "tries": "POLL: mbarrier.try_wait.parity.shared.b64 %p3, [%r5], 0; @%p3 bra GO; bra POLL; GO:",
    "sleeps longer each time": f"mov.u32 %r9, 8; POLL: {WAIT} @%p3 bra GO; nanosleep.u32 %r9; shl.b32 %r9, %r9, 1; "
    "bra POLL; GO:",
    "counts what it waits for": f"TILE: bar.warp.sync -1; POLL: {WAIT} @!%p3 bra POLL; add.u32 %r6, %r6, 1; "
    "setp.lt.u32 %p4, %r6, 3; @%p4 bra TILE;",
}  # fmt: skip


# A later block waits for an earlier one's flag, below which others lie.
FLAG = """
  setp.eq.u32 %p1, %r2, 0; @!%p1 bra WAIT; st.release.gpu.global.u32 [%rd1], 1; ret;
WAIT: mov.u32 %r6, 0; mov.u32 %r7, 0; mov.b64 %rd3, %rd1;
"""
AFTER = " mul.wide.u32 %rd4, %r1, 4; add.s64 %rd4, %rd2, %rd4; st.global.b32 [%rd4], %r6; ret;"
ASK = "ld.acquire.gpu.global.u32 %r8, [%rd3];"
FLAGS_REFUSED = {
    "counts": f"POLL: {ASK} add.u32 %r6, %r6, 1; setp.eq.s32 %p3, %r8, 0; @%p3 bra POLL;",
    "asks a volatile": "POLL: ld.volatile.global.u32 %r8, [%rd3]; add.u32 %r6, %r6, 1; setp.eq.s32 %p3, %r8, 0; "
    "@%p3 bra POLL;",
    "adds up in memory": f"POLL: {ASK} red.global.add.u32 [%rd2], 1; setp.eq.s32 %p3, %r8, 0; @%p3 bra POLL;",
}
FLAGS_ALLOWED = {
    "waits": f"POLL: {ASK} setp.eq.s32 %p3, %r8, 0; @%p3 bra POLL;",
    "takes what it waited for": f"POLL: {ASK} setp.eq.s32 %p3, %r8, 0; @%p3 bra POLL; mov.b32 %r6, %r8;",
    "looks back": f"POLL: {ASK} setp.eq.s32 %p3, %r8, 0; @%p3 bra POLL; add.u32 %r6, %r6, %r8; add.s64 %rd3, %rd3, 0; "
    "setp.lt.u32 %p4, %r6, 1; @%p4 bra POLL;",
    "swaps": "POLL: mov.b32 %r7, %r6; atom.global.cas.b32 %r6, [%rd3], %r7, %r7; setp.ne.s32 %p3, %r6, %r7; "
    "@%p3 bra POLL;",
    "takes work from a queue": "POLL: atom.global.add.u32 %r8, [%rd3], 1; add.u32 %r6, %r6, 1; "
    "setp.lt.u32 %p3, %r8, 9; @%p3 bra POLL;",
    "is given work": "POLL: bar.sync 0; ld.volatile.global.u32 %r8, [%rd3]; add.u32 %r6, %r6, 1; "
    "red.global.add.u32 [%rd2], 1; setp.lt.u32 %p3, %r8, 9; @%p3 bra POLL;",
}  # fmt: skip


def flag(body: str):  # type: ignore[no-untyped-def]
    tensors = [np.zeros(4, np.uint32), np.zeros(128, np.uint32)]
    made = build(kernel(FLAG + body + AFTER, 2), tensors, block=(1, 1, 1), grid=(2, 1, 1))
    return examined(made, ["t0", "t1"])


@pytest.mark.parametrize("what", FLAGS_REFUSED)
def test_a_loop_that_polls_memory_may_leave_nothing_behind(what: str) -> None:
    fault = flag(FLAGS_REFUSED[what])
    assert fault is not None and fault.verdict is Verdict.CONTRACT and "counts its polls" in fault.message


@pytest.mark.parametrize("what", FLAGS_ALLOWED)
def test_a_kernel_may_poll_memory(what: str) -> None:
    assert flag(FLAGS_ALLOWED[what]) is None


def ran(body: str):  # type: ignore[no-untyped-def]
    out = np.zeros(64, np.uint32)
    return run(kernel(BEGIN + body + END, 1, " .shared .align 16 .b8 s[64];"), [out], block=(64, 1, 1)).execution.fault


@pytest.mark.parametrize("what", REFUSED)
def test_a_loop_of_polls_may_leave_nothing_behind(what: str) -> None:
    fault = ran(REFUSED[what])
    assert fault is not None and fault.verdict is Verdict.CONTRACT, fault
    assert "counts its polls" in fault.message and fault.instruction


@pytest.mark.parametrize("what", ALLOWED)
def test_a_kernel_may_wait(what: str) -> None:
    assert ran(ALLOWED[what]) is None
