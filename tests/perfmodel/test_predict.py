"""The time model against measured times, and its sentences against the situations they are for."""

from __future__ import annotations

import pytest

from cutegen_lab.core.artifact import KernelInfo, Launch
from cutegen_lab.core.roofline import GPUS
from cutegen_lab.perfmodel import occupancy, predict_launch, predict_plan

H200 = GPUS["H200"]


def launch(blocks: int, threads: int = 256, smem: int = 0, cluster: int = 1) -> Launch:
    return Launch("k", (blocks, 1, 1), (threads, 1, 1), (cluster, 1, 1), smem, (), ())


def kernel(registers: int = 40, spills: int = 0) -> KernelInfo:
    return KernelInfo("k", registers, spills, spills, 1024, 0, ())


def streaming(
    read: float, written: float, threads: int, in_flight: float = 64, a_byte: float = 0.05, width: int = 16
) -> dict[str, float]:
    """Counters of a perfectly coalesced kernel that touches each byte once."""
    warps = threads / 32
    instructions = (read + written) * a_byte
    return {
        "global_load_bytes": read, "global_store_bytes": written, "global_load_sectors": read / 32,
        "global_store_sectors": written / 32, "global_load_requests": read / (32 * width),
        "global_store_requests": written / (32 * width), "dram_load_bytes": read, "dram_store_bytes": written,
        "load_bytes_in_flight": in_flight, "load_waits": read / 32 / in_flight,
        "warp_instructions": instructions, "warp_instructions_f32": instructions,
        "lane_instructions": instructions * 32, "shared_requests": 0, "warp_instructions_barrier": 2 * warps,
    }  # fmt: skip


MEASURED = [  # (what, rows, bytes read, bytes written, threads a row, B in flight, µs on an H200, cold L2)
    ("softmax bf16 32768x8192", 32768, 2**29, 2**29, 256, 64, 265),
    ("rmsnorm bf16 32768x8192", 32768, 2**29, 2**29, 256, 64, 268),
    ("copy bf16 32768x1024", 32768, 2**26, 2**26, 128, 16, 35.8),
    ("softmax bf16 4096x8192", 4096, 2**26, 2**26, 256, 64, 36.9),
    ("gelu*sigmoid bf16 4096x8192", 16384, 2**27, 2**26, 256, 32, 54.1),
    ("rmsnorm fp32 2048x4096", 2048, 2**25, 2**25, 256, 64, 21.2),
    ("layernorm backward bf16 4096x4096", 4096, 2**26, 2**25, 256, 64, 29.2),
]


@pytest.mark.parametrize(("what", "rows", "read", "written", "threads", "in_flight", "measured"), MEASURED)
def test_within_a_sixth_of_what_was_measured(
    what: str, rows: int, read: int, written: int, threads: int, in_flight: int, measured: float
) -> None:
    counters = streaming(read, written, rows * threads, in_flight, a_byte=0.01)
    got = predict_launch(counters, launch(rows, threads), kernel(), H200).time_us
    assert abs(got - measured) <= measured / 6, (what, got)


def test_never_faster_than_the_bytes_allow() -> None:
    counters = streaming(1e9, 1e9, 2**20)
    assert predict_launch(counters, launch(4096), kernel(), H200).time_us > 2e9 / H200.copy_bytes_per_s * 1e6


def test_few_loads_in_flight_is_named_and_costs_time() -> None:
    """One 4-byte load at a time and 8 warps a multiprocessor: far below bandwidth × latency."""
    wide = predict_launch(streaming(2**28, 0, 132 * 256, 256), launch(132), kernel(), H200)
    narrow = predict_launch(streaming(2**28, 0, 132 * 256, 4, width=4), launch(132), kernel(), H200)
    assert narrow.time_us > 5 * wide.time_us
    assert narrow.limiter.startswith("memory latency: too few loads in flight, ")
    assert any("4 B of loads in flight" in text and "would cover" in text for text in narrow.findings)
    assert not any("in flight" in text for text in wide.findings)


def test_arithmetic_and_special_functions_are_named() -> None:
    counters = streaming(2**26, 2**26, 2**20, a_byte=3.0)
    assert predict_launch(counters, launch(4096), kernel(), H200).limiter.startswith("instruction issue, ")
    counters["warp_instructions_special"] = counters.pop("warp_instructions_f32")
    found = predict_launch(counters, launch(4096), kernel(), H200)
    assert found.limiter.startswith("special-function units, ")
    assert any("exponentials" in text for text in found.findings)


def test_tiny_work_is_launch_overhead() -> None:
    found = predict_launch(streaming(2**16, 2**16, 2**13), launch(32), kernel(), H200)
    assert found.limiter == "launch overhead, 2 µs" and found.time_us < 8
    assert any("32 blocks leave 100 of 132" in text for text in found.findings)


def test_uncoalesced_and_repeated_reads_are_said() -> None:
    counters = streaming(2**26, 2**26, 2**20)
    counters["global_load_sectors"] *= 8
    found = predict_launch(counters, launch(4096), kernel(spills=16), H200).findings
    assert any("8.0 times the bytes they use" in text for text in found)
    assert any("8.0 times over" in text for text in found)
    assert any("spilled" in text for text in found)


@pytest.mark.parametrize(
    ("threads", "registers", "smem", "blocks", "limiter"),
    [(256, 32, 0, 8, "threads"), (256, 128, 0, 2, "registers"), (256, 32, 100_000, 2, "shared memory"),
     (32, 16, 0, 32, "blocks per multiprocessor"), (1024, 64, 0, 1, "registers")],
)  # fmt: skip
def test_occupancy(threads: int, registers: int, smem: int, blocks: int, limiter: str) -> None:
    found = occupancy(launch(100_000, threads, smem), kernel(registers), H200)
    assert (found.blocks, found.limiter) == (blocks, limiter)


def test_launches_add_up() -> None:
    one = predict_launch(streaming(2**26, 2**26, 2**20), launch(4096), kernel(), H200)
    both = predict_plan([streaming(2**26, 2**26, 2**20)] * 2, [launch(4096)] * 2, {"k": kernel()}, H200)
    assert both.time_us == pytest.approx(2 * one.time_us)
    assert "2 launches" in both.findings[0]


def test_tensor_cores_and_mma_sync() -> None:
    """137 GFLOP of bf16 take 139 µs at the datasheet's rate; mma.sync reaches about 62% of it on Hopper."""
    counters = streaming(2**25, 2**24, 132 * 384) | {"tensor_ops": 2.0 * 4096**3, "tensor_ops_bf16": 2.0 * 4096**3}
    wgmma = predict_launch(counters, launch(132, 384), kernel(), H200)
    assert wgmma.limiter == "tensor cores, 139 µs" and wgmma.parts["tensor"] == pytest.approx(139.0, rel=0.01)
    mma = predict_launch(counters | {"mma_sync_ops": 2.0 * 4096**3}, launch(132, 384), kernel(), H200)
    assert mma.parts["tensor"] == pytest.approx(wgmma.parts["tensor"] / 0.62)
    half = predict_launch(counters, launch(66, 384), kernel(), H200)  # half of the multiprocessors have no block
    assert half.parts["tensor"] == pytest.approx(2 * wgmma.parts["tensor"])


def test_bank_conflicts_are_named() -> None:
    counters = streaming(2**20, 2**20, 132 * 256) | {"shared_wavefronts": 132 * 2e5, "shared_conflicts": 132 * 1.9e5}
    found = predict_launch(counters, launch(132), kernel(), H200)
    assert found.limiter == "shared memory: bank conflicts, 101 µs"
    assert found.parts["shared"] == pytest.approx(2e5 / 1.98e3)  # one wavefront a cycle


def test_many_small_blocks_wait_to_be_started() -> None:
    """65,536 to 352,256 blocks of 64 or 128 threads took 81 to 214 µs on an H200, however little each did."""
    found = predict_launch(streaming(2**27, 2**26, 131072 * 64), launch(131072, 64), kernel(16), H200)
    assert found.limiter.startswith("block starts") and found.time_us == pytest.approx(81, rel=0.15)


@pytest.mark.parametrize(
    ("cluster", "blocks", "room"), [(1, 32, 32 * 132), (2, 8, 528 * 2), (4, 8, 248 * 4), (8, 8, 124 * 8)]
)
def test_eight_blocks_of_clusters_share_a_multiprocessor(cluster: int, blocks: int, room: int) -> None:
    """As launch__cluster_max_active says on an H200: 528 clusters of two, 248 of four, 124 of eight."""
    found = occupancy(launch(4096, 64, cluster=cluster), kernel(16), H200)
    assert found.blocks == blocks and found.waves == pytest.approx(4096 / room)
    assert (found.limiter == "clusters") == (cluster > 1)


SCATTERED = {"global_load_lines": 2.0**22, "global_load_sectors": 2.0**22}  # a sector of each line, 128 MiB in all
A_LINE_US = 2.0**22 / 132 / 1.98e3  # of all lines, at a cycle each


def test_each_cache_line_of_an_access_is_looked_up_and_asked_for() -> None:
    """2^22 lines on 132 multiprocessors, three cycles each at 1.98 GHz where L1 lacks them: 48 µs."""
    found = predict_launch(streaming(2**27, 2**22, 2**20) | SCATTERED, launch(132 * 32), kernel(), H200)
    assert found.limiter.startswith("L1") and found.parts["L1"] == pytest.approx(3 * A_LINE_US)
    assert any("16 cache lines" in text for text in found.findings)


def test_a_line_that_l1_has_and_one_that_a_copy_takes_past_it_cost_less() -> None:
    far = streaming(2**27, 0, 2**20) | SCATTERED
    near = far | {"dram_load_bytes": far["dram_load_bytes"] / 2**10}
    again = far | {"global_load_new_lines": 2.0**21}  # the other half touches sectors that this half brings
    past = far | {"shared_copy_requests": far["global_load_requests"]}
    past |= {"shared_copies_past_l1": past["shared_copy_requests"]}
    missed, hit, once, copied = (
        predict_launch(c, launch(132 * 32), kernel(), H200).parts["L1"] for c in (far, near, again, past)
    )  # fmt: skip
    assert missed == pytest.approx(3 * A_LINE_US)
    assert hit == pytest.approx(A_LINE_US, rel=0.01) and copied == pytest.approx(1.6 * A_LINE_US)
    assert once == pytest.approx(1.5 * A_LINE_US)
    spread = far | {"global_load_new_lines": 0.0, "global_load_wavefronts": 2.0**20}  # four lines at once, no conflicts
    assert predict_launch(spread, launch(132 * 32), kernel(), H200).parts["L1"] == pytest.approx(A_LINE_US / 4)


def test_registers_that_are_spilled_in_a_loop_are_the_limiter() -> None:
    counters = streaming(2**24, 2**22, 2**20) | {"turns": 64.0}
    few, many = (predict_launch(counters, launch(132 * 32), kernel(255, spills), H200) for spills in (0, 1024))
    assert many.time_us > 10 * few.time_us
    assert many.limiter.startswith("L2 bandwidth: registers are spilled")
    assert "spilled" not in few.limiter


def test_the_multiprocessor_with_the_most_blocks_sets_the_time() -> None:
    """144 blocks on 132 multiprocessors take as long as 264."""
    counters = streaming(2**25, 2**24, 144 * 256) | {"tensor_ops": 2.0 * 4096**3, "tensor_ops_bf16": 2.0 * 4096**3}
    found = predict_launch(counters, launch(144), kernel(), H200)
    assert found.parts["tensor"] == pytest.approx(139.0 * 132 / 72, rel=0.01)


def test_what_few_loads_do_beside_bulk_copies_is_not_said() -> None:
    bias = streaming(4096.0, 4096.0, 132 * 32, in_flight=2, width=2)
    alone = predict_launch(bias, launch(132, 32), kernel(), H200).findings
    assert any("in flight" in text for text in alone) and any("per thread; 16 B" in text for text in alone)
    copied = {**bias, "bulk_load_bytes": 1e6, "bulk_load_sectors": 1e6 / 32}
    beside = predict_launch(copied, launch(132, 32), kernel(), H200).findings
    assert not any("in flight" in text or "per thread; 16 B" in text for text in beside)


def test_clusters_of_four_leave_multiprocessors_idle() -> None:
    """33 clusters of four do not fit 132 multiprocessors in clusters that lie within a GPC: an H200 places 30."""
    counters = streaming(2**25, 2**24, 132 * 384) | {"tensor_ops": 2.0 * 4096**3, "tensor_ops_bf16": 2.0 * 4096**3}
    big = kernel(registers=168)
    whole = predict_launch(counters, launch(132, 384, cluster=2), big, H200)
    late = predict_launch(counters, launch(132, 384, cluster=4), big, H200)
    assert whole.occupancy and whole.occupancy.waves == 1.0
    assert late.occupancy and late.occupancy.waves == pytest.approx(1.1)
    assert late.parts["tensor"] == pytest.approx(2 * whole.parts["tensor"])  # some do two clusters' work


def test_bulk_copies_cross_l2_faster_and_narrow_products_wait_for_shared_memory() -> None:
    counters = streaming(2**20, 2**20, 132 * 384)
    copied = {"bulk_load_bytes": 2.0**28, "bulk_load_sectors": 2.0**23, "bulk_loads": 2.0**15}
    bulk = predict_launch(counters | copied, launch(132, 384, smem=200_000), kernel(), H200)
    assert bulk.parts["L2"] == pytest.approx(2.0**28 / 3.5 / H200.copy_bytes_per_s * 1e6, rel=0.05)
    ops = 2.0 * 64 * 32 * 16 * 1e6  # a million m64n32k16: A is 64 rows of 32 bytes, B 32
    narrow = {"tensor_ops": ops, "tensor_ops_bf16": ops, "tensor_instructions": 4e6}
    found = predict_launch(streaming(2**10, 2**10, 132 * 384) | narrow, launch(132, 384), kernel(), H200)
    assert found.parts["shared"] == pytest.approx(1e6 * (64 + 32) * 32 / 128 / (132 * H200.clock_hz / 1e6))


def test_few_blocks_take_from_l2_what_their_multiprocessors_can() -> None:
    """A sum of columns, f32[8192,3072] by 24 blocks, took 64.8 µs on an H200 (model v5: 140); each block got 34 B a
    cycle, where its share among 132 would be 16."""
    read = 4.0 * 8192 * 3072
    got = predict_launch(streaming(read, 0, 24 * 1024, 64, a_byte=0.01), launch(24, 1024), kernel(64), H200)
    assert got.parts["L2"] == pytest.approx(read / 24 / 32 / H200.clock_hz * 1e6)
    assert got.time_us == pytest.approx(64.8, rel=0.25)
    assert got.limiter.startswith("memory latency: few multiprocessors have a block, and each takes a limited rate")


@pytest.mark.parametrize(
    ("barriers", "named"), [(1.0, {"loads in flight", "loads arriving"}), (0.0, {"loads in flight"})]
)
def test_a_barrier_keeps_warps_together_while_loads_arrive(barriers: float, named: set[str]) -> None:
    """Without one a warp works while another's loads arrive: only the longer of both is waited for."""
    counters = streaming(2**26, 0, 2**20, a_byte=1.0) | {"barrier_waits": barriers * 2**15}
    got = predict_launch(counters, launch(4096), kernel(), H200)
    assert {name for name in got.parts if name.startswith("loads ")} == named


@pytest.mark.parametrize(("registers", "times"), [(64, 1.0), (32, 1.6)])
def test_loads_in_flight_need_registers(registers: int, times: float) -> None:
    """128 bytes of a thread: 20 of 32 registers hold 80 of them. All blocks are resident."""
    counters = streaming(2**26, 0, 132 * 256, 128)
    found, enough = (
        predict_launch(counters, launch(132), kernel(count), H200).parts["loads in flight"]
        for count in (registers, 255)
    )
    assert found == pytest.approx(times * enough)


def test_a_batch_waits_for_its_slowest_load() -> None:
    """A load from DRAM beside one from L1 takes as long as alone; the mean of both was what v9 waited for."""
    warps = 132.0 * 8
    beside = {"hot_load_bytes": 128 * warps, "global_load_bytes": 256 * warps, "dram_load_bytes": 128 * warps}
    assert waits_for_loads(load_waits=warps, **beside) == pytest.approx(0.48)


def test_blocks_of_one_wave_do_not_end_together() -> None:
    """A copy by blocks that stay takes up to 11% longer than by many short ones."""
    counters = streaming(2**27, 2**27, 132 * 8 * 256, a_byte=0.001) | {"load_waits": 132.0 * 64}
    one, many = (predict_launch(counters, launch(blocks), kernel(), H200).time_us for blocks in (132 * 6, 132 * 600))
    assert 1.07 < one / many < 1.12


def test_shared_memory_loads_stores_and_shuffles_share_a_data_path() -> None:
    """Of a multiprocessor, 20,000 wavefronts of shared memory, 15,000 lines of loads and stores, 15,000 shuffles."""
    a_cycle = 132.0
    counters = streaming(2**20, 2**20, 132 * 256) | {
        "shared_wavefronts": 2e4 * a_cycle, "global_load_lines": 1e4 * a_cycle, "global_store_lines": 5e3 * a_cycle,
        "warp_instructions_warp": 1.5e4 * a_cycle, "warp_instructions_f32": 0.0,
    }  # fmt: skip
    found = predict_launch(counters, launch(132), kernel(), H200)
    assert found.parts["L1 data path"] == pytest.approx(5e4 / H200.clock_hz * 1e6)
    assert found.limiter.startswith("shared memory and L1, which share a data path") and found.time_us > 5e4 / 1980
    copied = counters | {"shared_copy_requests": counters["global_load_requests"]}  # every load a cp.async
    path = predict_launch(copied, launch(132), kernel(), H200).parts["L1 data path"]
    assert path == pytest.approx(4e4 / H200.clock_hz * 1e6)
    conflicts = counters | {"shared_conflicts": 1.5e4 * a_cycle}
    assert predict_launch(conflicts, launch(132), kernel(), H200).limiter.startswith("shared memory: bank conflicts")


def waits_for_loads(**counters: float) -> float:
    """Microseconds that 132 × 8 blocks of one warp, all resident, wait for the answers to their loads."""
    return predict_launch(
        streaming(2**20, 0, 132 * 8 * 32) | counters, launch(132 * 8, 32), kernel(), H200
    ).parts["loads in flight"]  # fmt: skip


def test_a_warp_waits_as_often_as_it_meets_a_batch_however_wide_the_batches_are() -> None:
    """One batch of 128 bytes and 32 of 8 have 104 bytes in flight on the mean over bytes, and 33 waits."""
    assert waits_for_loads(load_waits=132.0 * 8 * 33) == pytest.approx(33 * 0.48)
    assert waits_for_loads(load_waits=132.0 * 8 * 33, load_bytes_in_flight=1.0) == pytest.approx(33 * 0.48)


@pytest.mark.parametrize(("loads", "us"), [(1, 0.48 / 2 + 0.12 / 2), (4, 0.48 * 15 / 16 + 0.12 / 16)])
def test_one_of_a_wait_s_loads_is_enough_to_wait_for_dram(loads: int, us: float) -> None:
    """Half of the loads are served by DRAM, the others by L2: of four, one is in 15 of 16 cases."""
    bytes_ = 2.0**31
    counters = {"load_waits": 132.0 * 8, "global_load_requests": 132.0 * 8 * loads, "hot_load_bytes": 0.0}
    beside = {"global_load_bytes": bytes_, "dram_load_bytes": bytes_ / 2, "warm_load_bytes": bytes_}
    assert waits_for_loads(**counters, **beside) == pytest.approx(us)


def test_what_cp_async_brings_needs_no_registers() -> None:
    loads = {"load_waits": 132.0 * 8, "load_bytes_in_flight": 4096.0}
    copies = {"shared_copy_requests": 1.0, "global_load_requests": 1.0}
    assert waits_for_loads(**loads, **copies) == pytest.approx(0.48)
    assert waits_for_loads(**loads) > 5 * 0.48


def test_tensor_cores_of_a_block_that_is_alone_idle_while_it_does_something_else() -> None:
    """The same work in step by barriers, by one block a multiprocessor and by two."""
    ops = 2.0 * 4096**3
    counters = streaming(2**25, 2**24, 132 * 256) | {
        "tensor_ops": ops, "tensor_ops_bf16": ops, "mma_sync_ops": ops, "barrier_waits": 132 * 8 * 64.0,
        "shared_wavefronts": 132 * 4e5, "chain_cycles": 0.0,
    }  # fmt: skip
    lone, two = (predict_launch(counters, launch(blocks, 256), kernel(), H200).time_us for blocks in (132, 264))
    assert lone > 1.08 * two
    assert predict_launch(counters | {"mma_sync_ops": 0.0}, launch(132, 256), kernel(), H200).time_us < lone


@pytest.mark.parametrize(("stretch", "first"), [(2**30, 3), (256, 2), (0, 0)])
def test_loads_that_l1_keeps_wait_for_dram_only_the_first_time(stretch: int, first: int) -> None:
    """Three of four waits, 128 bytes each; the other load is of what nothing has read before."""
    warps = 132.0 * 8
    hot = {"hot_load_waits": 3 * warps, "hot_waited_bytes": 3 * 128 * warps, "hot_load_bytes": 3 * 128 * warps}
    loaded = {"global_load_bytes": 4 * 128 * warps, "dram_load_bytes": 128 * warps, "hot_stretch_bytes": stretch}
    assert waits_for_loads(load_waits=4 * warps, **hot, **loaded) == pytest.approx(0.48 + 3 * 0.04 + first * 0.44)


def test_only_the_first_wave_finds_l1_empty() -> None:
    """The same blocks in two waves: twice the waits, but what L1 keeps is brought once."""
    warps = 132.0 * 64
    counters = streaming(2**20, 0, 132 * 64 * 32) | {
        "load_waits": 2 * warps, "hot_load_waits": warps, "hot_waited_bytes": 128 * warps, "hot_stretch_bytes": 128.0,
        "hot_load_bytes": 128 * warps, "global_load_bytes": 256 * warps, "dram_load_bytes": 128 * warps,
    }  # fmt: skip
    found = predict_launch(counters, launch(132 * 64, 32, smem=3 << 10), kernel(), H200)
    assert found.occupancy and found.occupancy.waves == 2.0
    assert found.parts["loads in flight"] == pytest.approx(2 * (0.48 + 0.04) + 0.44)


def test_a_cp_async_past_l1_costs_its_bytes_and_one_through_l1_its_wavefronts() -> None:
    """10,000 copies of a multiprocessor's warps, 16 bytes a lane, in 10 wavefronts each: past L1 they take 4 cycles."""
    through = streaming(2**20, 2**20, 132 * 256) | {
        "shared_wavefronts": 132 * 2e5, "shared_copy_wavefronts": 132 * 1e5, "shared_copy_requests": 132 * 1e4,
    }  # fmt: skip
    past = through | {"shared_copies_past_l1": 132 * 1e4}
    for counters, cycles in ((through, 2e5), (past, 1e5 + 4e4)):
        got = predict_launch(counters, launch(132), kernel(), H200)
        assert got.parts["shared"] == pytest.approx(cycles / 1.98e3) and got.limiter.startswith("shared memory")


def test_units_that_work_beside_each_other_all_count() -> None:
    """Tensor cores alone take 139 µs; L1 that takes as long beside them costs a quarter more."""
    products = {"tensor_ops": 2.0 * 4096**3, "tensor_ops_bf16": 2.0 * 4096**3, "mma_sync_ops": 0.0}
    alone = predict_launch(streaming(2**20, 2**20, 2**20, a_byte=0.001) | products, launch(132 * 8), kernel(), H200)
    busy = products | {"global_store_lines": 139.0 * 1.98e3 * 132 / 1.75}
    both = predict_launch(streaming(2**20, 2**20, 2**20, a_byte=0.001) | busy, launch(132 * 8), kernel(), H200)
    assert both.parts["L1"] == pytest.approx(both.parts["tensor"], rel=0.01)
    assert 1.15 < both.time_us / alone.time_us < 2 ** (1 / 3)


def test_a_wave_that_has_begun_waits_whole() -> None:
    """1.01 waves of blocks that are bound by their chains take as long as two."""
    room = 8 * 132
    for blocks, waves in ((room, 1), (room + 10, 2), (2 * room, 2)):
        counters = streaming(2**20, 2**20, blocks * 256) | {"chain_cycles": 1e4 * 8 * blocks}
        found = predict_launch(counters, launch(blocks), kernel(32), H200)
        assert found.parts["dependent instructions"] == pytest.approx(waves * 1e4 / 1.98e3)


@pytest.mark.parametrize(("threads", "cycles"), [(64, 20 + 2 * 2), (1024, 20 + 2 * 32)])
def test_a_barrier_takes_its_warps_one_after_another(threads: int, cycles: float) -> None:
    """16 threads a cycle, by NVIDIA's table of throughputs; an mbarrier is asked by each warp for itself."""
    warps = 132 * threads / 32
    little, at = streaming(2**20, 2**20, 132 * threads), launch(132, threads)
    found, asked = (
        predict_launch(little | {kind: 1e3 * warps}, at, kernel(), H200) for kind in ("barrier_waits", "mbarrier_waits")
    )
    assert found.limiter.startswith("barriers") and found.parts["barriers"] == pytest.approx(cycles / 1.98)
    assert asked.parts["barriers"] == pytest.approx(20 / 1.98)


def test_independent_fp32_instructions_follow_each_other_each_cycle() -> None:
    """One warp a scheduler: 10,000 that need each other's results wait for them and hold each other up for two cycles,
    independent ones for one."""
    warps = 132 * 4
    counters = streaming(2**20, 2**20, 132 * 128, a_byte=0.0) | {"warp_instructions_f32": 1e4 * warps}
    one, many = (
        predict_launch(counters | {"chain_cycles": cycles * warps}, launch(132, 128), kernel(), H200).parts
        for cycles in (4e4, 0.0)
    )
    assert one["instructions in order"] == pytest.approx(2e4 / 1.98e3, rel=1e-3)
    assert many["instructions in order"] == pytest.approx(1e4 / 1.98e3, rel=1e-3)
