"""Counters against values worked out by hand, on kernels of a few instructions."""

from __future__ import annotations

import numpy as np
import pytest

from cutegen_lab.core.artifact import SourceLine
from cutegen_lab.core.trial import SharedAccess
from cutegen_lab.emulator import Result
from cutegen_lab.layouts.conflicts import ConflictingAccess
from tests.emulator.ptx_kernel import build, kernel, run

SHARED = "  .shared .align 128 .b8 tile[16384];\n"


def counted(body: str, size: int = 1 << 14, threads: int = 32, blocks: int = 1) -> dict[str, float]:
    ran = run(kernel(body, 1, SHARED), [np.zeros(size, np.uint8)], block=(threads, 1, 1), grid=(blocks, 1, 1))
    assert ran.execution.fault is None, ran.execution.fault
    return dict(ran.execution.counters)


LOADS = [  # (what, instruction with its address in %r4 from the lane in %r1, sectors, lines and wavefronts of one warp)
    ("32 neighbouring words", "shl.b32 %r4, %r1, 2;", "ld.global.b32 %r5", 4, 1, 1),
    ("every second word", "shl.b32 %r4, %r1, 3;", "ld.global.b32 %r5", 8, 2, 2),
    ("one word a sector", "shl.b32 %r4, %r1, 5;", "ld.global.b32 %r5", 32, 8, 8),
    ("one word for all", "and.b32 %r4, %r1, 0;", "ld.global.b32 %r5", 1, 1, 1),
    ("halves", "shl.b32 %r4, %r1, 1;", "ld.global.b16 %rs5", 2, 1, 1),
    ("16 bytes a lane", "shl.b32 %r4, %r1, 4;", "ld.global.v4.b32 {%r5,%r6,%r7,%r8}", 16, 4, 4),
    ("8 bytes a lane", "shl.b32 %r4, %r1, 3;", "ld.global.v2.b32 {%r5,%r6}", 8, 2, 2),
    ("neighbours from the middle of a sector", "shl.b32 %r4, %r1, 2; add.s32 %r4, %r4, 16;",
     "ld.global.b32 %r5", 5, 2, 1),
    ("16 bytes a lane, from the middle of a sector", "shl.b32 %r4, %r1, 4; add.s32 %r4, %r4, 16;",
     "ld.global.v4.b32 {%r5,%r6,%r7,%r8}", 17, 5, 5),
    ("one word of every other line", "shl.b32 %r4, %r1, 8;", "ld.global.b32 %r5", 32, 32, 32),
    ("every fourteenth word", "mul.lo.s32 %r4, %r1, 56;", "ld.global.b32 %r5", 32, 14, 4),
    ("every sector by turns", "mul.lo.s32 %r4, %r1, 8; rem.u32 %r4, %r4, 31; shl.b32 %r4, %r4, 2;",
     "ld.global.b32 %r5", 4, 1, 1),
    ("backwards", "sub.s32 %r4, 31, %r1; shl.b32 %r4, %r4, 2;", "ld.global.b32 %r5", 4, 1, 1),
]  # fmt: skip


@pytest.mark.parametrize(
    ("address", "load", "sectors", "lines", "wavefronts"), [c[1:] for c in LOADS], ids=[c[0] for c in LOADS]
)
def test_sectors_and_lines(address: str, load: str, sectors: int, lines: int, wavefronts: int) -> None:
    """Of four lines at a time L1 gives each bank's word in a wavefront: a stride of 14 words spreads over all banks."""
    got = counted(f"  {address}\n  cvt.u64.u32 %rd2, %r4; add.s64 %rd3, %rd1, %rd2;\n  {load}, [%rd3];\n  ret;")
    assert got["global_load_requests"] == 1
    assert (got["global_load_sectors"], got["global_load_lines"]) == (sectors, lines)
    assert got["global_load_wavefronts"] == wavefronts
    assert got["moved_bytes"] == 32 * sectors


def test_one_load_of_two_tensors() -> None:
    """A load whose address is the lane's choice of two tensors counts for both: every third lane reads the second."""
    body = """
  rem.u32 %r5, %r1, 3; setp.eq.u32 %p1, %r5, 2; selp.b64 %rd3, %rd2, %rd1, %p1;
  mul.wide.u32 %rd4, %r1, 32; add.s64 %rd3, %rd3, %rd4;
  ld.global.b32 %r6, [%rd3];
  ret;
"""
    ran = run(kernel(body, 2), [np.zeros(4096, np.uint8)] * 2, block=(96, 1, 1))
    assert ran.execution.fault is None, ran.execution.fault
    got = ran.execution.counters
    assert (got["loaded_bytes:t0"], got["loaded_bytes:t1"]) == (32 * 64, 32 * 32)
    assert (got["global_load_requests"], got["global_load_sectors"]) == (3, 96)


@pytest.mark.parametrize(("second", "new"), [(4, 4), (12, 4), (-4, 4), (512, 8), (2048, 8)])
def test_lines_that_the_load_before_touched_are_not_new(second: int, new: int) -> None:
    """A word of every sixteen bytes, then another: beside the first, or elsewhere."""
    got = counted(f"""
  shl.b32 %r4, %r1, 4; add.s32 %r4, %r4, 1024; cvt.u64.u32 %rd2, %r4; add.s64 %rd3, %rd1, %rd2;
  ld.global.b32 %r5, [%rd3]; ld.global.b32 %r6, [%rd3+{second}];
  ret;
""")
    assert got["global_load_lines"] in (8, 9) and got["global_load_new_lines"] == new


@pytest.mark.parametrize(("rounds", "issued"), [(4, 4), (5, 4 * 5)])
def test_a_branch_in_a_loop_is_issued_by_warps_that_do_not_take_it(rounds: int, issued: int) -> None:
    """The body's product is executed by one warp of four. Up to four rounds ptxas unrolls, and the branch stays."""
    got = counted(
        f"""
  mov.b32 %r2, 0; setp.lt.u32 %p1, %r1, 32;
$loop:
  @!%p1 bra $over;
  mul.f32 %f1, %f1, 0f40000000;
$over:
  add.s32 %r2, %r2, 1; setp.lt.s32 %p2, %r2, {rounds};
  @%p2 bra $loop;
  ret;
""",
        threads=128,
    )
    assert got["warp_instructions_f32"] == issued


# What an H200 counts: benchmarks/results/counters_on_gpu.json has these and others (ptx-…).
SHARED_LOADS = [  # (what, lane %r1 -> byte offset %r4, instruction, wavefronts, of which without conflicts)
    ("stride 1", "shl.b32 %r4, %r1, 2;", "ld.shared.b32 %r5", 1, 1),
    ("stride 2", "shl.b32 %r4, %r1, 3;", "ld.shared.b32 %r5", 2, 1),
    ("stride 3", "mul.lo.s32 %r4, %r1, 12;", "ld.shared.b32 %r5", 1, 1),
    ("stride 4", "shl.b32 %r4, %r1, 4;", "ld.shared.b32 %r5", 4, 1),
    ("stride 32, a column", "shl.b32 %r4, %r1, 7;", "ld.shared.b32 %r5", 32, 1),
    ("stride 33, a padded column", "mul.lo.s32 %r4, %r1, 132;", "ld.shared.b32 %r5", 1, 1),
    ("one word for all", "and.b32 %r4, %r1, 0;", "ld.shared.b32 %r5", 1, 1),
    ("two words of one bank", "and.b32 %r4, %r1, 1; shl.b32 %r4, %r4, 7;", "ld.shared.b32 %r5", 2, 1),
    ("halves share words", "shl.b32 %r4, %r1, 1;", "ld.shared.b16 %rs5", 1, 1),
    ("bytes share words", "mov.b32 %r4, %r1;", "ld.shared.u8 %r5", 1, 1),
    ("a column of halves", "shl.b32 %r4, %r1, 7;", "ld.shared.b16 %rs5", 32, 1),
    ("64 bits, neighbours", "shl.b32 %r4, %r1, 3;", "ld.shared.v2.b32 {%r5,%r6}", 2, 2),
    ("64 bits, every second", "shl.b32 %r4, %r1, 4;", "ld.shared.v2.b32 {%r5,%r6}", 4, 2),
    ("64 bits, the same for all", "and.b32 %r4, %r1, 0;", "ld.shared.v2.b32 {%r5,%r6}", 1, 1),
    ("64 bits, neighbours share", "shr.u32 %r4, %r1, 1; shl.b32 %r4, %r4, 3;", "ld.shared.v2.b32 {%r5,%r6}", 1, 1),
    ("64 bits, halves share", "and.b32 %r4, %r1, 15; shl.b32 %r4, %r4, 3;", "ld.shared.v2.b32 {%r5,%r6}", 2, 2),
    ("64 bits, two rows in turn", "and.b32 %r4, %r1, 1; shl.b32 %r4, %r4, 7;", "ld.shared.v2.b32 {%r5,%r6}", 2, 1),
    ("128 bits, the same for all", "and.b32 %r4, %r1, 0;", "ld.shared.v4.b32 {%r5,%r6,%r7,%r8}", 2, 2),
    ("128 bits, neighbours share", "shr.u32 %r4, %r1, 1; shl.b32 %r4, %r4, 4;",
     "ld.shared.v4.b32 {%r5,%r6,%r7,%r8}", 2, 2),
    ("128 bits, quarters share", "and.b32 %r4, %r1, 7; shl.b32 %r4, %r4, 4;",
     "ld.shared.v4.b32 {%r5,%r6,%r7,%r8}", 4, 4),
    ("128 bits, neighbours", "shl.b32 %r4, %r1, 4;", "ld.shared.v4.b32 {%r5,%r6,%r7,%r8}", 4, 4),
    ("128 bits, every second", "shl.b32 %r4, %r1, 5;", "ld.shared.v4.b32 {%r5,%r6,%r7,%r8}", 8, 4),
    ("128 bits, rows of 128 bytes", "shl.b32 %r4, %r1, 7;", "ld.shared.v4.b32 {%r5,%r6,%r7,%r8}", 32, 4),
    ("128 bits, rows of 144 bytes", "mul.lo.s32 %r4, %r1, 144;", "ld.shared.v4.b32 {%r5,%r6,%r7,%r8}", 4, 4),
]  # fmt: skip


@pytest.mark.parametrize(
    ("address", "load", "wavefronts", "ideal"), [c[1:] for c in SHARED_LOADS], ids=[c[0] for c in SHARED_LOADS]
)
def test_wavefronts(address: str, load: str, wavefronts: int, ideal: int) -> None:
    got = counted(_filled(f"  {address}\n  mov.b32 %r3, tile; add.s32 %r4, %r4, %r3;\n  {load}, [%r4];\n"))
    assert got["shared_load_requests"] == 1
    assert got["shared_load_wavefronts"] == wavefronts
    assert got["shared_load_conflicts"] == wavefronts - ideal
    assert (got["shared_store_requests"], got["shared_store_conflicts"]) == (32, 0)


CONFLICTS = [case for case in SHARED_LOADS if case[3] > case[4]]


@pytest.mark.parametrize(
    ("address", "load", "wavefronts", "ideal"), [c[1:] for c in CONFLICTS], ids=[c[0] for c in CONFLICTS]
)
def test_an_access_with_conflicts_is_kept(address: str, load: str, wavefronts: int, ideal: int) -> None:
    """With the addresses of its lanes, from which a picture counts the same wavefronts."""
    kept = conflicting(_filled(f"  {address}\n  mov.b32 %r3, tile; add.s32 %r4, %r4, %r3;\n  {load}, [%r4];\n"))
    assert (kept.way, kept.lanes, kept.wavefronts, kept.ideal) == ("load", tuple(range(32)), wavefronts, ideal)
    assert kept.conflicts == wavefronts - ideal
    assert ConflictingAccess(kept).picture().facts["wavefronts"] == wavefronts


def conflicting(body: str, threads: int = 32) -> SharedAccess:
    """The one access with conflicts of a kernel of one block."""
    data, block = [np.zeros(1 << 14, np.uint8)], (threads, 1, 1)
    text = kernel(body, 1, SHARED)
    ran = run(text, data, block=block)
    assert ran.execution.fault is None, ran.execution.fault
    (kept,) = ran.accesses(build(text, data, block=block))
    return kept


def test_of_several_warps_one_with_conflicts_is_kept() -> None:
    """The second warp's lanes from 8 on: those of the first have none."""
    kept = conflicting(
        "  setp.ge.u32 %p2, %r1, 40; shl.b32 %r5, %r1, 5; selp.b32 %r4, %r5, %r1, %p2; shl.b32 %r4, %r4, 2;\n"
        "  and.b32 %r4, %r4, 8191; mov.b32 %r3, tile; add.s32 %r4, %r4, %r3; st.shared.b32 [%r4], %r1;\n  ret;",
        64,
    )
    assert (kept.way, kept.wavefronts, kept.ideal) == ("store", 25, 1)
    assert kept.offsets[7:9] == (28, 4992) and kept.lanes[-1] == 31


def _filled(body: str) -> str:
    """``body`` after one warp has written 16 KiB of shared memory, 16 bytes a lane and time."""
    fill = """
  mov.b32 %r20, 0; mov.b32 %r21, tile; shl.b32 %r22, %r1, 4; add.s32 %r22, %r22, %r21;
FILL:
  st.shared.v4.b32 [%r22], {%r20,%r20,%r20,%r20};
  add.s32 %r22, %r22, 512; add.s32 %r20, %r20, 1; setp.lt.s32 %p1, %r20, 32;
  @%p1 bra FILL;
  bar.sync 0;
"""
    return f"{fill}{body}\n  ret;"


def test_partial_warps_are_served_by_the_phases_they_need() -> None:
    some = "  setp.lt.s32 %p2, %r1, 20;\n  shl.b32 %r4, %r1, 4; mov.b32 %r3, tile; add.s32 %r4, %r4, %r3;\n"
    got = counted(_filled(some + "  @%p2 ld.shared.v4.b32 {%r5,%r6,%r7,%r8}, [%r4];\n"))
    assert (got["shared_load_wavefronts"], got["shared_load_conflicts"]) == (3, 0)
    column = some.replace("shl.b32 %r4, %r1, 4", "shl.b32 %r4, %r1, 7")
    got = counted(_filled(column + "  @%p2 ld.shared.b32 %r5, [%r4];\n"))
    assert (got["shared_load_wavefronts"], got["shared_load_conflicts"]) == (20, 19)


MATRICES = [  # (what, lane %r1 -> byte offset %r4 of its row, number, wavefronts)
    ("rows side by side", "shl.b32 %r4, %r1, 4;", 4, 4),
    ("rows 128 bytes apart", "shl.b32 %r4, %r1, 7;", 4, 32),
    ("… with the 128-byte swizzle",
     "and.b32 %r5, %r1, 7; shl.b32 %r5, %r5, 4; shl.b32 %r4, %r1, 7; xor.b32 %r4, %r4, %r5;", 4, 4),
    ("rows 64 bytes apart", "shl.b32 %r4, %r1, 6;", 4, 16),
    ("… with the 64-byte swizzle",
     "bfe.u32 %r5, %r1, 1, 2; shl.b32 %r5, %r5, 4; shl.b32 %r4, %r1, 6; xor.b32 %r4, %r4, %r5;", 4, 4),
    ("two matrices, rows 128 bytes apart", "and.b32 %r4, %r1, 15; shl.b32 %r4, %r4, 7;", 2, 16),
    ("one matrix", "and.b32 %r4, %r1, 7; shl.b32 %r4, %r4, 4;", 1, 1),
]  # fmt: skip


@pytest.mark.parametrize(("address", "number", "wavefronts"), [c[1:] for c in MATRICES], ids=[c[0] for c in MATRICES])
def test_matrices(address: str, number: int, wavefronts: int) -> None:
    registers = ",".join(f"%r{10 + i}" for i in range(number))
    load = f"ldmatrix.sync.aligned.m8n8.x{number}.shared.b16 {{{registers}}}, [%r4];"
    got = counted(_filled(f"  {address}\n  mov.b32 %r3, tile; add.s32 %r4, %r4, %r3;\n  {load}\n"))
    assert got["shared_load_wavefronts"] == wavefronts
    assert got["shared_load_conflicts"] == wavefronts - number
    if wavefronts > number:
        kept = conflicting(_filled(f"  {address}\n  mov.b32 %r3, tile; add.s32 %r4, %r4, %r3;\n  {load}\n"))
        assert (kept.way, kept.width, kept.lanes) == ("ldmatrix", 16, tuple(range(8 * number)))
        assert ConflictingAccess(kept).picture().facts["wavefronts"] == wavefronts


def copied(form: str, width: int, to: str, source: str, size: str = "") -> dict[str, float]:
    """Of one warp, whose lanes copy ``width`` bytes from byte %r5 of global to %r4 of shared memory."""
    return counted(
        f"""
  {to} {source}
  mov.b32 %r3, tile; add.s32 %r4, %r4, %r3; cvt.u64.u32 %rd2, %r5; add.s64 %rd3, %rd1, %rd2;
  cp.async.{form}.shared.global [%r4], [%rd3], {width}{size};
  cp.async.commit_group; cp.async.wait_group 0;
  ret;""",
        1 << 16,
    )


def test_a_copy_into_shared_memory_counts_on_both_sides() -> None:
    got = copied("cg", 16, "shl.b32 %r4, %r1, 4;", "shl.b32 %r5, %r1, 4;")
    assert (got["global_load_requests"], got["global_load_sectors"]) == (1, 16)
    assert (got["shared_copy_requests"], got["shared_copy_wavefronts"], got["shared_copy_conflicts"]) == (1, 8, 0)


def rows_of(register: str, lanes: int, pitch: int, width: int) -> str:
    """``lanes`` lanes side by side, then the next row."""
    shift = lanes.bit_length() - 1
    return (
        f"shr.u32 %r6, %r1, {shift}; and.b32 %r7, %r1, {lanes - 1}; mul.lo.u32 %r7, %r7, {width};"
        f" mad.lo.u32 {register}, %r6, {pitch}, %r7;"
    )


COPIES = [  # (form, bytes a lane, lanes a row, bytes from row to row in shared and in global memory, wavefronts)
    ("ca", 16, 8, 128, 1024, 4),
    ("ca", 16, 4, 64, 1024, 8),  # two rows of a phase are in different lines, at the same place
    ("ca", 16, 4, 64, 64, 4),
    ("ca", 16, 4, 80, 1024, 12),  # … and the last piece of the second wants the bank of the first row's first
    ("ca", 16, 4, 128, 1024, 8),
    ("ca", 16, 4, 128, 1040, 12),
    ("ca", 16, 2, 112, 1024, 20),
    ("ca", 16, 1, 64, 1040, 16),
    ("ca", 16, 4, 80, 656, 8),
    ("ca", 8, 4, 72, 1024, 10),
    ("ca", 8, 2, 40, 1024, 18),
    ("ca", 4, 8, 32, 1024, 4),
    ("cg", 16, 8, 128, 1024, 8),
    ("cg", 16, 8, 144, 1024, 14),
    ("cg", 16, 4, 80, 1024, 27),
    ("cg", 16, 4, 96, 64, 18),
    ("cg", 16, 2, 48, 32, 32),
    ("cg", 16, 1, 80, 16, 36),
]


@pytest.mark.parametrize(("form", "width", "lanes", "shared", "far", "wavefronts"), COPIES)
def test_copies_cost_what_an_h200_counts(
    form: str, width: int, lanes: int, shared: int, far: int, wavefronts: int
) -> None:
    to, source = rows_of("%r4", lanes, shared, width), rows_of("%r5", lanes, far, width)
    got = copied(form, width, to, source)
    assert got["shared_copy_wavefronts"] == wavefronts


def test_lanes_that_copy_the_same_bytes_take_turns() -> None:
    """Rows 80 bytes apart, the last three from one row of global memory, as a ragged matrix product clamps them."""
    source = rows_of("%r5", 4, 0, 16) + "min.u32 %r6, %r6, 5; mad.lo.u32 %r5, %r6, 656, %r5;"
    assert copied("ca", 16, rows_of("%r4", 4, 80, 16), source)["shared_copy_wavefronts"] == 9


def test_zeros_that_fill_up_come_from_nowhere() -> None:
    """Eight rows 80 bytes apart, of which every second is zeros."""
    to, source = rows_of("%r4", 4, 80, 16), rows_of("%r5", 4, 1024, 16)
    zeros = "and.b32 %r8, %r6, 1; xor.b32 %r8, %r8, 1; shl.b32 %r8, %r8, 4;"
    assert copied("cg", 16, to, source + zeros, ", %r8")["shared_copy_wavefronts"] == 13


def test_atomics_are_apart_from_loads_and_stores() -> None:
    got = counted("  mov.b32 %r5, 1; red.global.add.u32 [%rd1], %r5;\n  mov.b32 %r4, tile;\n  ret;")
    assert (got["global_atomic_requests"], got["global_atomic_sectors"]) == (1, 1)
    assert got["global_load_sectors"] == got["global_store_sectors"] == 0
    assert got["moved_bytes"] == 64  # there and back


@pytest.mark.parametrize(("threads", "lines"), [(16, 1), (48, 2), (40, 2)])
def test_lines_of_warps_that_are_not_full(threads: int, lines: int) -> None:
    got = counted(
        "  shl.b32 %r4, %r1, 2; cvt.u64.u32 %rd2, %r4; add.s64 %rd3, %rd1, %rd2;\n  st.global.b32 [%rd3], %r1;\n  ret;",
        threads=threads,
    )
    assert (got["global_load_lines"], got["global_store_lines"]) == (0, lines)


def _per_launch(threads: int, shift: int) -> dict[str, float]:
    """Each of 64 threads loads a word twice, ``1 << shift`` bytes from the next thread's."""
    body = f"  shl.b32 %r4, %r1, {shift}; cvt.u64.u32 %rd2, %r4; add.s64 %rd3, %rd1, %rd2;\n"
    ran = run(
        kernel(body + "  ld.global.b32 %r5, [%rd3];\n" * 2 + "  ret;", 1, SHARED),
        [np.zeros(1 << 17, np.uint8)], block=(threads, 1, 1),
    )  # fmt: skip
    return dict(ran.per_launch[0])


@pytest.mark.parametrize(("shift", "hot"), [(2, 512), (8, 512), (10, 0)])
def test_what_lies_close_together_is_hot(shift: int, hot: int) -> None:
    """64 threads, two words each: within 256 bytes, 16 KB and 64 KB."""
    assert _per_launch(64, shift)["hot_load_bytes"] == hot


@pytest.mark.parametrize(("blocks", "kib"), [(8, 0), (16, 64)])
def test_what_stays_in_l2_but_not_in_l1_is_warm(blocks: int, kib: int) -> None:
    """Blocks of 1,024 threads that load a word each, twice: 32 KB stay in L1, of 64 KB the second 64 are warm."""
    body = "  shl.b32 %r4, %r1, 2; cvt.u64.u32 %rd2, %r4; add.s64 %rd3, %rd1, %rd2;\n"
    ran = run(
        kernel(body + "  ld.global.b32 %r5, [%rd3];\n" * 2 + "  ret;", 1, SHARED),
        [np.zeros(1 << 16, np.uint8)], grid=(blocks, 1, 1), block=(1024, 1, 1),
    )  # fmt: skip
    assert ran.per_launch[0]["warm_load_bytes"] == pytest.approx(kib << 10, abs=4)


SKIPPED = "  setp.ge.s32 %p1, %r1, 32;\n  @%p1 bra LAST;\n  ld.global.b32 %r6, [%rd6+8];\nLAST:\n"


@pytest.mark.parametrize(
    ("code", "waits", "hot", "bytes_"),
    [
        ("ld.global.b32 %r5, [%rd5]; ld.global.b32 %r6, [%rd6]; ld.global.b32 %r7, [%rd5+4];", 2, 0, 0),
        ("ld.global.b32 %r5, [%rd5]; st.global.b32 [%rd3], %r5; ld.global.b32 %r6, [%rd6];", 4, 2, 256),
        ("ld.global.b32 %r5, [%rd6]; st.global.b32 [%rd3], %r5; ld.global.b32 %r6, [%rd6+4];", 4, 4, 512),
        (SKIPPED, 2, 2, 128),
    ],
    ids=["together", "a store between", "both in L1", "one warp of two, for which the other waits"],
)
def test_a_warp_waits_once_for_loads_that_are_outstanding_together(
    code: str, waits: int, hot: int, bytes_: int
) -> None:
    """Two warps; the first tensor's words are a KB apart, those of the second 16 bytes."""
    cold, near, out = np.zeros(1 << 17, np.uint8), np.zeros(1 << 14, np.uint8), np.zeros(256, np.uint8)
    shifts = "  shl.b32 %r4, %r1, 10; cvt.u64.u32 %rd4, %r4; add.s64 %rd5, %rd1, %rd4;\n"
    shifts += "  shl.b32 %r4, %r1, 4; cvt.u64.u32 %rd4, %r4; add.s64 %rd6, %rd2, %rd4;\n"
    shifts += "  shl.b32 %r4, %r1, 2; cvt.u64.u32 %rd4, %r4; add.s64 %rd3, %rd3, %rd4;\n"
    ran = run(kernel(f"{shifts}{code}\n  ret;", 3, SHARED), [cold, near, out], block=(64, 1, 1), inputs=2)
    assert ran.execution.fault is None, ran.execution.fault
    (got,) = ran.per_launch
    assert (got["load_waits"], got["hot_load_waits"], got["hot_waited_bytes"]) == (waits, hot, bytes_)


def test_parameters_are_no_global_loads() -> None:
    got = counted("  ret;")
    assert got["global_load_requests"] == got["global_load_sectors"] == 0
    assert "warp_instructions_load" not in got


def test_waits() -> None:
    got = counted(
        "  bar.sync 0;\n  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n  ret;", threads=96
    )
    assert (got["barrier_waits"], got["cluster_waits"], got["mbarrier_waits"]) == (3, 3, 0)


def test_divergence() -> None:
    body = """
  and.b32 %r4, %r1, 3; setp.ne.s32 %p1, %r4, 0;
  @%p1 bra OUT;
  add.s32 %r5, %r4, 1; add.s32 %r5, %r5, 1;
OUT:
  ret;"""
    whole, some = counted("  add.s32 %r5, %r1, 1;\n  ret;"), counted(body)
    assert whole["lane_instructions"] == 32 * whole["warp_instructions"]
    idle = 32 * some["warp_instructions"] - some["lane_instructions"]
    assert idle == 2 * 24  # two instructions with 8 of 32 lanes


# --- lines -----------------------------------------------------------------------------------------------------------

TWO_LOADS = """
  shl.b32 %r4, %r1, 2; cvt.u64.u32 %rd2, %r4; add.s64 %rd3, %rd1, %rd2;
  ld.global.b32 %r5, [%rd3];
  shl.b32 %r4, %r1, 7; cvt.u64.u32 %rd2, %r4; add.s64 %rd3, %rd1, %rd2;
  ld.global.b32 %r6, [%rd3];
  mov.b32 %r3, tile; add.s32 %r4, %r4, %r3;
  st.shared.b32 [%r4], %r6;
  ret;"""


def two_loads() -> tuple[Result, dict[int, dict[str, float]]]:
    """TWO_LOADS with its first load on line 30 of a candidate and the second on 31."""
    text = kernel(TWO_LOADS, 1, SHARED)
    at = [i for i, line in enumerate(text.splitlines(), 1) if "ld.global" in line or "st.shared" in line]
    lines = [SourceLine(at[0], 30), SourceLine(at[0] + 1, 31), SourceLine(at[2], 32)]
    data = [np.zeros(1 << 14, np.uint8)]
    ran = run(text, data, block=(64, 1, 1), grid=(2, 1, 1), lines=lines)
    assert ran.execution.fault is None, ran.execution.fault
    (by_line,) = ran.lines(build(text, data, block=(64, 1, 1), lines=lines))
    return ran, by_line


def test_turns_are_the_rounds_of_the_loop_that_takes_the_time() -> None:
    """Two warps, each 100 rounds of three instructions and a branch: the few before and after hardly count."""
    loop = """  mov.u32 %r4, 0;
LOOP:
  add.s32 %r4, %r4, 1; xor.b32 %r5, %r5, %r4; setp.lt.s32 %p1, %r4, 100;
  @%p1 bra LOOP;
  ret;
"""
    ran = run(kernel(loop, 1, SHARED), [np.zeros(64, np.uint8)], block=(64, 1, 1))
    assert 90 < ran.per_launch[0]["turns"] <= 100


def test_each_line_has_its_own_counts() -> None:
    _, lines = two_loads()
    assert sorted(lines) == [0, 30, 31, 32]
    assert (lines[30]["global_load_requests"], lines[30]["global_load_sectors"]) == (4, 16)
    assert (lines[31]["global_load_requests"], lines[31]["global_load_sectors"]) == (4, 128)
    assert lines[31]["shared_conflicts"] == 0
    assert lines[32]["shared_store_conflicts"] == 4 * 31
    assert lines[30]["warp_instructions"] == 4


def test_the_lines_add_up_to_the_launch() -> None:
    ran, lines = two_loads()
    (whole,) = ran.per_launch
    apart = (
        "blocks",
        "blocks_counted",
        "load_bytes_in_flight",
        "busiest_block",
        "bulk_phases",
        "bulk_expected_bytes",
        "bulk_stages",
        "turns",
        "hot_load_bytes",
        "warm_load_bytes",
        "hot_stretch_bytes",
        "dram_load_bytes",
        "dram_store_bytes",
    )
    for name, value in whole.items():
        if name not in apart:
            assert value == pytest.approx(sum(line.get(name, 0) for line in lines.values())), name


def test_what_mbarriers_are_told_to_expect() -> None:
    body = """
  mov.u32 %r5, b; setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared.b64 [%r5], 2; bar.sync 0;
  setp.lt.u32 %p2, %r1, 2; mad.lo.u32 %r6, %r1, 16, 48;
  @%p2 mbarrier.arrive.expect_tx.shared.b64 %rd9, [%r5], %r6;
  ret;"""
    ran = run(kernel(body, 0, ".shared .align 8 .b8 b[8];"), [], block=(32, 1, 1))
    assert ran.execution.fault is None, ran.execution.fault
    assert ran.per_launch[0]["bulk_phases"] == 2 and ran.per_launch[0]["bulk_expected_bytes"] == 48 + 64
    assert ran.per_launch[0]["bulk_stages"] == 1


def test_stages_are_the_mbarriers_that_most_bytes_come_to() -> None:
    """Three of a ring, the first once more than the others, and one that little is copied to at first."""
    body = """
  setp.eq.u32 %p1, %r1, 0; mov.u32 %r5, b;
  @%p1 mbarrier.init.shared.b64 [%r5], 3; @%p1 mbarrier.init.shared.b64 [%r5+8], 3;
  @%p1 mbarrier.init.shared.b64 [%r5+16], 3; @%p1 mbarrier.init.shared.b64 [%r5+24], 3; bar.sync 0;
  @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd9, [%r5], 64;
  @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd9, [%r5+8], 64;
  @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd9, [%r5+16], 64;
  @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd9, [%r5], 48;
  @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd9, [%r5+24], 16;
  ret;"""
    ran = run(kernel(body, 0, ".shared .align 8 .b8 b[32];"), [], block=(32, 1, 1))
    assert ran.execution.fault is None, ran.execution.fault
    assert ran.per_launch[0]["bulk_stages"] == 3 and ran.per_launch[0]["bulk_phases"] == 5
