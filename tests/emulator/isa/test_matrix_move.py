"""ldmatrix, stmatrix and movmatrix against the ISA's figures: who holds which element of an 8 by 8 matrix."""

from __future__ import annotations

import numpy as np
import pytest

from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.emulator import Options
from tests.emulator.planted import ptx_lines
from tests.emulator.ptx_kernel import kernel, run

SHARED = ".shared .align 16 .b8 s[2048];"
# Each thread copies 16 bytes a warp's 512; rows lie at lane * 16 of the warp's part.
COPY_IN = """
  shl.b32 %r2, %r1, 4; mov.u32 %r3, s; add.s32 %r4, %r3, %r2; mul.wide.u32 %rd5, %r1, 16; add.s64 %rd5, %rd1, %rd5;
  ld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%rd5]; st.shared.v4.b32 [%r4], {%r10, %r11, %r12, %r13};
  bar.sync 0; mul.wide.u32 %rd6, %r1, 16; add.s64 %rd6, %rd2, %rd6;
"""
WARPS = 2


def matrices() -> np.ndarray:
    """[warp, matrix, row, column] of 16-bit elements."""
    return np.random.default_rng(1).integers(0, 65536, (WARPS, 4, 8, 8)).astype(np.uint16)


def held(x: np.ndarray, transposed: bool) -> np.ndarray:
    """[warp, lane, matrix, element]: what each lane holds of the matrices ``x``."""
    out = np.zeros((len(x), 32, x.shape[1], 2), np.uint16)
    for lane in range(32):
        for e in range(2):
            row, column = lane // 4, 2 * (lane % 4) + e
            out[:, lane, :, e] = x[:, :, column, row] if transposed else x[:, :, row, column]
    return out


def execute(body: str, tensors: list[np.ndarray], options: Options | None = None) -> Fault | None:
    ptx = kernel(body + "  ret;", 2, declarations=SHARED)
    return run(ptx, tensors, block=(32 * WARPS, 1, 1), lines=ptx_lines(ptx), options=options).execution.fault


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("space", [".shared", ".shared::cta", ""])
def test_ldmatrix(count: int, trans: str, space: str) -> None:
    x, out = matrices(), np.zeros((WARPS, 32, 4), np.uint32)
    names = ", ".join(f"%r{20 + i}" for i in range(count))
    generic = "cvt.u64.u32 %rd7, %r4; cvta.shared.u64 %rd7, %rd7;" if not space else ""
    load = f"ldmatrix.sync.aligned.m8n8.x{count}{trans}{space}.b16 {{{names}}}, [{'%r4' if space else '%rd7'}];"
    stores = "".join(f"st.global.b32 [%rd6+{4 * i}], %r{20 + i};" for i in range(count))
    assert execute(f"{COPY_IN} {generic} {load} {stores}", [x, out]) is None
    got = out.view(np.uint16).reshape(WARPS, 32, 4, 2)[:, :, :count]
    assert (got == held(x, bool(trans))[:, :, :count]).all()


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", ".trans"])
def test_stmatrix(count: int, trans: str) -> None:
    """Registers that hold matrices ``x`` write them out; what is not written keeps its bytes."""
    x, out = matrices(), np.zeros((WARPS, 4, 8, 8), np.uint16)
    registers = np.ascontiguousarray(held(x, bool(trans)))
    names = ", ".join(f"%r{10 + i}" for i in range(count))
    body = (
        f"{COPY_IN} st.shared.v4.b32 [%r4], {{0, 0, 0, 0}}; bar.warp.sync 0xffffffff;"
        f"stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%r4], {{{names}}}; bar.warp.sync 0xffffffff;"
        "ld.shared.v4.b32 {%r20, %r21, %r22, %r23}, [%r4]; st.global.v4.b32 [%rd6], {%r20, %r21, %r22, %r23};"
    )
    assert execute(body, [registers, out], Options(races=True)) is None
    assert (out[:, :count] == x[:, :count]).all() and (out[:, count:] == 0).all()


def test_movmatrix() -> None:
    x, out = matrices(), np.zeros((WARPS, 32, 4), np.uint32)
    registers = np.ascontiguousarray(held(x, False))
    body = f"{COPY_IN} movmatrix.sync.aligned.m8n8.trans.b16 %r20, %r11; st.global.b32 [%rd6], %r20;"
    assert execute(body, [registers, out]) is None
    assert (out.view(np.uint16).reshape(WARPS, 32, 4, 2)[:, :, 0] == held(x, True)[:, :, 1]).all()


LOAD = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20, %r21, %r22, %r23}, [%r4];"
STORE = "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r4], {%r10, %r11, %r12, %r13};"
BROKEN = {
    "misaligned": (f"add.s32 %r4, %r4, 8; {LOAD}", Verdict.MISALIGNED, 0, "not a multiple of 16"),
    "past the end": (f"add.s32 %r4, %r4, 1536; {LOAD}", Verdict.OUT_OF_BOUNDS, 32, "outside its 2048 bytes"),
    "past the end, stored": (f"add.s32 %r4, %r4, 1536; {STORE}", Verdict.OUT_OF_BOUNDS, 32, "outside its 2048"),
    "never written": (f"add.s32 %r4, %r4, 512; {LOAD} st.global.b32 [%rd6], %r22;", Verdict.UNINITIALISED_READ, 32,
                      "nothing has written"),
    "some lanes only": (f"setp.lt.u32 %p1, %r1, 9; @%p1 {LOAD}", Verdict.BARRIER_DIVERGENCE, 0, "9 of the 32"),
    "not shared": (LOAD.replace(".shared", "").replace("%r4", "%rd1"), Verdict.OUT_OF_BOUNDS, 0, "not shared memory"),
    "eight bits": (LOAD.replace("m8n8", "m16n16").replace("b16", "b8"), Verdict.UNSUPPORTED, None, "m16n16"),
    "three": (LOAD.replace(", %r23", ""), Verdict.UNSUPPORTED, None, "ldmatrix"),
    "stored without a barrier": (f"shl.b32 %r5, %r1, 4; xor.b32 %r5, %r5, 512; add.s32 %r4, %r3, %r5; {STORE}",
                                 Verdict.NON_DETERMINISTIC, 0, "a race"),
    "loaded without a barrier": (f"st.shared.b32 [%r4], %r1; xor.b32 %r5, %r2, 512; add.s32 %r4, %r3, %r5; {LOAD}",
                                 Verdict.NON_DETERMINISTIC, 0, "thread (32, 0, 0) wrote"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_mistake_is_found(name: str) -> None:
    code, verdict, thread, words = BROKEN[name]
    before = COPY_IN.replace("bar.sync 0;", "") if name == "stored without a barrier" else COPY_IN
    fault = execute(before + code, [matrices(), np.zeros((WARPS, 32, 4), np.uint32)], Options(races=True))
    assert fault is not None and fault.verdict is verdict and words in fault.message, fault
    assert "matrix" in fault.instruction
    assert thread is None or fault.thread == (thread, 0, 0)
