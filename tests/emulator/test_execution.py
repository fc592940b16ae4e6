"""Divergence, warp exchange, memory spaces, barriers, clusters and atomics against plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator import Options, Order
from tests.emulator.ptx_kernel import evaluate, kernel, run

LANE = np.arange(32)
OUT = "  mul.wide.u32 %rd20, %r1, 4; add.s64 %rd20, %rd1, %rd20; st.global.b32 [%rd20], %r9; ret;"


def values(body: str, threads: int = 64, declarations: str = "", **launch: object) -> np.ndarray:
    """What each thread leaves in %r9."""
    blocks = launch.get("grid", (1, 1, 1))[0]  # type: ignore[index]
    out = np.zeros(threads * blocks, np.uint32)
    ran = run(kernel(body + "\n" + OUT, 1, declarations), [out], inputs=0, block=(threads, 1, 1), **launch)
    assert ran.execution.fault is None, ran.execution.fault
    return out


def test_loops_of_different_lengths_meet_again() -> None:
    body = """
      mov.b32 %r9, 0; mov.b32 %r10, 0;
    $L1:
      add.s32 %r9, %r9, %r10; add.s32 %r10, %r10, 1;
      setp.le.u32 %p1, %r10, %r1;
      @%p1 bra $L1;
      shfl.sync.idx.b32 %r11, %r9, 31, 31, -1;
      add.s32 %r9, %r9, %r11;
    """
    got = values(body)
    tri = [i * (i + 1) // 2 for i in range(64)]
    assert got.tolist() == [tri[i] + tri[i // 32 * 32 + 31] for i in range(64)]


def test_nested_branches() -> None:
    body = """
      and.b32 %r10, %r1, 1; setp.eq.s32 %p1, %r10, 0;
      and.b32 %r11, %r1, 2; setp.eq.s32 %p2, %r11, 0;
      @%p1 bra $EVEN;
      @%p2 bra $ODD0;
      mov.b32 %r9, 3; bra $END;
    $ODD0:
      mov.b32 %r9, 1; bra $END;
    $EVEN:
      @%p2 bra $EVEN0;
      mov.b32 %r9, 2; bra $END;
    $EVEN0:
      mov.b32 %r9, 0;
    $END:
    """
    assert values(body).tolist() == [i & 3 for i in range(64)]


@pytest.mark.parametrize("written", [1, 2, 3, 4])
def test_a_word_is_written_once_all_its_bytes_are(written: int) -> None:
    stores = " ".join(f"st.global.b8 [%rd3+{byte}], %r1;" for byte in range(written))
    body = f"mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; {stores} ld.global.b32 %r9, [%rd3];"
    out = np.zeros(64, np.uint32)
    fault = run(kernel(f"{body}\n{OUT}", 1), [out], inputs=0, block=(64, 1, 1)).execution.fault
    assert (fault is None) if written == 4 else (fault is not None and fault.verdict is Verdict.UNINITIALISED_READ)


def test_some_threads_exit_and_a_barrier_still_opens() -> None:
    body = """
      setp.ge.u32 %p1, %r1, 40;
      @%p1 ret;
      bar.sync 0;
      mov.b32 %r9, 5;
    """
    assert values(body).tolist() == [5] * 40 + [0] * 24


def test_some_threads_exit_and_a_cluster_barrier_still_opens() -> None:
    body = """
      mov.u32 %r4, %tid.x; setp.ge.u32 %p1, %r4, 40;
      @%p1 ret;
      barrier.cluster.arrive; barrier.cluster.wait;
      mov.b32 %r9, 5;
    """
    assert values(body, 64, grid=(2, 1, 1), cluster=(2, 1, 1)).tolist() == ([5] * 40 + [0] * 24) * 2


def test_inline_assembly_scopes_repeat_their_names() -> None:
    piece = """
      { .reg .pred P1; .reg .b32 t; mov.b32 t, %r1;
      LOOP: add.s32 t, t, 1; setp.lt.s32 P1, t, 100; @P1 bra LOOP;
      add.s32 %r9, %r9, t; }
    """
    assert values("  mov.b32 %r9, 0;" + piece + piece).tolist() == [200] * 64


def test_a_thread_number_in_three_dimensions_and_a_partial_warp() -> None:
    out = np.zeros(3 * 5 * 2, np.uint32)
    body = """
      mov.u32 %r4, %tid.x; mov.u32 %r5, %tid.y; mov.u32 %r6, %tid.z;
      mad.lo.s32 %r1, %r6, 5, %r5; mad.lo.s32 %r1, %r1, 3, %r4;
      mad.lo.s32 %r9, %r6, 100, %r4; mad.lo.s32 %r9, %r5, 10, %r9;
      bar.sync 0;
      shfl.sync.idx.b32 %r9, %r9, %r1, 31, -1;
    """
    assert run(kernel(body + OUT, 1), [out], inputs=0, block=(3, 5, 2)).execution.fault is None
    assert out.tolist() == [100 * z + 10 * y + x for z in range(2) for y in range(5) for x in range(3)]


# --- warp ------------------------------------------------------------------------------------------------------------


def shuffled(mode: str, b: int, width: int) -> list[tuple[int, bool]]:
    """CUDA's definition (__shfl_*_sync with a width): the source lane, and whether it lies in the segment."""
    out = []
    for lane in range(32):
        first = lane // width * width
        source = {"idx": first + b % width, "up": lane - b, "down": lane + b, "bfly": lane ^ b}[mode]
        inside = source >= first if mode == "up" else source < first + width
        out.append((source if inside else lane, inside))
    return out


@pytest.mark.parametrize("width", [32, 16, 8])
@pytest.mark.parametrize(("mode", "b"), [("idx", 5), ("up", 3), ("down", 3), ("bfly", 1), ("bfly", 4), ("bfly", 16)])
def test_shuffles(mode: str, b: int, width: int) -> None:
    c = (32 - width) << 8 | (0 if mode == "up" else 31)
    want = shuffled(mode, b, width)
    fixed = values(f"  shfl.sync.{mode}.b32 %r9, %r1, {b}, {c}, -1;", 32)
    assert fixed.tolist() == [source for source, _ in want]
    dynamic = values(
        f"  mov.b32 %r10, {b}; shfl.sync.{mode}.b32 %r9|%p1, %r1, %r10, {c}, -1; @%p1 add.s32 %r9, %r9, 100;", 32
    )
    assert dynamic.tolist() == [source + 100 * inside for source, inside in want]


def test_shuffle_of_half_a_warp_with_its_own_mask() -> None:
    body = """
      mov.b32 %r9, 7; setp.ge.u32 %p1, %r1, 16;
      @%p1 bra $L1;
      shfl.sync.bfly.b32 %r9, %r1, 1, 31, 0xFFFF;
    $L1:
    """
    assert values(body, 32).tolist() == [i ^ 1 for i in range(16)] + [7] * 16


@pytest.mark.parametrize(
    ("code", "want"),
    [
        ("vote.sync.ballot.b32 %r9, %p1, -1;", [sum(1 << i for i in range(0, 32, 3))] * 32),
        ("vote.sync.any.pred %p2, %p1, -1; selp.b32 %r9, 1, 0, %p2;", [1] * 32),
        ("vote.sync.all.pred %p2, %p1, -1; selp.b32 %r9, 1, 0, %p2;", [0] * 32),
        ("vote.sync.uni.pred %p2, %p1, -1; selp.b32 %r9, 1, 0, %p2;", [0] * 32),
        ("redux.sync.add.s32 %r9, %r1, -1;", [496] * 32), ("redux.sync.max.u32 %r9, %r1, -1;", [31] * 32),
        ("redux.sync.xor.b32 %r9, %r1, -1;", [0] * 32), ("activemask.b32 %r9;", [0xFFFFFFFF] * 32),
        ("elect.sync %r9|%p2, -1; @%p2 mov.b32 %r9, 99;", [99] + [0] * 31),
        ("match.any.sync.b32 %r9, %r4, -1;", [sum(1 << j for j in range(32) if j % 3 == i % 3) for i in range(32)]),
        ("match.all.sync.b32 %r9|%p2, %r4, -1; selp.b32 %r9, 1, %r9, %p2;", [0] * 32),
    ],
)  # fmt: skip
def test_votes_and_reductions(code: str, want: list[int]) -> None:
    body = "  rem.u32 %r4, %r1, 3; setp.eq.s32 %p1, %r4, 0; " + code
    assert values(body, 32).tolist() == want


# --- memory ----------------------------------------------------------------------------------------------------------


def test_vector_loads_and_stores_of_every_width() -> None:
    rng = np.random.default_rng(0)
    source = rng.integers(0, 256, 32 * 32, np.uint8)
    for kind, vector, size in [("b8", 4, 1), ("b16", 4, 2), ("b32", 4, 4), ("b64", 2, 8), ("b32", 2, 4), ("b16", 2, 2),
                               ("b64", 4, 8), ("b32", 8, 4)]:  # fmt: skip
        prefix = {1: "%rs", 2: "%rs", 4: "%r", 8: "%rd"}[size]
        names = ", ".join(f"{prefix}{10 + i}" for i in range(vector))
        out = np.zeros_like(source)
        body = f"""
          mul.wide.u32 %rd3, %r1, {size * vector}; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
          ld.global.nc.L1::no_allocate.v{vector}.{kind} {{{names}}}, [%rd4];
          st.global.cs.v{vector}.{kind} [%rd5], {{{names}}}; ret;
        """
        assert run(kernel(body, 2), [source, out], inputs=1, block=(32, 1, 1)).execution.fault is None
        count = 32 * size * vector
        assert (out[:count] == source[:count]).all() and not out[count:].any()


def test_narrow_loads_extend() -> None:
    data = np.array([0x80, 0x7F, 0xFF, 0x01] * 8, np.uint8)
    for kind, dtype in (("s8", np.int8), ("u8", np.uint8)):
        out = np.zeros(32, np.int32)
        body = f"""
          cvt.u64.u32 %rd3, %r1; add.s64 %rd4, %rd1, %rd3; mul.wide.u32 %rd5, %r1, 4; add.s64 %rd5, %rd2, %rd5;
          ld.global.{kind} %r4, [%rd4]; st.global.b32 [%rd5], %r4; ret;
        """
        assert run(kernel(body, 2), [data, out], block=(32, 1, 1)).execution.fault is None
        assert out.tolist() == data.view(dtype).tolist()


def test_shared_local_and_generic_addresses() -> None:
    body = """
      mov.b32 %r10, s; mad.lo.s32 %r11, %r1, 4, %r10;
      mul.lo.s32 %r12, %r1, 3; st.shared.b32 [%r11], %r12;
      mov.b64 %rd3, stack; cvta.local.u64 %rd4, %rd3;
      st.b32 [%rd4+4], %r1; ld.local.b32 %r13, [%rd3+4];
      bar.sync 0;
      cvt.u64.u32 %rd5, %r11; cvta.shared.u64 %rd6, %rd5;
      setp.lt.u32 %p1, %r1, 10; selp.b64 %rd7, %rd6, %rd4, %p1; add.s64 %rd8, %rd7, 4;
      ld.b32 %r9, [%rd8];
      add.s32 %r9, %r9, %r13;
      isspacep.shared %p2, %rd7; @%p2 add.s32 %r9, %r9, 1000;
    """
    got = values(body, 64, ".shared .align 16 .b8 s[256]; .local .align 8 .b8 stack[16];")
    assert got.tolist() == [3 * (i + 1) + i + 1000 if i < 10 else 2 * i for i in range(64)]


def test_module_constants_and_indexed_parameters() -> None:
    before = ".const .align 4 .b32 table[4] = {7, 0x10, 300, 4};\n"
    body = """
      and.b32 %r4, %r1, 3; mul.wide.u32 %rd3, %r4, 4; mov.b64 %rd4, table; add.s64 %rd4, %rd4, %rd3;
      ld.const.b32 %r9, [%rd4];
    """
    out = np.zeros(32, np.uint32)
    assert run(kernel(body + OUT, 1, before=before), [out], inputs=0, block=(32, 1, 1)).execution.fault is None
    assert out.tolist() == [7, 16, 300, 4] * 8


def test_dynamic_shared_memory_begins_after_the_static() -> None:
    before = ".extern .shared .align 16 .b8 dyn[];\n"
    body = """
      mov.b32 %r10, dyn; mad.lo.s32 %r11, %r1, 4, %r10; st.shared.b32 [%r11], %r1;
      mov.b32 %r12, s; st.shared.b32 [%r12], 77;
      bar.sync 0;
      xor.b32 %r13, %r1, 1; mad.lo.s32 %r11, %r13, 4, %r10; ld.shared.b32 %r9, [%r11];
    """
    out = np.zeros(32, np.uint32)
    ptx = kernel(body + OUT, 1, ".shared .align 4 .b8 s[4];", before)
    assert run(ptx, [out], inputs=0, block=(32, 1, 1), smem=128).execution.fault is None
    assert out.tolist() == [i ^ 1 for i in range(32)]
    short = run(ptx, [out], inputs=0, block=(32, 1, 1), smem=64).execution.fault
    assert short is not None and short.verdict is Verdict.OUT_OF_BOUNDS


@pytest.mark.parametrize(("width", "size"), [(16, 16), (16, 6), (8, 8), (8, 0), (4, 4), (16, 9)])
def test_cp_async_fills_with_zeros(width: int, size: int) -> None:
    source = np.random.default_rng(1).integers(0, 256, 32 * 16, np.uint8)
    out = np.zeros(32 * width, np.uint8)
    body = f"""
      mov.b32 %r10, s; mad.lo.s32 %r11, %r1, {width}, %r10;
      mul.wide.u32 %rd3, %r1, {width}; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
      cp.async.ca.shared.global [%r11], [%rd4], {width}, {size};
      cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;
      mov.b32 %r12, 0;
    $L1:
      add.s32 %r13, %r11, %r12; ld.shared.b8 %rs1, [%r13];
      cvt.u64.u32 %rd6, %r12; add.s64 %rd7, %rd5, %rd6; st.global.b8 [%rd7], %rs1;
      add.s32 %r12, %r12, 1; setp.lt.s32 %p1, %r12, {width}; @%p1 bra $L1;
      ret;
    """
    ran = run(kernel(body, 2, ".shared .align 16 .b8 s[512];"), [source, out], inputs=1, block=(32, 1, 1))
    assert ran.execution.fault is None, ran.execution.fault
    want = source[: 32 * width].reshape(32, width).copy()
    want[:, size:] = 0
    assert (out.reshape(32, width) == want).all()


# --- atomics ---------------------------------------------------------------------------------------------------------

ATOMICS = {
    "add.u32": sum(range(96)), "max.s32": 95, "min.s32": 0, "or.b32": 127, "and.b32": 0, "xor.b32": 0,
    "inc.u32": None, "exch.b32": None,
}  # fmt: skip


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize("form", ["add.u32", "max.s32", "or.b32", "xor.b32"])
def test_reductions_to_one_address(form: str, space: str) -> None:
    if space == "global":
        body, address, begin = f"red.global.{form} [%rd1], %r1; ret;", "", 0
    else:
        address, begin = ".shared .align 4 .b8 s[4];", 0
        body = f"""
          mov.b32 %r10, s; setp.ne.b32 %p1, %r1, 0; @%p1 bra $L1; st.shared.b32 [%r10], 0;
        $L1: bar.sync 0; atom.shared.{form} %r11, [%r10], %r1; bar.sync 0;
          ld.shared.b32 %r12, [%r10]; st.global.b32 [%rd1], %r12; ret;
        """
    out = np.full(1, begin, np.uint32)
    ran = run(kernel(body, 1, address), [out], block=(96, 1, 1))
    assert ran.execution.fault is None, ran.execution.fault
    assert out[0] == ATOMICS[form]


@pytest.mark.parametrize("order", ["", ".relaxed.gpu", ".acq_rel", ".acq_rel.gpu", ".release.cta", ".acquire.sys"])
def test_atomics_return_what_was_there_before(order: str) -> None:
    cell, old = np.zeros(1, np.uint32), np.zeros(64, np.uint32)
    body = f"""
      atom.global{order}.add.u32 %r4, [%rd1], 1; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd2, %rd3;
      st.global.b32 [%rd3], %r4; ret;
    """
    run(kernel(body, 2), [cell, old], block=(64, 1, 1))
    assert cell[0] == 64 and sorted(old.tolist()) == list(range(64))


def test_compare_and_swap_lets_one_thread_win_and_inc_wraps() -> None:
    cells, won = np.zeros(2, np.uint32), np.zeros(64, np.uint32)
    body = """
      add.s32 %r5, %r1, 1; atom.global.cas.b32 %r4, [%rd1], 0, %r5; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd2, %rd3;
      st.global.b32 [%rd3], %r4; red.global.inc.u32 [%rd1+4], 9; ret;
    """
    run(kernel(body, 2), [cells, won], block=(64, 1, 1))
    assert (won == 0).sum() == 1 and cells[0] == int(np.flatnonzero(won == 0)[0]) + 1
    assert cells[1] == 64 % 10


def test_lanes_come_to_an_atomic_in_any_order() -> None:
    """On an H200 it is lane by lane, and nothing promises that (PTX ISA 9.7.13.5)."""
    body = """mov.u32 %r5, 0; st.shared.b32 [tile], %r5; bar.sync 0; atom.shared.add.u32 %r4, [tile], 1;
      mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd1, %rd3; st.global.b32 [%rd3], %r4; ret;"""
    code = kernel(body, 1, declarations=".shared .align 16 .b8 tile[16];")
    found = []
    for warps in (0, 7):
        ranks = np.zeros(32, np.uint32)
        done = run(code, [ranks], block=(32, 1, 1), options=Options(order=Order(warps=warps)))
        assert done.execution.fault is None, done.execution.fault
        found.append(ranks.tolist())
    assert found[0] == list(range(32))
    assert found[1] != found[0] and sorted(found[1]) == found[0]


def test_subnormal_numbers_are_zeros_to_an_atomic_in_global_memory() -> None:
    body = "red.global.add.f32 [%rd1], 0f00000100; atom.global.add.f32 %r4, [%rd1], 0f80000100; ret;"
    cells = np.array([0x00000200], np.uint32)
    assert run(kernel(body, 1), [cells], block=(1, 1, 1)).execution.fault is None
    assert cells.tolist() == [0]


def test_floating_atomics_add_up() -> None:
    sums = np.zeros(1, np.float32)
    run(kernel("  cvt.rn.f32.u32 %f1, %r1; red.global.add.f32 [%rd1], %f1; ret;", 1), [sums], block=(128, 1, 1))
    assert sums[0] == sum(range(128))
    halves = np.zeros(2, np.float16)
    body = "  mov.b32 %r4, 0x40003C00; red.global.add.noftz.f16x2 [%rd1], %r4; ret;"  # (1.0, 2.0)
    run(kernel(body, 1), [halves], block=(64, 1, 1))
    assert halves.tolist() == [64, 128]


# --- several launches, barriers, clusters ----------------------------------------------------------------------------


def test_launches_run_in_order() -> None:
    out = np.ones(64, np.uint32)
    body = """
      mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd1, %rd3; ld.global.b32 %r4, [%rd4]; mul.lo.s32 %r4, %r4, 3;
      st.global.b32 [%rd4], %r4; ret;
    """
    result = run(kernel(body, 1), [out], block=(64, 1, 1), launches=4)
    assert out.tolist() == [81] * 64 and len(result.execution.launched) == 4


def test_named_barriers_pair_producers_and_consumers() -> None:
    body = """
      mov.u32 %r4, %tid.x; mov.b32 %r10, s; setp.ge.u32 %p1, %r4, 32; @%p1 bra $USE;
      mad.lo.s32 %r11, %r4, 4, %r10; mul.lo.s32 %r12, %r4, 5; st.shared.b32 [%r11], %r12;
      bar.arrive 3, 64;
      mov.b32 %r9, 0; bra $END;
    $USE:
      bar.sync 3, 64;
      sub.s32 %r13, 63, %r4; mad.lo.s32 %r11, %r13, 4, %r10; ld.shared.b32 %r9, [%r11];
    $END:
    """
    got = values(body, 64, ".shared .align 4 .b8 s[128];", grid=(5, 1, 1))
    assert got.tolist() == ([0] * 32 + [5 * (31 - i) for i in range(32)]) * 5


def test_distributed_shared_memory_of_a_cluster() -> None:
    """Each block writes its rank into its neighbour's shared memory, then reads what it was given."""
    body = """
      barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
      mov.u32 %r4, %cluster_ctarank; mov.u32 %r5, %cluster_nctarank;
      add.s32 %r6, %r4, 1; rem.u32 %r6, %r6, %r5;
      mov.b32 %r10, s; mad.lo.s32 %r10, %r2, 0, %r10; mov.u32 %r11, %tid.x; mad.lo.s32 %r11, %r11, 4, %r10;
      mapa.shared::cluster.u32 %r12, %r11, %r6;
      mad.lo.s32 %r13, %r2, 1000, %r11;
      st.shared::cluster.b32 [%r12], %r2;
      barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
      ld.shared.b32 %r9, [%r11];
      getctarank.shared::cluster.u32 %r14, %r12; mad.lo.s32 %r9, %r14, 100, %r9;
    """
    got = values(body, 32, ".shared .align 4 .b8 s[128];", grid=(8, 1, 1), cluster=(4, 1, 1))
    want = []
    for block in range(8):
        rank, first = block % 4, block // 4 * 4
        want += [first + (rank - 1) % 4 + 100 * ((rank + 1) % 4)] * 32
    assert got.tolist() == want


def test_st_async_completes_bytes_on_a_remote_mbarrier() -> None:
    """Every block of the cluster sends one value to each block and waits for all four (quack's cluster reduction)."""
    body = """
      mov.u32 %r4, %cluster_ctarank; mov.u32 %r5, %tid.x; mov.b32 %r10, s; mov.b32 %r11, bar;
      setp.ne.b32 %p1, %r5, 0; @%p1 bra $READY;
      mbarrier.init.shared.b64 [%r11], 1;
      mbarrier.arrive.expect_tx.shared.b64 _, [%r11], 16;
    $READY:
      fence.mbarrier_init.release.cluster;
      barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;
      setp.ge.u32 %p2, %r5, 4; @%p2 bra $WAIT;
      mad.lo.s32 %r12, %r4, 4, %r10; mapa.shared::cluster.u32 %r13, %r12, %r5; mapa.shared::cluster.u32 %r14, %r11, %r5;
      add.s32 %r15, %r2, 10;
      st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r13], %r15, [%r14];
    $WAIT:
      mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r11], 0;
      @!%p3 bra $WAIT;
      ld.shared.v4.b32 {%r16, %r17, %r18, %r19}, [%r10];
      add.s32 %r9, %r16, %r17; add.s32 %r9, %r9, %r18; add.s32 %r9, %r9, %r19;
      barrier.cluster.arrive; barrier.cluster.wait;
    """
    declarations = ".shared .align 16 .b8 s[16]; .shared .align 8 .b8 bar[8];"
    got = values(body, 64, declarations, grid=(8, 1, 1), cluster=(4, 1, 1))
    assert got.tolist() == [sum(10 + b for b in range(4))] * 256 + [sum(10 + b for b in range(4, 8))] * 256


def test_blocks_of_a_cluster_in_two_dimensions() -> None:
    out = np.zeros(4 * 6, np.uint32)
    body = """
      mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ctaid.y; mad.lo.s32 %r1, %r5, 4, %r4;
      mov.u32 %r6, %clusterid.x; mov.u32 %r7, %clusterid.y;
      mov.u32 %r8, %cluster_ctaid.x; mov.u32 %r10, %cluster_ctaid.y;
      mad.lo.s32 %r9, %r7, 10, %r6; mad.lo.s32 %r9, %r9, 10, %r10; mad.lo.s32 %r9, %r9, 10, %r8;
      mov.u32 %r11, %tid.x; setp.ne.b32 %p1, %r11, 0; @%p1 ret;
    """
    ran = run(kernel(body + OUT, 1), [out], inputs=0, grid=(4, 6, 1), block=(32, 1, 1), cluster=(2, 3, 1))
    assert ran.execution.fault is None, ran.execution.fault
    want = [(y // 3) * 1000 + (x // 2) * 100 + (y % 3) * 10 + x % 2 for y in range(6) for x in range(4)]
    assert out.tolist() == want


# --- counters --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("stride", "sectors"), [(1, 4), (2, 8), (8, 32), (32, 32), (0, 1)])
def test_sectors_a_warp_touches(stride: int, sectors: int) -> None:
    data = np.zeros(32 * 64, np.uint32)
    body = f"""
      mul.lo.s32 %r4, %r1, {stride}; rem.u32 %r4, %r4, 2048; mul.wide.u32 %rd3, %r4, 4; add.s64 %rd4, %rd1, %rd3;
      ld.global.b32 %r5, [%rd4]; ret;
    """
    c = run(kernel(body, 1), [data], block=(32, 1, 1), grid=(2, 1, 1)).execution.counters
    assert c["global_load_requests"] == 2 and c["global_load_bytes"] == 256
    assert c["global_load_sectors"] == 2 * sectors


def test_a_sample_of_blocks_scales_to_the_grid() -> None:
    out = np.zeros(64 * 200, np.uint32)
    body = "  mov.b32 %r9, 1;" + OUT
    whole = run(kernel(body, 1), [out], inputs=0, block=(64, 1, 1), grid=(200, 1, 1)).execution.counters
    part = run(kernel(body, 1), [out], inputs=0, block=(64, 1, 1), grid=(200, 1, 1),
               options=Options(sample_blocks=16)).execution.counters  # fmt: skip
    assert part["blocks_counted"] == 16 and part["blocks"] == 200
    for name in ("warp_instructions", "global_store_sectors", "lane_instructions"):
        assert part[name] == pytest.approx(whole[name])


def test_no_global_numpy_state_is_left_behind() -> None:
    before = np.geterr()
    evaluate("div.rn.f32 %r9, %r10, %r10;", [np.zeros(32, np.float32)], np.float32)
    assert np.geterr() == before
