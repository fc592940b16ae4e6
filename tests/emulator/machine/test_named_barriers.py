"""A named barrier that two unordered pairs of warps use: any two of the four may meet, because the barrier counts threads
(PTX ISA 9.7.13.1)."""
# ruff: noqa: E501 - tables of kernels

from __future__ import annotations

import numpy as np
import pytest

from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.emulator import Options, Order
from tests.emulator.planted import line_of, ptx_lines, variant
from tests.emulator.ptx_kernel import kernel, run

BEGIN = "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 64; and.b32 %r2, %r1, 63; setp.lt.u32 %p2, %r2, 32;\n"
PLANTED = {
    "two pairs, one barrier": "@!%p1 bra B; bar.sync 1, 64; bra END;\nB: bar.sync <1|2>, 64;  // FAULT\n",
    "the second pair after the first": "@!%p1 bra B; bar.sync 1, 64; <bar.sync 0;> bra END;\nB: <bar.sync 0;> bar.sync 1, 64;  // FAULT\n",
    "a pair hands over, another one too": "@!%p1 bra B; @%p2 bra A; bar.sync 1, 64; bra END; A: bar.arrive 1, 64; bra END;\n"
    "B: @%p2 bra C; bar.sync <1|2>, 64; bra END; C: bar.arrive <1|2>, 64;  // FAULT\n",
    "arrives twice and waits for nobody": "@%p2 bra A; @!%p1 bra END; bar.sync 1, 64; <bar.arrive 2, 64;> bar.sync 1, 64; bra END;\n"
    "A: @!%p1 bra END; bar.arrive 1, 64; <bar.sync 2, 64;> bar.arrive 1, 64;  // FAULT\n",
}  # fmt: skip
CLEAN = {
    "one pair again and again": "@!%p1 bra END; bar.sync 1, 64; bar.sync 1, 64; bar.sync 1, 64;",
    "all of the block again and again": "bar.sync 0; bar.sync 0; @%p1 bra END; bar.sync 3, 64; bar.sync 3, 64;",
    "hand in hand": "mov.u32 %r5, 0; @!%p1 bra END; @%p2 bra P;\nC: bar.sync 1, 64; bar.arrive 2, 64; add.s32 %r5, %r5, 1; setp.lt.u32 %p4, %r5, 5; @%p4 bra C; bra END;\n"
    "P: bar.arrive 1, 64; bar.sync 2, 64; add.s32 %r5, %r5, 1; setp.lt.u32 %p4, %r5, 5; @%p4 bra P;",
}  # fmt: skip


def fault_in(body: str, fixed: bool, warps: int = 0) -> tuple[str, Fault | None]:
    ptx = kernel(BEGIN + variant(body, fixed) + "\nEND:\n  ret;", 1)
    options = Options(races=True, order=Order(warps=warps))
    ran = run(ptx, [np.zeros(16, np.uint32)], block=(128, 1, 1), lines=ptx_lines(ptx), options=options)
    return ptx, ran.execution.fault


@pytest.mark.parametrize("name", PLANTED)
def test_found(name: str) -> None:
    ptx, fault = fault_in(PLANTED[name], fixed=False)
    assert fault is not None and fault.verdict is Verdict.BARRIER_DIVERGENCE, fault
    assert "arrives at barrier 1 with no order after warp" in fault.message
    assert fault.line == line_of(ptx, "FAULT")


@pytest.mark.parametrize("warps", [0, 3, 8])
@pytest.mark.parametrize("name", [*PLANTED, *CLEAN])
def test_what_is_ordered_is_not_reported(name: str, warps: int) -> None:
    assert fault_in((PLANTED | CLEAN)[name], fixed=True, warps=warps)[1] is None
