"""Warps in a random order: what lockstep hides is seen, and what is right stays right."""

from __future__ import annotations

import numpy as np
import pytest

from cutegen_lab.emulator import Options, Order
from tests.emulator.machine import kernel, run

# Warp 1 reads a flag that warp 0 sets: strong operations, so no race, but nothing waits. Lockstep always reads it set.
FLAG = """
  mov.b32 %r10, flag; setp.ne.s32 %p1, %r1, 0; @%p1 bra MADE;
  st.volatile.shared.b32 [%r10], 0;
MADE:
  bar.sync 0; setp.ge.s32 %p1, %r1, 32; @%p1 bra READS;
  st.volatile.shared.b32 [%r10], 7;
READS:
  ld.volatile.shared.b32 %r11, [%r10]; shl.b32 %r12, %r1, 2; cvt.u64.u32 %rd10, %r12; add.s64 %rd10, %rd1, %rd10;
  st.global.b32 [%rd10], %r11; ret;
"""
WAITS = FLAG.replace("READS:", "READS: bar.sync 0;")
SPINS = FLAG.replace(" shl.b32", " setp.ne.s32 %p2, %r11, 7; @%p2 bra READS; shl.b32")


def answers(body: str) -> set[bytes]:
    found = set()
    for seed in range(12):
        out = np.zeros(128, np.uint32)
        options = Options(order=Order(warps=seed), races=True)
        ran = run(kernel(body, 1, ".shared .b32 flag;"), [out], block=(128, 1, 1), options=options)
        assert ran.execution.fault is None, ran.execution.fault
        found.add(out.tobytes())
    return found


def test_an_answer_that_depends_on_the_order_of_warps_is_seen() -> None:
    assert len(answers(FLAG)) > 1


@pytest.mark.parametrize("body", [WAITS, SPINS])
def test_one_that_waits_has_one_answer(body: str) -> None:
    assert answers(body) == {np.full(128, 7, np.uint32).tobytes()}


def test_without_a_search_for_races_warps_go_in_lockstep() -> None:
    out = np.zeros(128, np.uint32)
    for seed in range(6):
        run(kernel(FLAG, 1, ".shared .b32 flag;"), [out], block=(128, 1, 1),
            options=Options(order=Order(warps=seed), races=False))  # fmt: skip
        assert (out == 7).all()


def test_the_opposite_order_parts_warps() -> None:
    assert Order(clock=5).opposite().warps and not Order(clock=5).opposite().opposite().warps
