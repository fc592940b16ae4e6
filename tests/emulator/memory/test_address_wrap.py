"""Shared addresses in 32-bit registers wrap around at 2**32 when an offset is added, as the compiler assumes."""

from __future__ import annotations

import numpy as np
import pytest

from cutegen_lab.core.verdict import Fault, Verdict
from tests.emulator.ptx_kernel import kernel, run

SHARED = ".shared .align 16 .b8 s[4096];"
FAR = 51184
# %r5: address of the thread's 16 bytes, less FAR: negative as a signed number, so [%r5+FAR] wraps around
ADDRESS = f"  mov.u32 %r4, s; shl.b32 %r5, %r1, 4; add.s32 %r5, %r5, %r4; sub.s32 %r5, %r5, {FAR};\n"
# global addresses of the thread's 16 bytes of the input (%rd5) and of the output (%rd6)
GLOBAL = "  mul.wide.u32 %rd4, %r1, 16; add.s64 %rd5, %rd1, %rd4; add.s64 %rd6, %rd2, %rd4;\n"
FILL = f"""  ld.global.v4.b32 {{%r10, %r11, %r12, %r13}}, [%rd5];
  st.shared.v4.b32 [%r5+{FAR}], {{%r10, %r11, %r12, %r13}}; bar.sync 0;
"""
OUT = f"""  ld.shared.v4.b32 {{%r20, %r21, %r22, %r23}}, [%r5+{FAR}];
  st.global.v4.b32 [%rd6], {{%r20, %r21, %r22, %r23}};
"""
BULK = f"""
  add.s32 %r6, %r4, 2048; sub.s32 %r7, %r6, {FAR}; mov.u32 %r8, %tid.x; setp.eq.u32 %p1, %r8, 0;
  @%p1 mbarrier.init.shared.b64 [%r7+{FAR}], 1;
  fence.mbarrier_init.release.cluster; fence.proxy.async; bar.sync 0;
  @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd7, [%r7+{FAR}], 512;
  mov.u32 %r9, s; sub.s32 %r9, %r9, {FAR};
  @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r9+{FAR}], [%rd1], 512, [%r7+{FAR}];
again: mbarrier.try_wait.parity.shared.b64 %p2, [%r7+{FAR}], 0;
  @!%p2 bra again;
"""


def execute(body: str, x: np.ndarray, out: np.ndarray) -> Fault | None:
    ptx = kernel(ADDRESS + GLOBAL + body + "  ret;", 2, declarations=SHARED)
    return run(ptx, [x, out], inputs=1, block=(32, 1, 1)).execution.fault


@pytest.mark.parametrize(
    "body",
    [
        FILL + OUT,
        f"  cp.async.cg.shared.global [%r5+{FAR}], [%rd5], 16; cp.async.wait_all; bar.sync 0;\n" + OUT,
        BULK + OUT,
    ],
    ids=["st and ld", "cp.async", "bulk copy"],
)
def test_copies_through_shared_memory(body: str) -> None:
    x, out = np.arange(32 * 4, dtype=np.uint32), np.zeros(32 * 4, np.uint32)
    assert execute(body, x, out) is None
    assert np.array_equal(out, x)


def test_atomics() -> None:
    x, out = np.arange(32 * 4, dtype=np.uint32), np.zeros(32 * 4, np.uint32)
    assert execute(f"{FILL}  atom.shared.add.u32 %r14, [%r5+{FAR}], 7;\n{OUT}", x, out) is None
    assert np.array_equal(out, x + 7 * (np.arange(32 * 4) % 4 == 0))


def test_matrices() -> None:
    """A matrix's row i is at lane i's address; each lane gets two of its 16-bit elements: those at 4 * lane bytes."""
    x, out = np.arange(32 * 4, dtype=np.uint32), np.zeros(32 * 4, np.uint32)
    load = f"  ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r20}}, [%r5+{FAR}]; st.global.b32 [%rd6], %r20;\n"
    assert execute(FILL + load, x, out) is None
    assert np.array_equal(out[::4], x[:32])


@pytest.mark.parametrize(
    ("offset", "message"),
    [
        (FAR + 4096, "16-byte access to shared memory at byte 4096, outside its 4096 bytes"),
        (FAR - 16, "16-byte access to shared memory at byte -16, outside its 4096 bytes"),
        (FAR - 2048, "shared address of block rank 254 in a cluster of 1"),
        (FAR + (2 << 24), "shared address of block rank 1 in a cluster of 1"),
    ],
)
def test_what_lies_outside_still_traps(offset: int, message: str) -> None:
    x, out = np.arange(32 * 4, dtype=np.uint32), np.zeros(32 * 4, np.uint32)
    fault = execute(FILL.replace(str(FAR), str(offset)) + OUT, x, out)
    assert fault is not None and fault.verdict is Verdict.OUT_OF_BOUNDS and message in fault.message


def test_an_offset_below_the_first_byte_traps() -> None:
    x, out = np.arange(32 * 4, dtype=np.uint32), np.zeros(32 * 4, np.uint32)
    below = "  mov.u32 %r9, s; st.shared.b32 [%r9+-4096], 0;\n"
    fault = execute(below, x, out)
    assert fault is not None and fault.verdict is Verdict.OUT_OF_BOUNDS


def test_64_bit_addresses_do_not_wrap_around() -> None:
    x, out = np.arange(32 * 4, dtype=np.uint32), np.zeros(32 * 4, np.uint32)
    fault = execute(f"  cvt.u64.u32 %rd7, %r5; st.shared.b32 [%rd7+{FAR}], 0;\n", x, out)
    assert fault is not None and fault.verdict is Verdict.OUT_OF_BOUNDS
