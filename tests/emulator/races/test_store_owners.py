"""Runs too large for a full search for races: stores of two clusters to one address are still found."""

from __future__ import annotations

import numpy as np
import pytest

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator import Options, Order
from cutegen_lab.emulator.options import RACES_BYTES
from tests.emulator.ptx_kernel import kernel, run

GRID, THREADS = 600, 64
EARLY = """
  mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd1, %rd3; setp.ne.u32 %p1, %r2, 400; @%p1 bra OWN;
  st.global.b32 [%rd3+{away}], {value};
  OWN: st.global.b32 [%rd3], 5; ret;
"""


@pytest.mark.parametrize("order", [Order(), Order(reverse=True), Order(seed=9, clock=4)])
@pytest.mark.parametrize(
    ("away", "value", "fault"),
    [
        (4 * THREADS, 7, True),  # the next block's, which it overwrites in most orders
        (4 * THREADS, 5, False),  # … with the same
        (4 * GRID * THREADS, 7, False),  # nobody's
        (0, 7, False),  # its own
    ],
)
def test_one_block_of_many_writes_where_its_neighbour_does(order: Order, away: int, value: int, fault: bool) -> None:
    tensor = np.zeros(RACES_BYTES // 2, np.uint32)
    ptx = kernel(EARLY.format(away=away, value=value), 1)
    ran = run(ptx, [tensor], block=(THREADS, 1, 1), grid=(GRID, 1, 1), inputs=0, options=Options(order=order))
    found = ran.execution.fault
    assert (found is not None) is fault, found
    assert found is None or (found.verdict is Verdict.NON_DETERMINISTIC and "cluster 40" in found.message)


def test_another_launch_may_write_anew() -> None:
    body = """mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd1, %rd3; ld.global.b32 %r4, [%rd2]; xor.b32 %r5, %r1, %r4;
      and.b32 %r5, %r5, 64; st.global.b32 [%rd3], %r5; ret;"""
    tensors = [np.zeros(RACES_BYTES // 2, np.uint32), np.zeros(4, np.uint32)]
    ran = run(kernel(body, 2), tensors, block=(THREADS, 1, 1), grid=(GRID, 1, 1), inputs=0, launches=2,
              options=Options(shadow=False))  # fmt: skip
    assert ran.execution.fault is None, ran.execution.fault


def test_a_cluster_s_blocks_may_write_one_place() -> None:
    """They may wait for each other at the cluster's barrier."""
    body = """shr.u32 %r4, %r2, 1; mul.wide.u32 %rd3, %r4, 4; add.s64 %rd3, %rd1, %rd3; setp.ne.u32 %p1, %r1, 0;
      st.global.b32 [%rd3], %r2; ret;"""
    tensor = np.zeros(RACES_BYTES // 2, np.uint32)
    ran = run(kernel(body, 1), [tensor], block=(1, 1, 1), grid=(GRID, 1, 1), cluster=(2, 1, 1), inputs=0)
    assert ran.execution.fault is None, ran.execution.fault
