"""Reads of uninitialised shared memory, local memory and registers: a fault at the line of the read where the value
affects a result, and none elsewhere."""
# ruff: noqa: E501 - tables of kernels, one a line

from __future__ import annotations

import numpy as np
import pytest

from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.emulator import Options
from tests.emulator.planted import line_of, ptx_lines
from tests.emulator.ptx_kernel import kernel, run

# Threads below 16 fill their word (and 16 bytes) of shared memory; %p1 holds for them. Everyone's own word is at [%r4],
# its 16 bytes at [%r5]; %rd5 is where it stores its result.
DECLARED = ".shared .align 16 .b8 s[2048]; .local .align 4 .b8 l[16]; .reg .b16 %h<10>;"
FILLED = """
  mov.u32 %r3, s; shl.b32 %r4, %r1, 2; add.s32 %r4, %r3, %r4; shl.b32 %r5, %r1, 4; add.s32 %r5, %r5, %r3;
  add.s32 %r5, %r5, 1024; mul.wide.u32 %rd5, %r1, 4; add.s64 %rd5, %rd2, %rd5; add.s64 %rd4, %rd5, 0;
  setp.lt.u32 %p1, %r1, 16; sub.s64 %rd4, %rd5, %rd2; add.s64 %rd4, %rd4, %rd1; ld.global.b32 %r9, [%rd4];
  @%p1 st.shared.b32 [%r4], %r9;
  @%p1 st.shared.v4.b32 [%r5], {%r9, %r9, %r9, %r9};
  bar.sync 0;
"""
READ = "  ld.shared.b32 %r8, [%r4];  // FAULT\n"
# Of A, rows 0 to 7 are there and 8 to 15 are not. B is 0.
PRODUCT = """
  mov.b32 %r22, 0; mov.b32 %f5, 0;
  ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20, %r24, %r21, %r25}, [%r5];  // FAULT
  mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r20, %r21}, {%r22}, {%f5, %f5, %f5, %f5};
"""
KEPT = "  @%p1 st.global.b32 [%rd5], %r8; ret;"

DROPPED = {
    "at the store": READ + KEPT,
    "after arithmetic": READ + "add.s32 %r8, %r8, 0; mul.lo.s32 %r8, %r8, 1;" + KEPT,
    "after a sum of rows in a warp": READ + "shfl.sync.bfly.b32 %r10, %r8, 8, 31, -1; sub.s32 %r11, %r8, %r10;"
        "add.s32 %r8, %r11, %r10;" + KEPT,
    "by selp": READ + "selp.b32 %r8, %r8, 7, %p1; @%p1 st.global.b32 [%rd5], %r8; @!%p1 st.global.b32 [%rd5], %r8; ret;",
    "by a predicate": READ + "setp.eq.s32 %p2, %r8, 5; and.pred %p2, %p2, %p1; or.pred %p2, %p2, %p1;"
        "@%p2 st.global.b32 [%rd5], %r8; ret;",
    "through shared memory": READ + "add.s32 %r8, %r8, 0; bar.sync 0; st.shared.b32 [%r4], %r8; bar.sync 0;"
        "ld.shared.b32 %r8, [%r4];" + KEPT,
    "overwritten in shared memory": READ + "st.shared.b32 [%r4], %r8; bar.sync 0; @!%p1 st.shared.b32 [%r4], 7;"
        "bar.sync 0; ld.shared.b32 %r8, [%r4]; st.global.b32 [%rd5], %r8; ret;",
    "through a generic address": "cvt.u64.u32 %rd7, %r4; cvta.shared.u64 %rd7, %rd7; ld.b32 %r8, [%rd7]; st.b32 [%rd7], %r8;"
        "ld.b32 %r8, [%rd7];" + KEPT,
    "through local memory": READ + "mov.b64 %rd7, l; st.local.b32 [%rd7+4], %r8; ld.local.b32 %r8, [%rd7+4];" + KEPT,
    "of local memory": READ + "mov.b64 %rd7, l; ld.local.b32 %r9, [%rd7+4]; selp.b32 %r8, %r8, %r9, %p1;" + KEPT,
    "of a register": "@%p1 mov.b32 %r8, %r9; mov.b32 %r12, %r8; add.s32 %r8, %r12, 0;" + KEPT,
    "of a predicate": "@%p1 setp.eq.s32 %p3, %r9, %r9; mov.b32 %r8, %r9; and.pred %p4, %p1, %p3;"
        "@%p4 st.global.b32 [%rd5], %r8; ret;",
    "half of a pair": READ + "@%p1 mov.b32 {%h1, %h2}, %r9; mov.b32 %r10, {%h1, %h3}; add.f16x2 %r11, %r10, %r10;"
        "mov.b32 {%h4, %h5}, %r11; mov.b32 {%h5, _}, %r10; mov.b32 %r12, {%h5, %h2};"
        "@%p1 mov.b32 %r8, %r12;" + KEPT,
    "half by its bits": READ + "mov.b32 {%h1, %h2}, %r9; mov.b32 %r10, {%h1, %h3}; shl.b32 %r11, %r10, 16;"
        "shr.u32 %r11, %r11, 16; and.b32 %r12, %r10, 0xffff; xor.b32 %r13, %r11, %r12; prmt.b32 %r14, %r10, %r9, 0x7610;"
        "or.b32 %r8, %r13, %r14;" + KEPT,
    "half by a conversion": READ + "cvt.rn.f16x2.f32 %r10, %f9, 0f3F800000; mov.b32 {%h1, %h2}, %r10;"
        "sub.f16 %h1, %h1, %h1; mov.b32 %r10, {%h1, %h1}; add.s32 %r8, %r10, %r9;" + KEPT,
    "bytes that no product of bytes reads": READ + "mov.b32 {%h1, %h2}, %r9; mov.b32 %r10, {%h1, %h3}; mov.b32 %r11, 0;"
        "dp2a.lo.u32.u32 %r8, %r11, %r10, %r9;" + KEPT,
    "rows of a product": PRODUCT + "mov.b32 %r23, %f1; add.s32 %r8, %r9, %r23;" + KEPT,
}  # fmt: skip
MATTERS = {
    "stored": (READ + "st.global.b32 [%rd5], %r8; ret;", "a store to global memory depends"),
    "stored by a generic address": (READ + "st.b32 [%rd5], %r8; ret;", "a store to global memory depends"),
    "an address": (READ + "mul.wide.u32 %rd7, %r8, 0; add.s64 %rd7, %rd7, %rd1; ld.global.b32 %r8, [%rd7]; ret;",
                   "an address depends"),
    "an address of shared memory": (READ + "mul.lo.s32 %r8, %r8, 0; add.s32 %r8, %r8, %r3; ld.shared.b32 %r9, [%r8]; ret;",
                                    "an address depends"),
    "a branch on a number that is not there": (READ + "setp.eq.s32 %p2, %r8, 1234567; @%p2 bra END; END: ret;",
                                               "a branch depends"),
    "whether to store": (READ + "setp.eq.s32 %p2, %r8, 1234567; @%p2 st.global.b32 [%rd5], 1; ret;", "whether this happens"),
    "whether to end": (READ + "setp.eq.s32 %p2, %r8, 1234567; @%p2 exit; ret;", "depends"),
    "what a predicate keeps": (READ + "mov.b32 %r9, 0; setp.eq.s32 %p2, %r8, 1234567; @%p2 mov.b32 %r9, 1;"
                               "st.global.b32 [%rd5], %r9; ret;", "a store to global memory depends"),
    "an atomic operation": (READ + "red.global.add.u32 [%rd5], %r8; ret;", "an atomic operation depends"),
    "a neighbour": (READ + "shfl.sync.bfly.b32 %r8, %r8, 16, 31, -1;" + KEPT, "a store to global memory depends"),
    "a vote": (READ + "setp.eq.s32 %p2, %r8, 1234567; vote.sync.any.pred %p3, %p2, -1; selp.b32 %r8, 1, 0, %p3;" + KEPT,
               "a store to global memory depends"),
    "a reduction of the warp": (READ + "redux.sync.add.s32 %r8, %r8, -1;" + KEPT, "a store to global memory depends"),
    "through another's shared memory": (READ + "xor.b32 %r10, %r4, 64; bar.sync 0; st.shared.b32 [%r10], %r8; bar.sync 0;"
                                        "ld.shared.b32 %r8, [%r4];" + KEPT, "a store to global memory depends"),
    "through a matrix in shared memory": (
        READ + "bar.sync 0; @!%p1 bra.uni END; END: stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r5], {%r8};"
        "bar.sync 0; ld.shared.b32 %r8, [%r5];" + KEPT, "a store to global memory depends"),
    "the other half": (READ + "shr.u32 %r8, %r8, 16; st.global.b32 [%rd5], %r8; ret;", "a store to global memory depends"),
    "by a product of bytes": (READ + "mov.b32 %r11, 0; dp2a.hi.u32.u32 %r8, %r11, %r8, %r9; st.global.b32 [%rd5], %r8; ret;",
                              "a store to global memory depends"),
    "by a barrier": (READ + "mul.lo.s32 %r8, %r8, 0; bar.sync %r8; ret;", "a barrier depends"),
}  # fmt: skip


def text(body: str) -> str:
    return kernel(FILLED + body, 2, declarations=DECLARED)


def fault_of(ptx: str, out: np.ndarray | None = None) -> Fault | None:
    data = np.arange(100, 132, dtype=np.uint32)
    out = np.zeros(32, np.uint32) if out is None else out
    return run(ptx, [data, out], inputs=1, block=(32, 1, 1), lines=ptx_lines(ptx)).execution.fault


@pytest.mark.parametrize("name", DROPPED)
def test_a_value_that_is_dropped_is_no_fault(name: str) -> None:
    out = np.zeros(32, np.uint32)
    assert fault_of(text(DROPPED[name]), out) is None
    assert (out[:16] == np.arange(100, 116)).all()


@pytest.mark.parametrize("name", MATTERS)
def test_a_value_that_matters_is_a_fault_where_it_was_read(name: str) -> None:
    body, words = MATTERS[name]
    ptx = text(body)
    fault = fault_of(ptx)
    assert fault is not None and fault.verdict is Verdict.UNINITIALISED_READ, fault
    assert "reads 4 bytes of shared memory at byte 64, which nothing has written" in fault.message
    assert words in fault.message and "(line " in fault.message
    assert fault.line == line_of(ptx, "FAULT") and fault.thread == (16, 0, 0)


def test_nor_does_it_help_to_ask_for_much_workspace() -> None:
    ptx = text(next(iter(MATTERS.values()))[0])
    fault = fault_of(ptx, np.zeros(40 << 18, np.uint32))
    assert fault is not None and fault.verdict is Verdict.UNINITIALISED_READ, fault


@pytest.mark.parametrize("code", ["st.global.f32 [%rd5], %f3;", """
  mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r22, %r22}, {%r21}, {%f5, %f5, %f5, %f5};
  st.global.f32 [%rd5], %f1;"""], ids=["its own row", "its column"])  # fmt: skip
def test_a_product_takes_it_along(code: str) -> None:
    ptx = text(PRODUCT + code + "ret;")
    fault = fault_of(ptx)
    assert fault is not None and fault.verdict is Verdict.UNINITIALISED_READ and fault.line == line_of(ptx, "FAULT"), (
        fault
    )
    assert "reads 16 bytes of shared memory at byte 1280" in fault.message


REGISTERS = {
    "never written": "add.s32 %r8, %r9, %r10;  // FAULT\n st.global.b32 [%rd5], %r8; ret;",
    "by some threads": "@%p1 mov.b32 %r10, 1; add.s32 %r8, %r9, %r10;  // FAULT\n st.global.b32 [%rd5], %r8; ret;",
    "on another path": "@%p1 bra.uni END; mov.b32 %r10, 1; END: add.s32 %r8, %r9, %r10;  // FAULT\n"
        "st.global.b32 [%rd5], %r8; ret;",
    "a guard": "@%p7 st.global.b32 [%rd5], %r9;  // FAULT\n ret;",
    "a branch": "@%p7 bra END;  // FAULT\n st.global.b32 [%rd5], %r9; END: ret;",
    "sums": "mov.b32 %r20, 0; mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r20, %r20}, {%r20},"
        "{%f5, %f5, %f5, %f5};  // FAULT\n st.global.f32 [%rd5], %f1; ret;",
}  # fmt: skip


@pytest.mark.parametrize("name", REGISTERS)
def test_a_register_that_nobody_has_written_is_named_where_it_is_read(name: str) -> None:
    ptx = text(REGISTERS[name])
    fault = fault_of(ptx)
    register = {"a guard": "%p7", "a branch": "%p7", "sums": "%f5"}.get(name, "%r10")
    assert fault is not None and fault.verdict is Verdict.UNINITIALISED_READ, fault
    assert f"reads register {register}, which nothing has written" in fault.message
    assert fault.line == line_of(ptx, "FAULT")
    assert fault.thread == ((16, 0, 0) if name == "by some threads" else (0, 0, 0))


def test_a_guard_counts_for_both_halves_of_a_pair() -> None:
    """The pair's upper half has a later read's tag; its lower half is as it was, if the guard did not hold."""
    body = """
  ld.shared.b32 %r10, [%r4];  // FAULT
  setp.eq.s32 %p2, %r10, 1234567; ld.shared.b32 %r11, [%r4];
  mov.b32 {%h1, %h2}, %r9; mov.b32 {%h3, %h4}, %r11; mov.b32 %r12, {%h1, %h4};
  @%p2 mov.b32 %r12, %r12; and.b32 %r8, %r12, 0xffff; st.global.b32 [%rd5], %r8; ret;
"""
    fault = fault_of(text(body))
    assert (
        fault is not None and fault.verdict is Verdict.UNINITIALISED_READ and fault.line == line_of(text(body), "FAULT")
    ), fault


def test_of_several_values_that_are_stored_one_is_named() -> None:
    reads = [f"ld.shared.b32 %r{10 + i}, [%r4];" for i in range(3)]
    body = (
        "\n".join(reads)
        + "  // FAULT\n @%p1 bra END; setp.ne.u32 %p3, %r1, 16; @!%p3 st.v2.b32 [%rd2], {%r10, %r11}; END: ret;"
    )
    fault = fault_of(text(body))
    assert fault is not None and fault.instruction in (reads[0][:-1], reads[1][:-1]), fault


def test_the_second_run_begins_where_the_first_did() -> None:
    """What the first run added before it met the read is forgotten."""
    out = np.full(32, 7, np.uint32)
    body = "red.global.add.u32 [%rd5], 1;" + READ + "ret;"
    data = np.arange(100, 132, dtype=np.uint32)
    assert run(text(body), [data, out], block=(32, 1, 1), options=Options(shadow=True)).execution.fault is None
    assert (out == 8).all()
