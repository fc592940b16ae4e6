"""wgmma against NumPy: every operand format, swizzle and major-ness. Operands are laid out here element by element."""
# ruff: noqa: E501 - tables of mistakes, one a line

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.emulator import Options, Order, Result
from tests.emulator.ptx_kernel import kernel, run

ATOM = {"none": 16, "32": 32, "64": 64, "128": 128}  # bytes of a row of the swizzle pattern
MODE = {"none": 0, "128": 1, "64": 2, "32": 3}
STEP = {"bf16": 16, "f16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "s8": 32, "u8": 32}
BYTES = {"bf16": 2, "f16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1, "s8": 1, "u8": 1}
A_AT, B_AT, SMEM = 1024, 1024 + 16384, 1024 + 16384 + 65536
STRICT = Options(shadow=True, races=True)


def encoded(values: np.ndarray, kind: str) -> np.ndarray:
    """Small integers as raw elements of ``kind``."""
    if kind == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    if kind == "f16":
        return values.astype(np.float16).view(np.uint16)
    if kind == "tf32":
        return values.astype(np.float32).view(np.uint32) | np.uint32(0x1234 & 0x1FFF)  # low bits are ignored
    if kind == "e5m2":
        return (values.astype(np.float16).view(np.uint16) >> np.uint16(8)).astype(np.uint8)
    if kind == "e4m3":
        codes = {0: 0, 1: 0x38, 2: 0x40, 3: 0x44, 4: 0x48}
        return np.array([codes[abs(v)] | (0x80 if v < 0 else 0) for v in values.ravel()], np.uint8).reshape(
            values.shape
        )
    return values.astype(np.int8).view(np.uint8)


def place(memory: np.ndarray, at: int, raw: np.ndarray, swizzle: str, mn_major: bool) -> tuple[int, int]:
    """Lays ``raw`` [rows, K] out in ``memory`` from byte ``at`` on; returns (leading, stride) byte offsets."""
    rows, depth = raw.shape
    size, width = raw.itemsize, ATOM[swizzle]
    if mn_major:  # patterns of [8 of K][width bytes of rows]
        per = width // size
        along_rows, along_k = 8 * width, 8 * width * (rows // per)
        leading, stride = (along_k, along_rows) if swizzle == "none" else (along_rows, along_k)
    else:  # patterns of [8 rows][width bytes of K]; without swizzle the two halves of K are apart
        along_half, along_eight = (8 * 16 * (rows // 8), 8 * 16) if swizzle == "none" else (16, 8 * width)
        leading, stride = along_half, along_eight
    octets = raw.view(np.uint8).reshape(rows, depth, size)
    for r in range(rows):
        for k in range(depth):
            if mn_major:
                offset = r // per * along_rows + k // 8 * along_k + k % 8 * width + r % per * size
            elif swizzle == "none":
                offset = r // 8 * along_eight + k * size // 16 * along_half + r % 8 * 16 + k * size % 16
            else:
                offset = r // 8 * along_eight + r % 8 * width + k * size
            address = at + offset
            address ^= (address >> 7 & width // 16 - 1) << 4
            memory[address : address + size] = octets[r, k]
    return leading, stride


def descriptor(at: int, leading: int, stride: int, swizzle: str) -> int:
    return at >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | MODE[swizzle] << 62


def program(shape: str, d: str, registers: int, product: str, fences: bool = True) -> str:
    """Copies the second tensor to shared memory, multiplies, and stores register i of thread t at [i][t]."""
    sums = ", ".join(f"%s{i}" for i in range(registers))
    stores = "\n".join(f"  st.global.b32 [%rd9+{i * 512}], %s{i};" for i in range(registers))
    clear = "\n".join(f"  mov.b32 %s{i}, 0;" for i in range(registers))
    body = f"""
  mul.wide.u32 %rd5, %r1, 16; add.s64 %rd6, %rd2, %rd5; mov.b32 %r5, smem; shl.b32 %r6, %r1, 4; add.s32 %r5, %r5, %r6;
  mov.b32 %r7, 0;
COPY:
  ld.global.v4.b32 {{%r8, %r9, %r10, %r11}}, [%rd6]; st.shared.v4.b32 [%r5], {{%r8, %r9, %r10, %r11}};
  add.s64 %rd6, %rd6, 2048; add.s32 %r5, %r5, 2048; add.s32 %r7, %r7, 1; setp.lt.s32 %p1, %r7, {(SMEM - 1024) // 2048};
  @%p1 bra COPY;
  {"fence.proxy.async.shared::cta;" if fences else ""}
  bar.sync 0;
  mov.b64 %rd7, {{A}}; mov.b64 %rd8, {{B}};
{clear}
  mul.wide.u32 %rd4, %r1, 16; add.s64 %rd4, %rd3, %rd4; ld.global.v4.b32 {{%r20, %r21, %r22, %r23}}, [%rd4];
  setp.ne.s32 %p2, %r1, 1000;
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.{shape}.{d} {{{{{sums}}}}}, {product};
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  mul.wide.u32 %rd9, %r1, 4; add.s64 %rd9, %rd1, %rd9;
{stores}
  ret;"""
    before = f".shared .align 1024 .b8 smem[{SMEM - 1024}];"
    return kernel(body.replace("{{", "{").replace("}}", "}"), 3, f"  .reg .b32 %s<{registers}>;", before)


def sums_of(out: np.ndarray, n: int, d: str) -> np.ndarray:
    """[64, n] from [register][thread] (PTX ISA 9.7.15.5.1.1)."""
    found = np.zeros((64, n), np.float64)
    for row in range(64):
        for column in range(n):
            lane = row // 16 * 32 + row % 8 * 4 + column % 8 // 2
            h, e = row % 16 // 8, column % 2
            if d == "f16":
                found[row, column] = out[2 * (column // 8) + h, lane : lane + 1].view(np.float16)[e]
            else:
                word = out[4 * (column // 8) + 2 * h + e, lane : lane + 1]
                found[row, column] = word.view(np.int32 if d == "s32" else np.float32)[0]
    return found


def multiply(
    a_kind: str, b_kind: str, d: str, n: int, swizzle: str, a_mn: bool, b_mn: bool, from_registers: bool = False,
    **edits: object,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """(what the machine computed, A·Bᵀ) for one product."""
    draw, depth = np.random.default_rng(n), STEP[a_kind]
    a, b = (draw.integers(0 if k == "u8" else -4, 5, (rows, depth)) for k, rows in ((a_kind, 64), (b_kind, n)))
    memory = np.zeros(SMEM, np.uint8)
    at_a = descriptor(A_AT, *place(memory, A_AT, encoded(a, a_kind), swizzle, a_mn), swizzle)
    at_b = descriptor(B_AT, *place(memory, B_AT, encoded(b, b_kind), swizzle, b_mn), swizzle)
    fragments = np.zeros((128, 4, 4 // BYTES[a_kind]), encoded(a, a_kind).dtype)
    per, raw = fragments.shape[2], encoded(a, a_kind)
    for thread in range(128):
        for r in range(4):
            row, first = thread // 32 * 16 + thread % 32 // 4 + 8 * (r & 1), (r >> 1) * 4 * per + thread % 4 * per
            fragments[thread, r] = raw[row, first : first + per]
    registers = n // 4 if d == "f16" else n // 2
    left = "{{%r20, %r21, %r22, %r23}}" if from_registers else "%rd7"
    flags = "" if d == "s32" else ", 1, 1"
    if depth == 16:
        flags += f", {int(b_mn)}" if from_registers else f", {int(a_mn)}, {int(b_mn)}"
    ptx = program(f"m64n{n}k{depth}", f"{d}.{a_kind}.{b_kind}", registers, f"{left}, %rd8, %p2{flags}")
    ptx = ptx.replace("{A}", str(at_a)).replace("{B}", str(at_b))
    out = np.zeros((registers, 128), np.uint32)
    ran = run(ptx, [out, memory[1024:].copy(), fragments], block=(128, 1, 1), options=STRICT)
    assert ran.execution.fault is None, ran.execution.fault
    assert ran.execution.counters["tensor_ops"] == 2 * 64 * n * depth
    return sums_of(out, n, d), (a @ b.T).astype(np.float64)


@pytest.mark.parametrize("swizzle", ATOM)
@pytest.mark.parametrize(("a_mn", "b_mn"), [(False, False), (True, False), (False, True), (True, True)])
def test_every_layout(swizzle: str, a_mn: bool, b_mn: bool) -> None:
    found, exact = multiply("bf16", "bf16", "f32", 64, swizzle, a_mn, b_mn)
    assert np.array_equal(found, exact)


@pytest.mark.parametrize("from_registers", [False, True])
@pytest.mark.parametrize(
    ("a", "b", "d"),
    [("f16", "f16", "f32"), ("f16", "f16", "f16"), ("bf16", "bf16", "f32"), ("tf32", "tf32", "f32"),
     ("e4m3", "e5m2", "f32"), ("e5m2", "e4m3", "f16"), ("s8", "u8", "s32"), ("u8", "s8", "s32")],
)  # fmt: skip
def test_every_format(a: str, b: str, d: str, from_registers: bool) -> None:
    found, exact = multiply(a, b, d, 16, "32", False, False, from_registers)
    assert np.array_equal(found, exact)


@pytest.mark.parametrize("n", [8, 24, 256])
def test_widths(n: int) -> None:
    found, exact = multiply("bf16", "bf16", "f32", n, "32", False, False)
    assert np.array_equal(found, exact)


def result_of(ptx: str, threads: int = 128, options: Options = STRICT) -> Result:
    tensors = [np.zeros((4, 128), np.uint32), np.zeros(SMEM - 1024, np.uint8), np.zeros((128, 4), np.uint32)]
    ptx = ptx.replace("{A}", str(descriptor(A_AT, 16, 256, "32"))).replace("{B}", str(descriptor(B_AT, 16, 256, "32")))
    return run(ptx, tensors, block=(threads, 1, 1), options=options)


def fault_of(ptx: str, threads: int = 128) -> Fault | None:
    return result_of(ptx, threads).execution.fault


PLAIN = program("m64n8k16", "f32.bf16.bf16", 4, "%rd7, %rd8, %p2, 1, 1, 0, 0")
BY_COPIES = re.sub(
    r"ld.global.v4.b32 .*?;\s+st.shared.v4.b32 .*?;", "cp.async.cg.shared.global [%r5], [%rd6], 16;", PLAIN
)
COPIES_WAITED_FOR = BY_COPIES.replace("  fence.proxy", "  cp.async.wait_all; fence.proxy")
LATE = """  mov.b32 %r30, late; setp.eq.s32 %p4, %r1, 0; @%p4 mbarrier.init.shared.b64 [%r30], 1; bar.sync 0;
  wgmma.fence.sync.aligned;
APART:
  setp.ge.s32 %p4, %r1, 32; @%p4 bra OTHERS;
WAITS:
  mbarrier.try_wait.parity.shared.b64 %p5, [%r30], 0; @!%p5 bra WAITS;
  bra MEET;
OTHERS:
  setp.eq.s32 %p6, %r1, 32; @%p6 mbarrier.arrive.shared.b64 %rd20, [%r30];
MEET:
"""
ONE_WARP_LATE = PLAIN.replace(".visible", ".shared .align 8 .b8 late[8];\n.visible", 1)
MEETINGS = {
    "at the fence": ONE_WARP_LATE.replace("  wgmma.fence", LATE + "  wgmma.fence"),
    "at the product, after one fence for all": ONE_WARP_LATE.replace("  wgmma.mma_async", LATE + "  wgmma.mma_async"),
}
WRONG = {
    "copies_not_waited_for": (BY_COPIES, Verdict.NON_DETERMINISTIC, "asynchronous copy has completed"),
    "copies_without_a_proxy_fence": (
        COPIES_WAITED_FOR.replace("fence.proxy.async.shared::cta;", ""), Verdict.NON_DETERMINISTIC, "no fence.proxy.async"
    ),
    "copies_waited_for_after_the_barrier": (
        BY_COPIES.replace("bar.sync 0;", "bar.sync 0; cp.async.wait_all;"), Verdict.NON_DETERMINISTIC, "a race: reads byte 0"
    ),
    "committed_by_half_of_each_warp": (
        PLAIN.replace("  wgmma.commit", "  and.b32 %r31, %r1, 31; setp.lt.s32 %p7, %r31, 16; @%p7 wgmma.commit"),
        Verdict.BARRIER_DIVERGENCE, "wgmma.commit_group is reached by 16 of the 32",
    ),
    "waited_for_by_half_of_each_warp": (
        PLAIN.replace("  wgmma.wait", "  and.b32 %r31, %r1, 31; setp.lt.s32 %p7, %r31, 16; @%p7 wgmma.wait"),
        Verdict.BARRIER_DIVERGENCE, "wgmma.wait_group is reached by 16 of the 32",
    ),
    "no_proxy_fence": (PLAIN.replace("fence.proxy.async.shared::cta;", ""), Verdict.NON_DETERMINISTIC, "no fence.proxy.async"),
    "not_waited_for": (PLAIN.replace("wgmma.wait_group.sync.aligned 0;", ""), Verdict.NON_DETERMINISTIC, "an accumulator of a wgmma"),
    "never_committed": (PLAIN.replace("wgmma.commit_group.sync.aligned;", ""), Verdict.NON_DETERMINISTIC, "an accumulator of a wgmma"),
    "operand_overwritten": (
        PLAIN.replace(", %rd7, %rd8", ", {%r20, %r21, %r22, %r23}, %rd8").replace("1, 1, 0, 0;", "1, 1, 0; mov.b32 %r21, 7;"),
        Verdict.NON_DETERMINISTIC, "an operand of a wgmma",
    ),
    "descriptors_differ": (
        PLAIN.replace("  setp.ne", "  mul.wide.u32 %rd10, %r1, 2; add.s64 %rd8, %rd8, %rd10;  setp.ne"),
        Verdict.NON_DETERMINISTIC, "a matrix descriptor of a wgmma differs",
    ),
    "scale_differs": (PLAIN.replace("%p2, %r1, 1000", "%p2, %r1, 5"), Verdict.NON_DETERMINISTIC, "the scale of D"),
    "outside_shared_memory": (PLAIN.replace("{B}", str(descriptor(4096 * 32, 16, 256, "32"))), Verdict.OUT_OF_BOUNDS, "descriptor"),
    "tile_overwritten_before_the_wait": (
        PLAIN.replace("wgmma.wait_group", "mov.b32 %r5, smem; st.shared.b32 [%r5], %r1;\n  wgmma.wait_group"),
        Verdict.NON_DETERMINISTIC, "which a wgmma reads",
    ),
    "half_a_warpgroup": (
        PLAIN.replace("  wgmma.fence", "  setp.lt.s32 %p3, %r1, 64; @%p3 ret;\n  wgmma.fence"),
        Verdict.DEADLOCK, "wgmma.fence",
    ),
    "one_warp_alone": (
        PLAIN.replace("  wgmma.mma", "  setp.lt.s32 %p3, %r1, 32; @%p3 ret;\n  wgmma.mma"),
        Verdict.BARRIER_DIVERGENCE, "four warps",
    ),
    "one_warp_never_comes": (
        MEETINGS["at the product, after one fence for all"].replace("APART:\n", "APART: setp.lt.s32 %p3, %r1, 32; @%p3 ret;\n"),
        Verdict.BARRIER_DIVERGENCE, "four warps",
    ),
}  # fmt: skip


@pytest.mark.parametrize("ptx", [PLAIN, COPIES_WAITED_FOR])
def test_the_plain_programs_are_right(ptx: str) -> None:
    assert fault_of(ptx) is None


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("where", MEETINGS)
def test_warps_that_come_at_different_times_go_on_together(where: str, seed: int) -> None:
    """As in NVIDIA's dense_gemm, whose first warp waits for an empty stage while the others go on to their products."""
    ran = result_of(MEETINGS[where], options=replace(STRICT, order=Order(warps=seed)))
    assert ran.execution.fault is None, ran.execution.fault
    assert ran.execution.counters["tensor_instructions"] == 4 and "warp_instructions_" not in ran.execution.counters


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_are_found(name: str) -> None:
    ptx, verdict, words = WRONG[name]
    fault = fault_of(ptx)
    assert fault is not None and fault.verdict is verdict, fault
    assert words in fault.message


@pytest.mark.parametrize(
    ("old", "new"),
    [("m64n8k16", "m64n12k16"), ("m64n8k16", "m64n8k8"), ("f32.bf16.bf16", "f16.bf16.bf16"),
     ("mma_async.", "mma_async.sp."), ("f32.bf16.bf16", "s32.b1.b1")],
)  # fmt: skip
def test_what_does_not_exist_is_refused(old: str, new: str) -> None:
    fault = fault_of(PLAIN.replace(old, new))
    assert fault is not None and fault.verdict is Verdict.UNSUPPORTED and "wgmma" in fault.instruction


def test_the_block_that_multiplies_most_is_counted() -> None:
    """Of two blocks the first multiplies twice, the second once."""
    again = PLAIN.replace("  wgmma.fence", "  mov.u32 %r30, %ctaid.x;\nAGAIN:\n  wgmma.fence", 1).replace(
        "  wgmma.wait_group.sync.aligned 0;",
        "  wgmma.wait_group.sync.aligned 0; add.s32 %r30, %r30, 1; setp.lt.s32 %p5, %r30, 2; @%p5 bra AGAIN;", 1,
    )  # fmt: skip
    tensors = [np.zeros((8, 128), np.uint32), np.zeros(SMEM - 1024, np.uint8), np.zeros((256, 4), np.uint32)]
    filled = again.replace("{A}", str(descriptor(A_AT, 16, 256, "32"))).replace(
        "{B}", str(descriptor(B_AT, 16, 256, "32"))
    )
    ran = run(filled.replace("mad.lo.s32 %r1, %r2, %r3, %r1;", ""), tensors, block=(128, 1, 1), grid=(2, 1, 1))
    assert ran.execution.fault is None, ran.execution.fault
    assert ran.per_launch[0]["busiest_block"] == pytest.approx(4 / 3)
    assert ran.per_launch[0]["tensor_instructions"] == 3 * 4
