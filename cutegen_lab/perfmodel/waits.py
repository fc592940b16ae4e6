"""Latencies that a block waits for if it is alone on its multiprocessor, in microseconds."""

from __future__ import annotations

import math
from collections.abc import Mapping

from cutegen_lab.core.artifact import Launch
from cutegen_lab.core.predicted import ARRIVAL, BARRIERS, BLOCK, CLUSTER, DEPENDENT, IN_ORDER, LOADS, STAGES, WORK
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.perfmodel.cost_terms import COPIED_A_CYCLE, LOADED_A_CYCLE, pipe_cycles
from cutegen_lab.perfmodel.occupancy import Occupancy
from cutegen_lab.perfmodel.traffic import Traffic, copied_share

_LATENCY_US = 0.48  # latency of a DRAM access while memory is not busy
_L2_LATENCY_US = 0.12  # latency of an access that hits L2, without the overlapped part
_L1_LATENCY_US = 0.04
# Latency of a bulk copy, from the wait for a free stage to the data's arrival; more for each doubling of the cluster,
# as all its blocks must have released the stage.
_BULK_LATENCY_US = 0.6
_CLUSTER_STAGE_US = 0.2
_EXPOSED_LOADS = 0.5  # fraction of a block's bytes whose transfer does not overlap with its arithmetic
_EXPOSED_WORK = 0.75  # fraction of the busiest unit's time that does not overlap with the block's loads
# Registers for addresses, counters and sums while loads are in flight: of 32 registers, ptxas uses at most 19 or 20 for
# loads, in loops that load 32 values (p4 of benchmarks/foreign_kernels).
_REGISTERS_IN_USE = 12
_HIDDEN_INSTRUCTIONS = 0.35  # fraction of a warp's serial instruction time that other warps hide
_IN_ORDER = 2.0  # cycles until a warp's next instruction, relative to the unit's cycles for this one
_BARRIER_CYCLES = 20.0
# Cycles of a warp's arrival at a barrier: 16 threads per cycle (CUDA C++ guide, throughput of __syncthreads()).
_ARRIVAL_CYCLES = 2.0
# Time of a cluster barrier, and its growth with each doubling of the cluster: measured alone on an H200, 0.20 µs in
# clusters of two, 0.22 of four, 0.24 of eight and 0.30 of sixteen (benchmarks/results/foreign_on_gpu.json).
_CLUSTER_US = 0.17
_CLUSTER_SIZE_US = 0.03
# Exchange through another block's shared memory: 0.1 µs for the copy; the rest, in the recorded sweeps, is the delay of
# a late sender.
_EXCHANGE_US = 0.55
# Start of a block, and of each of its warps, from copies of 2 and 4 bytes per thread by blocks of 256, 512 and 1,024
# threads on an H200 (benchmarks/results/streamed_copies_on_gpu.json).
_BLOCK_START_US = 0.18
_WARP_START_US = 0.0035


def waits_us(
    counters: Mapping[str, float], launch: Launch, shape: Occupancy, moved: Traffic, unit_us: float, gpu: GpuSpec
) -> dict[str, float]:
    """Waits by name; their sum is waves × the time of one block alone, minus what other resident blocks hide. Bulk
    copies into a ring of stages, dependent instructions and the busiest unit overlap, so only the longest counts. So do
    the arrival of loads and a warp's work, unless barriers synchronise the warps of a block."""
    blocks = math.prod(launch.grid)
    warps = blocks * -(-math.prod(launch.block) // 32)
    times = math.ceil(shape.waves) * counters.get("busiest_block", 1.0)  # a partial wave counts in full
    alone = {
        BLOCK: _BLOCK_START_US + _WARP_START_US * warps / blocks,
        **_reads_us(counters, blocks, warps, moved, times, shape, gpu),
        BARRIERS: barriers_us(counters, blocks, warps, gpu),
        CLUSTER: cluster_us(counters, launch, warps) + exchanges_us(counters, blocks),
    }
    work_us, stages_us = _work_us(unit_us, blocks, warps, shape), 0.0
    work = _EXPOSED_WORK / _parts(counters, blocks, warps)
    if counters.get("bulk_load_bytes", 0.0):
        alone[BLOCK] += _stage_us(counters, launch, gpu)  # until its first stage arrives, a block has no data
        work, stages_us = 1.0, _stages_us(counters, launch, blocks, work_us, gpu)
    at_a_time = [instructions_us(counters, warps, gpu), {WORK: work * work_us}, {STAGES: stages_us}]
    if not counters.get("barrier_waits", 0.0):  # one warp works while another's loads arrive
        at_a_time.append({ARRIVAL: alone.pop(ARRIVAL)})
    longest: dict[str, float] = max(at_a_time, key=lambda found: sum(found.values()))
    alone |= longest
    return {name: times * value for name, value in alone.items() if value}


def hidden_us(waited: Mapping[str, float]) -> float:
    """Part of ``waited`` (of :func:`waits_us`) that other warps hide: serially issued instructions. Waits for loads and
    block starts leave more of the multiprocessor idle and count in full."""
    return _HIDDEN_INSTRUCTIONS * (waited.get(DEPENDENT, 0.0) + waited.get(IN_ORDER, 0.0))


def _reads_us(
    counters: Mapping[str, float], blocks: int, warps: int, moved: Traffic, times: float, shape: Occupancy, gpu: GpuSpec
) -> dict[str, float]:
    """A warp's waits for batches of loads, each with the latency of the level that serves it, and the transfer of the
    block's bytes. A single batch waits for both; with several batches, the next is requested while other warps' bytes
    arrive, unless there is a barrier in between. Batches that stay in L1 (``hot``) have L1's latency, and DRAM's once
    in the first block of a multiprocessor."""
    loaded, (far, _) = counters["global_load_bytes"], _levels(counters, moved)
    waits = _batches(counters, warps) * _refills(counters, shape)
    answers = answers_us(counters, counters, warps, moved, shape)
    first = _first_waits(counters, counters.get("hot_load_waits", 0.0) / warps) * (_LATENCY_US - _L1_LATENCY_US) / times
    # a multiprocessor's share of the memory bandwidth, limited by its rate from L2
    rate = min(gpu.copy_bytes_per_s / min(blocks, gpu.sm_count), LOADED_A_CYCLE * gpu.clock_hz)
    arrives = _EXPOSED_LOADS * moved.far * loaded / blocks / rate * 1e6
    in_turns = counters.get("barrier_waits", 0.0) >= counters["load_waits"]  # a barrier after each batch
    return {LOADS: answers + first, ARRIVAL: arrives if in_turns else arrives / max(far * waits, 1.0)}


def answers_us(
    of: Mapping[str, float], counters: Mapping[str, float], warps: int, moved: Traffic, shape: Occupancy
) -> float:
    """Latencies of the batches of loads in ``of``: ``counters`` of the launch, or those of one line."""
    far, near = _levels(counters, moved)
    l1 = 1 - far - near
    loads = max(counters["global_load_requests"] / max(counters["load_waits"], 1.0), 1.0)  # loads of one wait
    slow, l1 = 1 - (1 - far) ** loads, max(l1, 0.0) ** loads  # the slowest load decides
    answer: float = slow * _LATENCY_US + (1 - slow - l1) * _L2_LATENCY_US + l1 * _L1_LATENCY_US
    hot = of.get("hot_load_waits", 0.0) / warps
    return _batches(of, warps) * _refills(counters, shape) * answer + hot * _L1_LATENCY_US


def _batches(counters: Mapping[str, float], warps: int) -> float:
    """Batches of loads per warp, without those that stay in L1."""
    return (counters.get("load_waits", 0.0) - counters.get("hot_load_waits", 0.0)) / warps


def _levels(counters: Mapping[str, float], moved: Traffic) -> tuple[float, float]:
    """Fractions of the loaded bytes, without those that stay in L1, that come from DRAM and from L2."""
    loaded = counters["global_load_bytes"]
    others = max(loaded - counters.get("hot_load_bytes", 0.0), 1.0) / max(loaded, 1.0)
    far = min(moved.far / others, 1.0)
    return far, min(moved.near / others, 1.0 - far)


def _parts(counters: Mapping[str, float], blocks: int, warps: int) -> float:
    """Number of parts of a block's work, of which each overlaps with loads of the others: by batch of loads, and by
    warp unless barriers synchronise its warps."""
    batches = max(counters["load_waits"] / warps, 1.0)
    return batches if counters.get("barrier_waits", 0.0) else batches * warps / blocks


def _refills(counters: Mapping[str, float], shape: Occupancy) -> float:
    """Factor by which a limited number of registers per thread multiplies the batches of loads: each load in flight
    needs registers for its result; cp.async does not."""
    if not shape.registers:
        return 1.0
    room = 4.0 * max(shape.registers - _REGISTERS_IN_USE, 4)
    return max(counters["load_bytes_in_flight"] * (1 - copied_share(counters)) / room, 1.0)


def _first_waits(counters: Mapping[str, float], hot: float) -> float:
    """Those of a warp's ``hot`` waits that load data into L1 for the first time."""
    bytes_ = counters.get("hot_waited_bytes", 0.0)
    batches = counters["hot_stretch_bytes"] * counters["hot_load_waits"] / bytes_ if bytes_ else 0.0
    return min(hot, batches)


def _stages_us(counters: Mapping[str, float], launch: Launch, blocks: int, work_us: float, gpu: GpuSpec) -> float:
    """Time that a block waits for its stages of bulk copies: all of the ring except the one in use are in flight."""
    stage = max(_stage_bytes(counters), 1024.0)
    ring = counters.get("bulk_stages", 0.0) or max(launch.dynamic_smem_bytes // stage, 1.0)
    turns = max(counters.get("bulk_phases", 0.0) / blocks, 1.0)
    if ring < 2:
        return turns * _stage_us(counters, launch, gpu) + work_us
    return turns * _stage_us(counters, launch, gpu) / (ring - 1)


def _stage_us(counters: Mapping[str, float], launch: Launch, gpu: GpuSpec) -> float:
    """Time from requesting a stage to its arrival."""
    latency = _BULK_LATENCY_US + _CLUSTER_STAGE_US * math.log2(math.prod(launch.cluster))
    return latency + _stage_bytes(counters) / (COPIED_A_CYCLE * gpu.clock_hz) * 1e6


def _stage_bytes(counters: Mapping[str, float]) -> float:
    arrives = counters.get("bulk_expected_bytes", 0.0) or counters.get("bulk_load_bytes", 0.0)
    return arrives / max(counters.get("bulk_phases", 0.0), 1.0)


def barriers_us(counters: Mapping[str, float], blocks: int, warps: int, gpu: GpuSpec) -> float:
    """Time at barriers of the block, which serialise its warps, and mbarriers, on which each warp waits by itself."""
    each = _BARRIER_CYCLES + _ARRIVAL_CYCLES * warps / blocks
    cycles = each * counters.get("barrier_waits", 0.0) + _BARRIER_CYCLES * counters.get("mbarrier_waits", 0.0)
    return cycles / warps / gpu.clock_hz * 1e6


def cluster_us(counters: Mapping[str, float], launch: Launch, warps: int) -> float:
    """Time at barriers of the cluster."""
    barrier = _CLUSTER_US + _CLUSTER_SIZE_US * math.log2(math.prod(launch.cluster))
    return barrier * counters.get("cluster_waits", 0.0) / warps


def exchanges_us(counters: Mapping[str, float], blocks: int) -> float:
    """Waits at mbarriers for data that other blocks of the cluster send to shared memory."""
    sent = 0.0 if counters.get("bulk_load_bytes", 0.0) else counters.get("bulk_phases", 0.0)
    return _EXCHANGE_US * sent / blocks


def instructions_us(counters: Mapping[str, float], warps: int, gpu: GpuSpec) -> dict[str, float]:
    """Time of a warp's instructions: the longest chain of dependent ones, and in-order issue. The fp32 units accept one
    instruction per cycle from a single warp if the instructions are independent."""
    independent = max(counters.get("warp_instructions_f32", 0.0) - counters.get("chain_cycles", 0.0), 0.0)
    in_order = _IN_ORDER * pipe_cycles(counters) - (_IN_ORDER - 1) * independent
    cycles = {DEPENDENT: counters.get("chain_cycles", 0.0), IN_ORDER: in_order}
    return {name: value / warps / gpu.clock_hz * 1e6 for name, value in cycles.items()}


def _work_us(unit_us: float, blocks: int, warps: int, shape: Occupancy) -> float:
    """Time of the busiest unit for one block alone, divided among four sub-partitions: fewer than four
    warps leave some idle."""
    return unit_us * shape.busy(blocks) / blocks * max(4 * blocks / warps, 1.0)
