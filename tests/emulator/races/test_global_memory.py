"""Races in global memory: each planted race is found with both lines, its twin is not reported."""

from __future__ import annotations

import numpy as np
import pytest

from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.emulator import Options, Order
from tests.emulator.planted import line_of, ptx_lines, variant
from tests.emulator.ptx_kernel import kernel, run

# %r1: thread, %r2: block, %rd3: the thread's own word, %rd4: that of thread 63 - %r1, %rd5: a word of results of each
# thread in the grid, %rd6: a flag. %p1: the first warp, %p2: thread 0, %p3: block 0.
START = """
  mov.u32 %r6, %tid.x; mad.lo.s32 %r7, %r2, 64, %r6; mov.u32 %r1, %r6; mul.wide.u32 %rd3, %r1, 4;
  sub.s64 %rd4, 252, %rd3; add.s64 %rd4, %rd1, %rd4; add.s64 %rd3, %rd1, %rd3; mul.wide.u32 %rd5, %r7, 4;
  add.s64 %rd5, %rd2, %rd5; add.s64 %rd6, %rd1, 256; setp.lt.u32 %p1, %r1, 32; setp.eq.u32 %p2, %r1, 0;
  setp.eq.u32 %p3, %r2, 0;
"""
CLUSTER_MEETS = "barrier.cluster.arrive; barrier.cluster.wait;"
# name: (kernel, blocks, of a cluster)
PLANTED = {
    "read by another thread": (
        """st.global.b32 [%rd3], %r1;  // EARLIER
        <bar.sync 0;>
        ld.global.b32 %r8, [%rd4];  // FAULT
        st.global.b32 [%rd5], %r8;""", 1, 1),
    "written by two": (
        """@%p1 st.global.b32 [%rd3], %r1;  // EARLIER
        <bar.sync 0;>
        @!%p1 st.global.b32 [%rd4], %r1;  // FAULT""", 1, 1),
    "overwritten while read": (
        """st.global.b32 [%rd3], %r1; bar.sync 0;
        ld.global.b32 %r8, [%rd4];  // EARLIER
        <bar.sync 0;>
        st.global.b32 [%rd3], %r8;  // FAULT""", 1, 1),
    "another lane of the warp": (
        """@%p1 st.global.b32 [%rd3], %r1;  // EARLIER
        <bar.warp.sync 0xffffffff;>
        xor.b32 %r8, %r1, 1; mul.wide.u32 %rd7, %r8, 4; add.s64 %rd7, %rd1, %rd7;
        @%p1 ld.global.b32 %r8, [%rd7];  // FAULT""", 1, 1),
    "counted and read": (
        """@%p2 st.global.b32 [%rd1], 0; bar.sync 0;
        red.global.add.u32 [%rd1], 1;  // EARLIER
        <bar.sync 0;>
        ld.global.b32 %r8, [%rd1];  // FAULT""", 1, 1),
    "in the cluster": (
        """@%p3 st.global.b32 [%rd3], %r1;  // EARLIER
        <barrier.cluster.arrive; barrier.cluster.wait;>
        @!%p3 ld.global.b32 %r8, [%rd4];  // FAULT""", 2, 2),
    "overwritten in the cluster": (
        """@%p3 st.global.b32 [%rd3], %r1; barrier.cluster.arrive; barrier.cluster.wait;
        @%p3 ld.global.b32 %r8, [%rd4];  // EARLIER
        <barrier.cluster.arrive; barrier.cluster.wait;>
        @!%p3 st.global.b32 [%rd4], 7;  // FAULT""", 2, 2),
    "overwritten by another block": (
        """@%p3 ld.global.b32 %r8, [%rd3];  // EARLIER
        <add.s64 %rd3, %rd3, 260;>
        @!%p3 st.global.b32 [%rd3], 7;  // FAULT""", 2, 1),
    "a plain read of what was written relaxed": (
        """@%p3 st.relaxed.gpu.global.b32 [%rd3], 5;  // EARLIER
        <@%p3 bra END; ld.relaxed.gpu.global.b32 %r8, [%rd3]; bra END;>
        @!%p3 ld.global.b32 %r8, [%rd3];  // FAULT
        END:""", 2, 1),
    "a plain read of what was added": (
        """@%p3 red.relaxed.gpu.global.add.u32 [%rd3], 1;  // EARLIER
        <@%p3 bra END; ld.relaxed.gpu.global.b32 %r8, [%rd3]; bra END;>
        @!%p3 ld.global.b32 %r8, [%rd3];  // FAULT
        END:""", 2, 1),
    "for the block, in a cluster": (
        """@%p3 st.relaxed.cta.global.b32 [%rd3], 5;  // EARLIER
        <@%p3 bra END; add.s64 %rd3, %rd3, 260;>
        @!%p3 ld.relaxed.cta.global.b32 %r8, [%rd3];  // FAULT
        END:""", 2, 2),
    "added by a warp that a plain loop waits for": (
        """@%p2 st.global.b32 [%rd6], 0; bar.sync 0; @!%p1 bra LOOK;
        @%p2 st.relaxed.gpu.global.b32 [%rd6], 1;  // EARLIER
        <bra END; LOOK: ld.relaxed.gpu.global.b32 %r8, [%rd6]; bra END;>
        LOOK: ld.global.b32 %r8, [%rd6];  // FAULT
        END:""", 1, 1),
}  # fmt: skip
ONE_BY_ONE = Options(races=True, shadow=False, lanes=64)
ORDERS = [Options(races=True, shadow=False), ONE_BY_ONE]


def text(name: str, fixed: bool) -> str:
    body = variant(PLANTED[name][0], fixed)
    if fixed:
        body = body.replace("bra END; LOOK:", "bra END;\nSEEN:").replace("bra LOOK", "bra SEEN")
    return kernel(START + body + "  ret;", 2)


def fault_in(ptx: str, blocks: int = 1, cluster: int = 1, options: Options = ORDERS[0]) -> Fault | None:
    tensors = [np.full(256, 9, np.uint32), np.zeros(64 * blocks, np.uint32)]
    return run(
        ptx, tensors, block=(64, 1, 1), grid=(blocks, 1, 1), cluster=(cluster, 1, 1), inputs=0, lines=ptx_lines(ptx),
        options=options,
    ).execution.fault  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_race_is_found(name: str) -> None:
    _, blocks, cluster = PLANTED[name]
    ptx = text(name, fixed=False)
    for options in ORDERS[: 2 if cluster == 1 else 1]:
        fault = fault_in(ptx, blocks, cluster, options)
        assert fault is not None and fault.verdict is Verdict.NON_DETERMINISTIC, fault
        assert "a race: " in fault.message and "with no order between" in fault.message
        assert fault.line == line_of(ptx, "FAULT"), fault
        assert f"(line {line_of(ptx, 'EARLIER')}, `" in fault.message


@pytest.mark.parametrize("name", PLANTED)
def test_its_clean_twin_is_not_reported(name: str) -> None:
    _, blocks, cluster = PLANTED[name]
    ptx = text(name, fixed=True)
    for options in [*ORDERS, Options(races=True, shadow=False, order=Order(reverse=True, warps=3))]:
        assert fault_in(ptx, blocks, cluster, options) is None


SWAPS = """
  {look} %r8, [%rd6];
AGAIN:
  add.s32 %r9, %r8, 1; mov.b32 %r10, %r8;
  atom.relaxed.gpu.global.cas.b32 %r8, [%rd6], %r10, %r9; setp.ne.u32 %p4, %r8, %r10; @%p4 bra AGAIN;
  {more}
  ret;
"""


def test_a_plain_read_may_guess_what_a_compare_and_swap_finds() -> None:
    """As atomicAdd of double does in the CUDA C++ Programming Guide. A guess at another kind of write races."""
    guess = SWAPS.format(look="ld.global.b32", more="")
    for options in ORDERS:
        assert fault_in(kernel(START + guess, 2), 4, 1, options) is None
    for more in ("red.global.add.u32 [%rd6], 1;", "ld.global.b32 %r11, [%rd6];"):
        planted = kernel(START + SWAPS.format(look="ld.global.b32", more=more), 2)
        fault = fault_in(planted, 4, 1, ONE_BY_ONE)
        assert fault is not None and "a race: reads what " in fault.message
    relaxed = kernel(START + SWAPS.format(look="ld.relaxed.gpu.global.b32", more="red.global.add.u32 [%rd6], 1;"), 2)
    assert fault_in(relaxed, 4, 1, ONE_BY_ONE) is None


def test_lanes_that_store_different_values_at_one_place_race() -> None:
    fault = fault_in(kernel(START + "@%p1 st.global.b32 [%rd1], %r1;  // FAULT\n ret;", 2))
    assert fault is not None and "writes something else where thread (31, 0, 0) of its own block wrote" in fault.message
    assert fault_in(kernel(START + "st.global.b32 [%rd1], 7; ret;", 2), blocks=3) is None


def test_the_reader_and_the_writer_may_be_ordered_by_a_flag() -> None:
    """Block 0 reads and then releases; block 1 acquires and then overwrites."""
    body = """
  @!%p3 bra SECOND;
  ld.global.b32 %r8, [%rd3]; bar.sync 0;
  @%p2 {set} [%rd6], 1;
  bra END;
SECOND:
  @!%p2 bra MET;
SPIN:
  {look} %r9, [%rd6]; setp.ne.u32 %p4, %r9, 1; @%p4 bra SPIN;
MET:
  bar.sync 0; st.global.b32 [%rd3], %r2;
END: ret;
"""
    ordered = {"set": "st.release.gpu.global.b32", "look": "ld.acquire.gpu.global.b32"}
    assert fault_in(kernel(START + body.format(**ordered), 2), 2) is None
    for name, weaker in {"set": "st.relaxed.gpu.global.b32", "look": "ld.relaxed.gpu.global.b32"}.items():
        fault = fault_in(kernel(START + body.format(**ordered | {name: weaker}), 2), 2)
        assert fault is not None and "overwrites what block (0, 0, 0) read" in fault.message, name
