"""cp.async.bulk and cp.async.bulk.tensor against NumPy, and the faults of wrong uses."""
# ruff: noqa: E501 - tables of mistakes, one a line

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from cutegen_lab.core.verdict import Verdict
from tests.emulator.tma.tensor_map_kernel import EXPECT, IN, MAP, OUT, STORED, WAIT, encode, run

V = Verdict


def load(coordinates: Sequence[int], size: int, suffix: str = "", more: str = "") -> str:
    where = ", ".join(map(str, coordinates))
    name = f"cp.async.bulk.tensor.{len(coordinates)}d.shared::cluster.global.mbarrier::complete_tx::bytes{suffix}"
    return EXPECT.replace("BYTES", str(size)) + f"  @%p1 {name} [%r2], [%rd1, {{{where}}}], [%r3]{more};\n{WAIT}{OUT}"


def filled(x: np.ndarray, at: Sequence[int], counts: Sequence[int], steps: Sequence[int], fill: int) -> np.ndarray:
    """A box of ``x`` (outermost dimension first, as are the arguments), element by element."""
    out = np.full(counts, fill, x.dtype)
    for index in np.ndindex(*counts):
        place = tuple(a + i * s for a, i, s in zip(at, index, steps, strict=True))
        if all(0 <= p < n for p, n in zip(place, x.shape, strict=True)):
            out[index] = x[place]
    return out


@pytest.mark.parametrize(
    ("shape", "at", "box", "steps"),
    [
        ((64,), (16,), (32,), (1,)), ((64,), (48,), (32,), (1,)), ((20, 24), (3, 8), (8, 16), (1, 1)),
        ((20, 24), (-3, -8), (8, 16), (1, 1)), ((20, 24), (16, 16), (8, 16), (1, 1)),
        ((20, 24), (100, 0), (8, 16), (1, 1)), ((9, 20, 24), (2, 4, 8), (2, 9, 16), (1, 3, 1)),
        ((4, 5, 6, 16), (1, -1, 3, 0), (2, 3, 4, 8), (1, 1, 2, 1)),
        ((3, 4, 3, 5, 16), (1, 2, 0, 4, 8), (2, 2, 2, 2, 8), (1, 1, 1, 1, 1)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("nan", [False, True])
def test_loads(shape: tuple[int, ...], at: tuple[int, ...], box: tuple[int, ...], steps: tuple[int, ...], nan: bool) -> None:  # fmt: skip
    x = np.arange(1, np.prod(shape) + 1, dtype=np.uint16).reshape(shape)
    counts = tuple(-(-b // s) for b, s in zip(box, steps, strict=True))
    strides = [x.strides[i] for i in reversed(range(x.ndim - 1))]
    tmap = encode("bf16", shape[::-1], strides, box[::-1], steps[::-1], nan=nan)
    out = np.zeros(32 * 16, np.uint8)
    expected = filled(x, at, counts, steps, 0x7FF7 if nan else 0)
    ran = run(load(at[::-1], expected.nbytes), tmap, [x, out], threads=max(expected.nbytes // 16, 1))  # fmt: skip
    assert ran.execution.fault is None, ran.execution.fault
    assert np.array_equal(out.view(np.uint16)[: expected.size], expected.ravel())
    inside = (filled(np.ones(shape, np.uint8), at, counts, steps, 0)).sum()
    assert ran.execution.counters["bulk_load_bytes"] == 2 * inside


@pytest.mark.parametrize("swizzle", [1, 2, 3])
def test_a_swizzled_load(swizzle: int) -> None:
    wide = 16 << swizzle
    x = np.arange(8 * wide, dtype=np.uint32).astype(np.uint8).reshape(8, wide)
    out = np.zeros(32 * 16, np.uint8)
    count = min(8, 512 // wide)
    ran = run(
        load((0, 0), count * wide),
        encode("u8", (wide, 8), (wide,), (wide, count), swizzle=swizzle),
        [x, out],
        threads=count * wide // 16,
    )
    assert ran.execution.fault is None, ran.execution.fault
    expected = np.zeros(512, np.uint8)
    for i in range(count * wide):
        expected[i ^ (i >> 7 & (1 << swizzle) - 1) << 4] = x.ravel()[i]
    assert np.array_equal(out[: count * wide], expected[: count * wide])


def test_a_multicast_load_reaches_every_block_of_the_mask() -> None:
    x, out = np.arange(256, dtype=np.uint16), np.zeros(512, np.uint8)
    body = (
        EXPECT.replace("BYTES", "512")
        + """
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  setp.eq.s32 %p3, %r4, 1; and.pred %p3, %p3, %p1; mov.b16 %rs1, 3;
  @%p3 cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r2], [%rd1, {0}], [%r3], %rs1;
"""
        + WAIT
        + "  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; setp.ne.s32 %p4, %r4, 0; @%p4 ret;"
        + OUT
    )
    ran = run(body, encode("u16", (256,), (), (256,)), [x, out], cluster=2)
    assert ran.execution.fault is None, ran.execution.fault
    assert np.array_equal(out.view(np.uint16), x) and ran.execution.counters["bulk_loads"] == 1


STORE = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {4, 3}], [%r2];"


def test_a_store_leaves_what_lies_outside() -> None:
    x, y = np.arange(1, 129, dtype=np.uint32), np.zeros((10, 12), np.uint32)
    ran = run(IN + "  @%p1 " + STORE + STORED, encode("u32", (12, 10), (48,), (16, 8)), [x, y], mapped=1)
    assert ran.execution.fault is None, ran.execution.fault
    expected = np.zeros_like(y)
    expected[3:, 4:] = x.reshape(8, 16)[:7, :8]
    assert np.array_equal(y, expected) and ran.execution.counters["bulk_store_bytes"] == 7 * 8 * 4


@pytest.mark.parametrize("reduce", [False, True])
@pytest.mark.parametrize("length", [1, 4, 5, 7, 8])
def test_a_store_writes_whole_pieces_of_16_bytes(length: int, reduce: bool) -> None:
    """As an H200 does: what lies between the end of a row and the next multiple of 16 bytes is overwritten too."""
    x, y = np.arange(1, 129, dtype=np.uint32), np.full((10, 12), 1000, np.uint32)
    store = STORE.replace("{4, 3}", "{0, 1}")
    if reduce:
        store = store.replace("cp.async", "cp.reduce.async").replace(".bulk_group", ".add.bulk_group")
    ran = run(
        IN + "  @%p1 " + store + STORED, encode("u32", (length, 9), (48,), (16, 8)), [x, y], mapped=1, inputs=None
    )
    assert ran.execution.fault is None, ran.execution.fault
    expected = np.full_like(y, 1000)
    reached = -(-length // 4) * 4
    expected[1:9, :reached] = x.reshape(8, 16)[:, :reached] + (1000 if reduce else 0)
    assert np.array_equal(y, expected)


@pytest.mark.parametrize(
    ("operation", "kind", "dtype"),
    [("add", "u32", np.uint32), ("add", "s64", np.int64), ("add", "f32", np.float32), ("add", "f16", np.float16),
     ("min", "s32", np.int32), ("max", "u32", np.uint32), ("max", "f16", np.float16), ("and", "u32", np.uint32),
     ("or", "u64", np.uint64), ("xor", "u32", np.uint32)],
)  # fmt: skip
def test_reductions(operation: str, kind: str, dtype: type) -> None:
    draw = np.random.default_rng(1)
    x, y = (
        draw.integers(0 if kind[0] == "u" else -50, 50, 512 // np.dtype(dtype).itemsize).astype(dtype) for _ in "ab"
    )
    ufunc = {"min": np.minimum, "max": np.maximum, "add": np.add}.get(operation) or getattr(np, f"bitwise_{operation}")
    expected = ufunc(x, y)
    body = (
        IN
        + f"  @%p1 cp.reduce.async.bulk.tensor.1d.global.shared::cta.{operation}.tile.bulk_group [%rd1, {{0}}], [%r2];\n"
    )
    box = min(len(x), 256)
    many = "".join(body[len(IN) :].replace("{0}", f"{{{i}}}").replace("[%r2]", f"[%r2+{i * x.itemsize}]") for i in range(0, len(x), box))  # fmt: skip
    ran = run(IN + many + STORED, encode(kind, (len(x),), (), (box,)), [x, y], mapped=1, inputs=None)
    assert ran.execution.fault is None, ran.execution.fault
    assert np.array_equal(y, expected)


def test_every_thread_issues_its_own() -> None:
    """Measured on an H200: a reduction that 32 lanes execute adds 32 times."""
    x, y = np.ones(128, np.uint32), np.zeros(128, np.uint32)
    body = IN + "  cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd3], [%r2], 512;\n" + STORED
    ran = run(body, encode("u32", (128,), (), (128,)), [x, y], inputs=None)
    assert ran.execution.fault is None, ran.execution.fault
    assert (y == 32).all() and ran.execution.counters["bulk_stores"] == 32


def test_plain_bulk_copies() -> None:
    x, y = np.arange(128, dtype=np.uint32), np.zeros(128, np.uint32)
    load = "  @%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%rd2], 512, [%r3];\n"
    store = "  @%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd3], [%r2], 512;\n"
    ran = run(EXPECT.replace("BYTES", "512") + load + WAIT + store + STORED, encode("u32", (64,), (), (64,)), [x, y])
    assert ran.execution.fault is None, ran.execution.fault
    assert np.array_equal(x, y)


def test_a_copy_to_another_block() -> None:
    x, y = np.arange(128, dtype=np.uint32), np.zeros(128, np.uint32)
    body = (
        IN
        + EXPECT.replace("BYTES", "512")
        + """
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; xor.b32 %r10, %r4, 1;
  mapa.shared::cluster.u32 %r11, %r2, %r10; mapa.shared::cluster.u32 %r12, %r3, %r10;
  @%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r11+1024], [%r2], 512, [%r12];
"""
        + WAIT
        + """
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  add.s32 %r2, %r2, 1024; setp.ne.s32 %p4, %r4, 0; @%p4 ret;"""
        + OUT
    )
    ran = run(body, encode("u32", (64,), (), (64,)), [x, y], cluster=2)
    assert ran.execution.fault is None, ran.execution.fault
    assert np.array_equal(x, y)


PLAIN = load((0, 0), 512)
PUT = IN + "  @%p1 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {0, 0}], [%r2];\n" + STORED
WRONG = {
    "read_before_it_has_come": (PLAIN.replace("@!%p2 bra WAITS;", ""), MAP, V.NON_DETERMINISTIC, "a bulk copy writes"),
    "never_waited_for": (PLAIN.replace(WAIT, "").replace(OUT, "ret;"), MAP, V.NON_DETERMINISTIC, "under way"),
    "too_many_bytes_expected": (PLAIN.replace(", 512;", ", 528;"), MAP, V.DEADLOCK, "16 more bytes"),
    "nobody_arrives": (
        PLAIN.replace("arrive.expect_tx.shared.b64 %rd20,", "expect_tx.relaxed.cta.shared::cta.b64"), MAP, V.DEADLOCK,
        "1 more arrival",
    ),
    "misaligned": (PLAIN.replace("[%r2], [%rd1", "[%r2+64], [%rd1"), MAP, V.MISALIGNED, "multiple of 128"),
    "outside_shared_memory": (PLAIN.replace("[%r2], [%rd1", "[%r2+8192], [%rd1"), MAP, V.OUT_OF_BOUNDS, "bulk copy of 512"),
    "no_mbarrier": (PLAIN.replace("[%r3];\n\nW", "[%r2+1024];\n\nW"), MAP, V.UNINITIALISED_READ, "no mbarrier"),
    "another_rank": (PLAIN, encode("u32", (128,), (), (128,)), V.LAUNCH_FAILURE, "2 coordinates by a tensor map of 1"),
    "a_map_of_nothing": (PLAIN, b"\xff" * 128, V.UNSUPPORTED, "no tensor map"),
    "a_map_beyond_the_tensor": (PLAIN, encode("u32", (16, 80), (64,), (16, 8)), V.OUT_OF_BOUNDS, "lie in no tensor"),
    "stored_to_an_input": (PUT, MAP, V.INPUT_MODIFIED, "only for reading"),
    "im2col": (PLAIN.replace(".mbarrier::", ".im2col.mbarrier::"), MAP, V.UNSUPPORTED, ".im2col"),
    "stored_before_it_is_written": (PUT.replace(IN, ""), MAP, V.UNINITIALISED_READ, "nothing has written"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_are_found(name: str) -> None:
    body, tmap, verdict, words = WRONG[name]
    ran = run(body, tmap, [np.arange(128, dtype=np.uint32), np.zeros(128, np.uint32)])
    fault = ran.execution.fault
    assert fault is not None and fault.verdict is verdict, fault
    assert words in fault.message


def test_a_store_past_the_last_row_reaches_behind_the_tensor() -> None:
    x, y = np.arange(128, dtype=np.uint32), np.zeros(7 * 16 + 14, np.uint32)
    ran = run(PUT, encode("u32", (14, 8), (64,), (16, 8)), [x, y], mapped=1)
    fault = ran.execution.fault
    assert fault is not None and fault.verdict is V.OUT_OF_BOUNDS and "writes 8 more" in fault.message
