"""Orders of execution: each runs all blocks once, a run and its opposite differ in clocks and addresses too."""

from __future__ import annotations

import numpy as np
import pytest

from cutegen_lab.emulator import Options, Order
from cutegen_lab.emulator.execution_order import CLOCK_BITS
from tests.emulator.ptx_kernel import kernel, run

WHICH_CAME_LAST = "  st.global.b32 [%rd1], %r2; ret;"
CLOCKS = """
  mov.u32 %r10, %clock; mov.u32 %r11, %clock_hi; mov.u64 %rd10, %clock64; mov.u64 %rd11, %globaltimer;
  mov.u32 %r12, %globaltimer_lo; mov.u32 %r13, %globaltimer_hi;
  st.global.v2.b32 [%rd1], {%r10, %r11}; st.global.v2.b64 [%rd1+16], {%rd10, %rd11};
  st.global.v2.b32 [%rd1+8], {%r12, %r13}; ret;
"""


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64, 1000])
@pytest.mark.parametrize("order", [Order(), Order(reverse=True), Order(seed=5), Order(seed=5, reverse=True)])
def test_every_cluster_runs_once(order: Order, count: int) -> None:
    parts = [order.clusters(first, first + 48, count) for first in range(0, count, 48)]
    assert sorted(np.concatenate(parts)) == list(range(count))


def test_a_seed_shuffles_and_the_opposite_reverses() -> None:
    order = Order(seed=9, clock=5)
    taken = order.clusters(0, 100, 100)
    assert list(taken) != list(range(100)) and list(taken) == list(Order(seed=9).clusters(0, 100, 100))
    assert list(order.opposite().clusters(0, 100, 100)) == list(taken[::-1])
    assert order.opposite().opposite() == order
    assert order.opposite().clock ^ order.clock == (1 << CLOCK_BITS) - 1


@pytest.mark.parametrize(("order", "last"), [(Order(), 599), (Order(reverse=True), 0)])
def test_blocks_run_in_the_order_asked_for(order: Order, last: int) -> None:
    out = np.zeros(1, np.uint32)
    ran = run(
        kernel(WHICH_CAME_LAST, 1), [out], block=(32, 1, 1), grid=(600, 1, 1), options=Options(order=order, races=False)
    )
    assert ran.execution.fault is None and out[0] == last


def test_clocks_start_where_they_are_told_and_go_on_over_launches() -> None:
    start = 0x123456789ABCDEF0
    out = np.zeros(4, np.uint64)
    for launches in (1, 2):
        run(kernel(CLOCKS, 1), [out], block=(32, 1, 1), options=Options(order=Order(clock=start)), launches=launches)
        words = out.view(np.uint32)
        now = int(out[2])
        assert start + launches - 1 <= now < start + 100 * launches and int(out[3]) == now
        assert [int(w) for w in words[:4]] == [now & 0xFFFFFFFF, now >> 32] * 2


def placed(order: Order) -> list[int]:
    """Where two tensors lie."""
    addresses = "  st.global.b64 [%rd1], %rd1; st.global.b64 [%rd1+8], %rd2; ret;"
    out = np.zeros(2, np.uint64)
    options = Options(order=order, hidden_addresses=False)
    ran = run(kernel(addresses, 2), [out, out.copy()], block=(1, 1, 1), options=options)
    assert ran.execution.fault is None
    return [int(v) for v in out]


@pytest.mark.parametrize("clock", [0, 5])
def test_tensors_lie_the_other_way_round_and_less_aligned(clock: int) -> None:
    order = Order(clock=clock)
    (a, b), (c, d) = placed(order), placed(order.opposite())
    assert a < b and c > d
    assert a % 512 == b % 512 == 0 and c % 32 == d % 32 == 16


def test_tensors_lie_elsewhere_in_every_run() -> None:
    runs = [placed(Order(clock=clock, reverse=reverse)) for clock in range(1, 40) for reverse in (False, True)]
    for bit in range(9, 37):
        assert {at >> bit & 1 for run in runs for at in run} == {0, 1}, bit
    assert len({b - a for a, b in runs}) > 70
    assert all(0x7F00_0000_0000 <= at < 0x7FFF_0000_0000 for run in runs for at in run)


def test_sectors_are_counted_by_tensor_in_either_placement() -> None:
    copy = """
  mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
  ld.global.b32 %r4, [%rd4]; st.global.b32 [%rd5], %r4; ret;"""
    for order in (Order(), Order(reverse=True)):
        tensors = [np.zeros(1024, np.uint32), np.zeros(1024, np.uint32)]
        ran = run(kernel(copy, 2), tensors, block=(128, 1, 1), grid=(8, 1, 1), options=Options(order=order), inputs=1)
        counters = ran.execution.counters
        assert (counters["dram_load_bytes"], counters["dram_store_bytes"]) == (4096, 4096)
