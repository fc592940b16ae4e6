"""Every term that can win is named by what it is, with its figure and advice for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_lab.core.artifact import PROGRAMMATIC, Launch
from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.roofline import GPUS
from cutegen_lab.perfmodel import Prediction, predict_launch, predict_plan
from tests.perfmodel.test_predict import kernel, launch, streaming

H200 = GPUS["H200"]
WARPS = 132 * 8
TMA_GEMM = {  # 2048³ in tiles of 128×128×64: 132 blocks, 32 KiB a stage, a quarter of them shared in clusters
    "tensor_ops": 2.0 * 2048**3, "tensor_ops_bf16": 2.0 * 2048**3, "tensor_instructions": 2.0**17,
    "bulk_load_bytes": 3 * 2.0**26, "bulk_load_sectors": 3 * 2.0**21, "bulk_expected_bytes": 2.0**28,
    "bulk_phases": 2.0**13, "bulk_loads": 2.0**14,
}  # fmt: skip


def found(smem: int = 0, **more: float) -> Prediction:
    """Of 132 blocks of eight warps that stream little."""
    counters = streaming(2**20, 2**20, 132 * 256) | more
    return predict_launch(counters, launch(132, smem=smem), kernel(), H200)


WAITS = [
    ("dependent instructions", {"chain_cycles": 40_000.0 * WARPS}, "several accumulators"),
    ("instruction issue of few warps", {"warp_instructions_other": 9_000.0 * WARPS}, "more warps fill the gaps"),
    ("cluster waits", {"cluster_waits": 40.0 * WARPS}, "waits 40 times for its cluster to arrive"),
    ("barriers", {"barrier_waits": 2_000.0 * WARPS}, "waits at 2,000 barriers"),
]


@pytest.mark.parametrize(("name", "counters", "advice"), WAITS, ids=[w[0] for w in WAITS])
def test_what_blocks_wait_for_is_named(name: str, counters: dict[str, float], advice: str) -> None:
    got = found(**counters)
    assert got.limiter.startswith(f"{name}, ") and "µs that blocks take one after another" in got.limiter
    assert any(advice in text for text in got.findings)
    assert not any("in flight" in text for text in got.findings)


def test_a_chain_costs_its_cycles_and_independent_instructions_their_issue() -> None:
    """64 accumulators of one multiplication each take as many instructions as one of 64, and no such chain."""
    instructions = {"warp_instructions_f32": 20_000.0 * WARPS}
    one, many = (found(chain_cycles=cycles * WARPS, **instructions) for cycles in (80_000.0, 1_250.0))
    assert one.parts["dependent instructions"] == pytest.approx(80_000 / 1.98e3)
    assert one.time_us > 1.8 * many.time_us  # of instructions one after another, others hide 0.35


def test_a_pipelined_product_is_bound_by_tensor_cores() -> None:
    got = found(smem=200_000, **TMA_GEMM)
    assert got.limiter.startswith("tensor cores, ")
    assert not any("in flight" in text or "latency" in text for text in got.findings)


@pytest.mark.parametrize(("smem", "advice"), [(66_000, "more stages cover"), (230_000, "no room for more")])
def test_products_that_wait_for_their_stages(smem: int, advice: str) -> None:
    few = TMA_GEMM | {
        "tensor_ops": 1e9,
        "tensor_ops_bf16": 1e9,
        "bulk_load_bytes": 2.0**24,
        "bulk_load_sectors": 2.0**19,
    }
    got = found(smem=smem, **few)
    assert got.limiter.startswith("bulk copies: products wait for stages, ")
    assert any("stages of 32 KiB" in text and advice in text for text in got.findings)


def test_stages_and_products_pass_at_a_time() -> None:
    """Bulk copies that take less than the products they are for cost nothing more."""
    stages = [found(smem=smem, **TMA_GEMM).time_us for smem in (200_000, 230_000)]
    assert stages[0] == pytest.approx(stages[-1]) and "bulk copies" not in found(smem=230_000, **TMA_GEMM).parts


FEW = {"tensor_ops": 1e9, "tensor_ops_bf16": 1e9, "tensor_instructions": 1e3}
TURNS = 2.0**13 / 128  # stages of 32 KiB that each of 128 blocks takes


def staged(ring: int, cluster: int = 1, smem: int = 200_000, **more: float) -> Prediction:
    counters = streaming(2**20, 2**20, 128 * 256) | TMA_GEMM | FEW | {"bulk_stages": float(ring)} | more
    return predict_launch(counters, launch(128, smem=smem, cluster=cluster), kernel(), H200)


def test_a_stage_is_free_later_where_a_cluster_shares_it() -> None:
    """Each doubling of the cluster adds 0.2 µs to what every stage takes to come back."""
    alone, shared = (staged(3, cluster, 66_000).parts["bulk copies"] for cluster in (1, 4))
    assert shared - alone == pytest.approx(TURNS / 2 * 0.4)


@pytest.mark.parametrize(("ring", "under_way"), [(2, 1), (3, 2), (5, 4)])
def test_all_stages_but_the_one_that_is_worked_on_are_under_way(ring: int, under_way: int) -> None:
    """32 KiB at 64 bytes a cycle, 0.6 µs after they are asked for; shared memory for results is no stage."""
    stage = 0.6 + 32_768 / 64 / 1.98e3
    got = staged(ring)
    assert got.parts["bulk copies"] == pytest.approx(TURNS * stage / under_way)
    assert got.parts["block start"] == pytest.approx(
        0.18 + 8 * 0.0035 + stage
    )  # and the first of them is waited for whole
    assert got.limiter.startswith("bulk copies: products wait for stages, ")


def test_one_stage_is_filled_and_worked_on_in_turns() -> None:
    work = staged(1, tensor_ops=1e11, tensor_ops_bf16=1e11).parts["bulk copies"] - staged(1).parts["bulk copies"]
    assert work == pytest.approx((1e11 - 1e9) / H200.flops[DType.BF16] * H200.sm_count / 128 * 1e6)


def test_memory_that_is_not_busy_is_latency() -> None:
    """16 MB in and out take 8.1 µs at the rate of a copy, but 12.6 of those stored are in L2 when the launch ends."""
    got = predict_launch(streaming(2**24, 2**24, 2**20), launch(4096), kernel(), H200)
    assert max(("memory", "waits"), key=got.parts.__getitem__) == "memory" and got.dram_share < 0.6
    assert got.limiter.startswith("memory latency: ") and f"DRAM is at {got.dram_share:.0%}" in got.limiter
    longer = predict_launch(streaming(2**27, 2**27, 2**20), launch(4096), kernel(), H200)
    assert longer.limiter.startswith("memory bandwidth, ") and longer.dram_share > 0.6


def test_a_short_launch_at_the_floor_is_latency_too() -> None:
    counters = streaming(2**24, 2**24, 2**20, a_byte=0.001)
    got = predict_plan([counters], [launch(4096)], {"k": kernel()}, H200, 2.0**25)
    assert got.limiter.startswith("memory latency, at the floor: memory 8.1 µs + launch 2 µs") and got.findings == ()


def test_what_takes_nearly_as_long_is_said() -> None:
    """137 GFLOP on tensor cores take 139 µs, and 570 MB of DRAM 138; half of these are not worth a word."""
    products = {"tensor_ops": 2.0 * 4096**3, "tensor_ops_bf16": 2.0 * 4096**3}
    both, one = (
        predict_launch(streaming(read, 2**20, 2**20, a_byte=0.001) | products, launch(1056), kernel(), H200)
        for read in (570e6, 285e6)
    )
    assert both.limiter.startswith("tensor cores, 139 µs") and one.limiter == both.limiter
    said = "nearly as long, 138 µs: memory bandwidth; reducing only one of them gains little"
    assert said in both.findings and not any("nearly" in text for text in one.findings)


def test_a_limiter_that_stands_alone_has_no_second() -> None:
    """A product whose blocks wait for nothing but the tensor cores: these are not named twice."""
    assert not any("nearly as long" in text and "tensor" in text for text in found(smem=200_000, **TMA_GEMM).findings)


def test_instructions_are_named_by_class_where_they_set_the_time() -> None:
    counters = streaming(2**20, 2**20, 132 * 256) | {
        "warp_instructions_integer": 3e7, "warp_instructions_convert": 2e7, "warp_instructions_move": 9e7,
    }  # fmt: skip
    got = predict_launch(counters, launch(132 * 8), kernel(), H200)
    assert got.limiter.startswith("integer units, ")
    assert any(text.startswith("warp instructions: 60% integer, 40% convert") for text in got.findings)


def test_conversions_are_named() -> None:
    """8-bit weights to bf16, say: they share the integer units and are most of what these do."""
    counters = streaming(2**20, 2**20, 132 * 256) | {"warp_instructions_integer": 1e7, "warp_instructions_convert": 4e7}
    got = predict_launch(counters, launch(132 * 8), kernel(), H200)
    assert got.limiter.startswith("conversions, ")
    assert any("% convert" in text for text in got.findings)


def plan(compulsory: float, launches: tuple[Launch, ...], read: float = 2.0**27) -> Prediction:
    counters = streaming(read, 2.0**27, 4096 * 256)
    return predict_plan([counters] * len(launches), launches, {"k": kernel()}, H200, compulsory)


def test_at_the_floor_nothing_is_suggested() -> None:
    """A copy of the compulsory bytes and one launch: 64.8 + 2 µs."""
    got = plan(2.0**28, (launch(4096),))
    assert got.limiter == "at the floor: memory 64.8 µs + launch 2 µs" and got.findings == ()
    assert got.parts["copy"] == pytest.approx(2.0**28 / H200.copy_bytes_per_s * 1e6)


def test_the_only_wave_of_a_copy_is_at_the_floor() -> None:
    """Blocks that do not end together cost a copy of one wave as much as they cost a kernel of one wave."""
    counters = streaming(2.0**27, 2.0**27, 792 * 256, a_byte=0.001)
    got = predict_plan([counters], [launch(792)], {"k": kernel()}, H200, 2.0**28)
    assert got.occupancy.waves <= 1 and got.time_us > 1.08 * (got.parts["copy"] + 2.0)
    assert got.limiter.startswith("at the floor: ")


def test_who_reads_more_than_must_be_read_is_not_at_the_floor() -> None:
    assert plan(2.0**28, (launch(4096),), read=1.2 * 2**27).limiter.startswith("memory bandwidth, ")
    assert plan(2.0**28, (launch(4096), launch(4096))).limiter.startswith("memory bandwidth, ")
    assert plan(0.0, (launch(4096),)).limiter.startswith("memory bandwidth, ")


def test_a_launch_that_starts_while_the_one_before_ends_costs_less() -> None:
    """On an H200 0.4 to 1 µs of two launches' time; the first has none before it."""
    early = replace(launch(4096), attributes={PROGRAMMATIC: (1).to_bytes(64, "little")})
    apart, overlapping = plan(0.0, (early, launch(4096))), plan(0.0, (launch(4096), early))
    assert apart.time_us == plan(0.0, (launch(4096),) * 2).time_us
    assert 0.4 <= apart.time_us - overlapping.time_us <= 1.0
    assert overlapping.parts["launch"] == pytest.approx(apart.parts["launch"] - (apart.time_us - overlapping.time_us))


def test_the_line_of_a_narrow_access_is_named() -> None:
    """Scalars on one line do not make the vectors of another narrow."""
    counters = streaming(2**26, 2**26, 2**20)
    vectors = {name: value for name, value in counters.items() if name.startswith("global")}
    scalars = vectors | {f"global_{way}_requests": 4 * vectors[f"global_{way}_requests"] for way in ("load", "store")}
    none = dict.fromkeys(vectors, 0.0)
    stores = {n: v for n, v in scalars.items() if "store" in n}
    loads = {n: v for n, v in vectors.items() if "load" in n}
    lines = {7: none | loads, 9: none | stores, 11: none | {"global_load_bytes": 4.0, "global_load_requests": 1.0}}
    few = {
        "global_load_requests": 8.0 * vectors["global_load_requests"],
        "global_load_bytes": counters["global_load_bytes"],
    }
    lines[12] = none | loads | few | {"warp_instructions": 1e6, "lane_instructions": 4e6}  # vectors of four lanes
    got = predict_launch(counters, launch(4096), kernel(), H200, lines)
    said = [text for text in got.findings if "128-bit" in text]
    assert said == ["line 9: its global stores are 4 B per thread; 16 B (128-bit) vectors need fewer instructions"]


def test_what_crosses_l2_again_and_again_is_not_memory_bandwidth() -> None:
    """4 MB of input that fits L2, read through cp.async by every block: DRAM has little to do."""
    counters = streaming(2**22, 2**20, 132 * 256) | {"global_load_bytes": 2.0**30, "global_load_sectors": 2.0**25}
    counters |= {"global_load_requests": 2.0**21, "shared_copy_requests": 2.0**21}
    got = predict_launch(counters, launch(132 * 8), kernel(), H200)
    assert got.limiter.startswith("L2 bandwidth, ")
    assert got.parts["L2"] > 50 * got.parts["memory"]
