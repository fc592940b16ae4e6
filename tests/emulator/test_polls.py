"""How often an mbarrier was asked is a clock, and no kernel may read one."""

from __future__ import annotations

import numpy as np
import pytest

from cutegen_lab.core.verdict import Verdict
from tests.emulator.machine import kernel, run

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


def ran(body: str):  # type: ignore[no-untyped-def]
    out = np.zeros(64, np.uint32)
    return run(kernel(BEGIN + body + END, 1, " .shared .align 16 .b8 s[64];"), [out], block=(64, 1, 1)).execution.fault


@pytest.mark.parametrize("what", REFUSED)
def test_a_loop_of_polls_may_leave_nothing_behind(what: str) -> None:
    fault = ran(REFUSED[what])
    assert fault is not None and fault.verdict is Verdict.CONTRACT, fault
    assert "how often it asks an mbarrier" in fault.message and fault.instruction


@pytest.mark.parametrize("what", ALLOWED)
def test_a_kernel_may_wait(what: str) -> None:
    assert ran(ALLOWED[what]) is None
