"""Bulk copies of one mbarrier complete at a time. A read of a stage whose own mbarrier was not waited for is found,
even where all stages fit in shared memory and the mbarrier was polled before."""

from __future__ import annotations

import numpy as np
import pytest

from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.emulator import Options, Order
from tests.emulator.planted import line_of, ptx_lines, variant
from tests.emulator.ptx_kernel import kernel, run

STAGES = 3
BEGIN = """
  mov.b32 %r2, tile; mov.b32 %r3, bar; setp.eq.s32 %p1, %r1, 0; shl.b32 %r4, %r1, 4; add.s32 %r4, %r2, %r4;
  mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd2, %rd3;
  @!%p1 bra MADE;
  mbarrier.init.shared.b64 [%r3], 1; mbarrier.init.shared.b64 [%r3+8], 1; mbarrier.init.shared.b64 [%r3+16], 1;
  fence.mbarrier_init.release.cluster;
MADE:
  bar.sync 0;
""" + "".join(
    f"""
  @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd20, [%r3+{8 * s}], 512;
  @%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes
    [%r2+{512 * s}], [%rd1+{512 * s}], 512, [%r3+{8 * s}];
"""
    for s in range(STAGES)
)


def waits(stage: int, label: str, bug: bool = False) -> str:
    again = f"@!%p2 bra {label};"
    return f"""
{label}:
  mbarrier.try_wait.parity.shared.b64 %p2, [%r3+{8 * stage}], 0; {f"<{again}>" if bug else again}
  ld.shared.b32 %r9, [%r4+{512 * stage}];{"  // FAULT" if bug else ""}
  st.global.b32 [%rd3], %r9;
"""


PEEK = "  mbarrier.try_wait.parity.shared.b64 %p3, [%r3+8], 0;\n"
PLANTED = {
    "the next stage is only asked for": waits(0, "A") + waits(1, "B", bug=True) + waits(2, "C"),
    "asked for before the first": PEEK + waits(0, "A") + PEEK + waits(1, "B", bug=True) + waits(2, "C"),
    "the last": waits(0, "A") + waits(1, "B") + waits(2, "C", bug=True),
    "another order": waits(2, "A") + waits(0, "B", bug=True) + waits(1, "C"),
}


def fault_in(body: str, fixed: bool, seed: int) -> tuple[str, Fault | None]:
    ptx = kernel(
        BEGIN + variant(body, fixed) + "  ret;", 2,
        f".shared .align 128 .b8 tile[{512 * STAGES}]; .shared .align 8 .b8 bar[{8 * STAGES}];",
    )  # fmt: skip
    tensors = [np.arange(128 * STAGES, dtype=np.uint32), np.zeros(32, np.uint32)]
    options = Options(races=True, shadow=True, order=Order(warps=seed))
    return ptx, run(ptx, tensors, inputs=1, block=(32, 1, 1), options=options, lines=ptx_lines(ptx)).execution.fault


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", PLANTED)
def test_a_stage_that_is_not_waited_for_is_found(name: str, seed: int) -> None:
    ptx, fault = fault_in(PLANTED[name], False, seed)
    assert fault is not None and fault.verdict is Verdict.NON_DETERMINISTIC, fault
    assert "which a bulk copy writes with no wait for it between" in fault.message
    assert fault.line == line_of(ptx, "FAULT")


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", PLANTED)
def test_its_twin_that_waits_is_right(name: str, seed: int) -> None:
    assert fault_in(PLANTED[name], True, seed)[1] is None
