"""The terms of the time model, each a lower bound on a launch's time in microseconds by one resource."""

from __future__ import annotations

import math
from collections.abc import Mapping

from cutegen_lab.core.artifact import Launch
from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.tuning.occupancy import Occupancy
from cutegen_lab.tuning.traffic import Traffic

OVERHEAD_US = 2.0  # launch, ramp-up and drain of one kernel
BUSY_LATENCY_US = 0.75  # of a DRAM access while memory is busy: what loads in flight have to cover
_LATENCY_US = 0.4  # of a DRAM access while it is not
_L2_LATENCY_US = 0.12  # of an access that hits L2, beyond what is overlapped
_L1_LATENCY_US = 0.04
_BULK_BYTES_A_CYCLE = 32.0  # that a multiprocessor takes from L2
_BULK_LATENCY_US = 0.65  # of a bulk copy, from the wait for room to the data's arrival
_L2_RATIO = 1.5  # L2 bandwidth over the copy rate
_BULK_L2_RATIO = 3.5  # … for bulk copies, whose requests are few and large
_LINE_CYCLES = 2.0  # of a multiprocessor, for each 128-byte line a warp's access touches: a look-up in L1's tags
_DEPENDENT_CYCLES = 4.0  # between a warp's instructions on average: 4 to 6 cycles' latency, some overlap
_EXPOSED_LOADS = 0.65  # part of a block's bytes that its arithmetic cannot overlap with
_EXPOSED_WORK = 0.75  # part of a block's busiest unit that its loads cannot overlap with
_BARRIER_CYCLES = 20.0
_CLUSTER_US = 1.0  # that a block waits for the others of its cluster
_BLOCK_START_US = 0.2
_START_CYCLES = 1.2  # of the whole GPU, between two blocks handed out …
_CLUSTER_STARTS = 0.9  # … and this much more for each doubling of the cluster, which must find room at one time
_MMA_SYNC_SHARE = 0.62  # of a Hopper tensor core's rate that mma.sync reaches
_PIPES: Mapping[str, tuple[str, float]] = {  # class of warp instruction -> (unit, cycles a sub-partition)
    "f32": ("FMA", 1.0), "half": ("FMA", 1.0), "f64": ("FP64", 2.0), "integer": ("integer", 1.5),
    "convert": ("integer", 2.0), "special": ("special-function", 8.0), "load": ("load/store", 4.0),
    "store": ("load/store", 4.0), "shared": ("load/store", 4.0), "local": ("load/store", 4.0),
    "warp": ("load/store", 4.0), "atomic": ("load/store", 8.0),
}  # fmt: skip
_FREE = ("move",)  # registers are renamed, not copied
_TENSOR_RATE: Mapping[str, tuple[DType, float]] = {  # operand type -> (whose dense rate, times that)
    "f16": (DType.F16, 1.0), "bf16": (DType.BF16, 1.0), "tf32": (DType.BF16, 0.5), "e4m3": (DType.I8, 1.0),
    "e5m2": (DType.I8, 1.0), "s8": (DType.I8, 1.0), "u8": (DType.I8, 1.0), "f64": (DType.F64, 1.0),
}  # fmt: skip

_OPERAND_BYTES = {"f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1, "s8": 1, "u8": 1}


def memory_us(moved: Traffic, gpu: GpuSpec) -> float:
    """Bytes to and from DRAM at the GPU's copy rate, or what crosses L2 at L2's, whichever is longer."""
    return (
        max(moved.dram_bytes, moved.l2_bytes / _L2_RATIO + moved.bulk_bytes / _BULK_L2_RATIO)
        / gpu.copy_bytes_per_s
        * 1e6
    )


def units_us(counters: Mapping[str, float], launch: Launch, shape: Occupancy, gpu: GpuSpec) -> dict[str, float]:
    """Time of each functional unit and of the issue slots, on the multiprocessor that gets the most blocks."""
    busy = _busy(math.prod(launch.grid), shape)
    cycles: dict[str, float] = {"issue": 0.0}
    for name, value in counters.items():
        klass = name.removeprefix("warp_instructions_")
        if klass == name or klass in _FREE:
            continue
        cycles["issue"] += value
        if klass in _PIPES:
            unit, cost = _PIPES[klass]
            cycles[unit] = cycles.get(unit, 0.0) + cost * value
    if shape.waves <= 1:  # blocks that stay, some with more to do than others
        busy /= counters.get("busiest_block", 1.0)
    slots = busy * gpu.clock_hz / 1e6  # cycles of all busy multiprocessors in a microsecond
    found = {unit: value / (4 * slots) for unit, value in cycles.items()}
    found["shared"] = (counters.get("shared_wavefronts", 0.0) + _operand_wavefronts(counters)) / slots
    lines = counters.get("global_load_lines", 0.0) + counters.get("global_store_lines", 0.0)
    found["L1"] = _LINE_CYCLES * lines / slots
    found["tensor"] = _tensor_us(counters, gpu) * gpu.sm_count / busy
    return found


def _operand_wavefronts(counters: Mapping[str, float]) -> float:
    """What wgmma itself reads of shared memory, 128 bytes a cycle: of A 64 rows of 32 bytes, of B as many as the
    product is wide. A narrow product waits for A."""
    wgmma = 1 - _share(counters.get("mma_sync_ops", 0.0), counters.get("tensor_ops", 0.0))
    products = wgmma * counters.get("tensor_instructions", 0.0) / 4  # each warp of a warpgroup counts one
    wide = sum(counters.get(f"tensor_ops_{kind}", 0.0) * size for kind, size in _OPERAND_BYTES.items()) * wgmma / 4096
    return (64 * products + wide) * 32 / 128


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _tensor_us(counters: Mapping[str, float], gpu: GpuSpec) -> float:
    """Operations over the dense rate of their operands; mma.sync is slower than wgmma on a GPU that has both."""
    total = counters.get("tensor_ops", 0.0)
    if not total:
        return 0.0
    seconds = 0.0
    for kind, (dtype, share) in _TENSOR_RATE.items():
        if dtype in gpu.flops:
            seconds += counters.get(f"tensor_ops_{kind}", 0.0) / (gpu.flops[dtype] * share)
    by_mma = counters.get("mma_sync_ops", 0.0) / total if gpu.arch.startswith("sm_90") else 0.0
    return seconds * (1 + by_mma * (1 / _MMA_SYNC_SHARE - 1)) * 1e6


def latency_us(
    counters: Mapping[str, float], launch: Launch, shape: Occupancy, moved: Traffic, unit_us: float, gpu: GpuSpec
) -> float:
    """Waves × what one block takes alone: its batches of loads one after another, the arrival of their bytes, its
    arithmetic, its waits. The fewer blocks share a multiprocessor, the less of this another block hides."""
    blocks = math.prod(launch.grid)
    warps = blocks * -(-math.prod(launch.block) // 32)
    alone = _BLOCK_START_US + _loads_us(counters, warps, moved) + _bulk_us(counters, launch, blocks, gpu)
    reads = moved.far * counters["global_load_bytes"] / blocks
    alone += _EXPOSED_LOADS * reads * gpu.sm_count / gpu.copy_bytes_per_s * 1e6
    alone += max(_dependent_us(counters, warps, gpu), _EXPOSED_WORK * _work_us(unit_us, blocks, warps, shape))
    waits = counters.get("barrier_waits", 0.0) + counters.get("mbarrier_waits", 0.0)
    alone += _BARRIER_CYCLES * waits / warps / gpu.clock_hz * 1e6
    alone += _CLUSTER_US * counters.get("cluster_waits", 0.0) / warps
    alone *= counters.get("busiest_block", 1.0)
    waves = math.ceil(shape.waves) if shape.blocks == 1 else max(shape.waves, 1.0)  # a block that is alone waits whole
    return waves * alone


def _loads_us(counters: Mapping[str, float], warps: int, moved: Traffic) -> float:
    """A thread's batches of loads, each as long as what serves it takes to answer."""
    batches = counters["global_load_bytes"] / (warps * 32) / max(counters["load_bytes_in_flight"], 1.0)
    l1 = 1 - moved.far - moved.near
    return batches * (moved.far * _LATENCY_US + moved.near * _L2_LATENCY_US + l1 * _L1_LATENCY_US)


def _bulk_us(counters: Mapping[str, float], launch: Launch, blocks: int, gpu: GpuSpec) -> float:
    """What a block waits for its stages, each as long as a bulk copy takes to answer and its bytes to arrive; all but
    one, which is worked on, are under way at a time."""
    arrives = counters.get("bulk_expected_bytes", 0.0) or counters.get("bulk_load_bytes", 0.0)
    stage = arrives / max(counters.get("bulk_phases", 0.0), 1.0)
    in_flight = max(launch.dynamic_smem_bytes - stage, stage, 1024.0)
    each = _BULK_LATENCY_US + stage / (_BULK_BYTES_A_CYCLE * gpu.clock_hz) * 1e6
    return arrives / blocks / in_flight * each


def _dependent_us(counters: Mapping[str, float], warps: int, gpu: GpuSpec) -> float:
    """A warp's instructions, each after the one before."""
    moves = counters.get("warp_instructions_move", 0.0)
    return _DEPENDENT_CYCLES * (counters["warp_instructions"] - moves) / warps / gpu.clock_hz * 1e6


def _work_us(unit_us: float, blocks: int, warps: int, shape: Occupancy) -> float:
    """What a block alone takes of the busiest unit, of which each of four sub-partitions has a part: fewer than four
    warps leave some idle."""
    return unit_us * _busy(blocks, shape) / blocks * max(4 * blocks / warps, 1.0)


def _busy(blocks: int, shape: Occupancy) -> float:
    """How many multiprocessors would take as long if each had as many blocks as the one with the most: 144 blocks on
    132 take as long as 264, two on each."""
    return blocks / math.ceil(blocks / shape.multiprocessors)


def starts_us(launch: Launch, gpu: GpuSpec) -> float:
    """Blocks are handed out one after another; those of a cluster need room at the same time."""
    cycles = _START_CYCLES * (1 + _CLUSTER_STARTS * math.log2(math.prod(launch.cluster)))
    return math.prod(launch.grid) * cycles / gpu.clock_hz * 1e6
