"""Races in global memory between the blocks of a launch, and what orders blocks and launches."""

from __future__ import annotations

import numpy as np
import pytest

from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.emulator import Options, Order
from tests.emulator.planted import line_of, ptx_lines
from tests.emulator.ptx_kernel import kernel, run

ADDRESS = "  mov.u32 %r5, %tid.x; mul.wide.u32 %rd3, %r5, 4; add.s64 %rd3, %rd1, %rd3; mov.u32 %r6, %ctaid.x;\n"
BOTH_WRITE = ADDRESS + "  st.global.b32 [%rd3], %r6;  // FAULT\n  ret;"
SECOND_READS = (
    ADDRESS
    + """
  setp.eq.u32 %p1, %r6, 0;
  @!%p1 bra READ;
  st.global.b32 [%rd3], %r6;  // EARLIER
  ret;
READ:
  ld.global.b32 %r7, [%rd3];  // FAULT
  ret;"""
)
REPEATED = Options(races=True, lanes=32)  # one block after another
TOGETHER = Options(races=True)


def fault_in(
    ptx: str, options: Options = TOGETHER, *, grid: int = 2, cluster: int = 1, launches: int = 1
) -> Fault | None:
    return run(
        ptx, [np.zeros(64, np.uint32)], block=(32, 1, 1), grid=(grid, 1, 1), cluster=(cluster, 1, 1), inputs=0,
        lines=ptx_lines(ptx), options=options, launches=launches,
    ).execution.fault  # fmt: skip


@pytest.mark.parametrize("options", [TOGETHER, REPEATED, Options(races=True, order=Order(reverse=True))])
def test_two_blocks_write_different_values(options: Options) -> None:
    ptx = kernel(BOTH_WRITE, 1)
    fault = fault_in(ptx, options)
    assert fault is not None and fault.verdict is Verdict.NON_DETERMINISTIC and fault.line == line_of(ptx, "FAULT")
    assert "block (" in fault.message and "t0: u8[256]" in fault.message and f"(line {fault.line}, " in fault.message
    assert fault.thread == (0, 0, 0)


@pytest.mark.parametrize("options", [TOGETHER, REPEATED])
def test_a_block_reads_what_another_wrote(options: Options) -> None:
    ptx = kernel(SECOND_READS, 1)
    fault = fault_in(ptx, options)
    assert fault is not None and fault.verdict is Verdict.NON_DETERMINISTIC and fault.line == line_of(ptx, "FAULT")
    assert "reads what block (0, 0, 0) wrote, byte 0 of t0: u8[256], with no order between (line " in fault.message
    assert f"(line {line_of(ptx, 'EARLIER')}, " in fault.message and fault.block == (1, 0, 0)


CLEAN = {
    "the same value": (BOTH_WRITE.replace("], %r6", "], %r5"), {}),
    "places of their own": (BOTH_WRITE.replace("%rd3, %r5, 4", "%rd3, %r1, 4"), {}),
    "one block": (BOTH_WRITE, {"grid": 1}),
    "one launch after another": (BOTH_WRITE, {"grid": 1, "launches": 3}),
    "atomics": (BOTH_WRITE.replace("st.global.b32", "st.global.b32 [%rd3], 0; red.global.add.u32"), {"grid": 1}),
    "one cluster": (
        SECOND_READS.replace("  ret;\nREAD:", "  barrier.cluster.arrive; barrier.cluster.wait; ret;\nREAD:").replace(
            "  ld.", "  barrier.cluster.arrive; barrier.cluster.wait;\n  ld."
        ),
        {"cluster": 2},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CLEAN)
def test_what_is_no_race_is_not_reported(name: str) -> None:
    body, launch = CLEAN[name]
    assert fault_in(kernel(body, 1), **launch) is None
