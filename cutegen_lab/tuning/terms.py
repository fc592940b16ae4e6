"""The terms of the time model, each a lower bound on a launch's time in microseconds by one resource."""

from __future__ import annotations

import math
from collections.abc import Mapping

from cutegen_lab.core.artifact import Launch
from cutegen_lab.core.counters import moved_bytes
from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.tuning.occupancy import Occupancy

OVERHEAD_US = 4.0  # launch, ramp-up and drain of one kernel
LATENCY_US = 0.75  # of a DRAM access on a busy GPU
_L2_LATENCY_US = 0.3  # of an access that hits L2
L2_RATIO = 1.6  # L2 bandwidth over the copy rate
_DEPENDENT_CYCLES = 4.0  # between a warp's instructions on average: 4 to 6 cycles' latency, some overlap
_BARRIER_CYCLES = 40.0
_CLUSTER_US = 1.0  # that a block waits for the others of its cluster
_BLOCK_START_US = 0.3
_START_CYCLES = 1.2  # of the whole GPU, between two blocks handed out; clusters take longer to place
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


def memory_us(counters: Mapping[str, float], gpu: GpuSpec) -> float:
    """Bytes to and from DRAM at the GPU's copy rate, or what crosses L2 at L2's, whichever is longer.

    L1 serves the rest of a sector that neighbouring accesses of a thread share, so loads cross L2 at most as often as
    lanes ask for them.
    """
    loads, once = 32 * counters["global_load_sectors"], counters["dram_load_bytes"]
    spared = max(loads - max(counters["global_load_bytes"], once), 0.0)
    dram = once + counters["dram_store_bytes"]
    return max(dram, (moved_bytes(counters) - spared) / L2_RATIO) / gpu.copy_bytes_per_s * 1e6


def units_us(counters: Mapping[str, float], launch: Launch, gpu: GpuSpec) -> dict[str, float]:
    """Time of each functional unit and of the issue slots, with only as many multiprocessors busy as blocks allow."""
    busy = min(math.prod(launch.grid), gpu.sm_count)
    cycles: dict[str, float] = {"issue": 0.0}
    for name, value in counters.items():
        klass = name.removeprefix("warp_instructions_")
        if klass == name or klass in _FREE:
            continue
        cycles["issue"] += value
        if klass in _PIPES:
            unit, cost = _PIPES[klass]
            cycles[unit] = cycles.get(unit, 0.0) + cost * value
    slots = busy * gpu.clock_hz / 1e6  # cycles of all busy multiprocessors in a microsecond
    found = {unit: value / (4 * slots) for unit, value in cycles.items()}
    found["shared"] = counters.get("shared_wavefronts", 0.0) / slots
    found["tensor"] = _tensor_us(counters, gpu) * gpu.sm_count / busy
    return found


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


def latency_us(counters: Mapping[str, float], launch: Launch, shape: Occupancy, gpu: GpuSpec) -> float:
    """Waves × what one block takes alone: its batches of loads one after another, its instructions, its waits."""
    blocks = math.prod(launch.grid)
    warps = blocks * -(-math.prod(launch.block) // 32)
    moves = counters.get("warp_instructions_move", 0.0)
    cycles = _DEPENDENT_CYCLES * (counters["warp_instructions"] - moves) / warps
    cycles += _BARRIER_CYCLES * (counters.get("barrier_waits", 0.0) + counters.get("mbarrier_waits", 0.0)) / warps
    alone = _loads_us(counters, warps) + _bulk_us(counters, launch, blocks) + cycles / gpu.clock_hz * 1e6
    alone += _CLUSTER_US * counters.get("cluster_waits", 0.0) / warps
    return max(shape.waves, 1.0) * (alone + _BLOCK_START_US)


def _loads_us(counters: Mapping[str, float], warps: int) -> float:
    """A thread's batches of loads, the first time from DRAM, every further time from L2."""
    asked, once = counters["global_load_bytes"], counters["dram_load_bytes"]
    first = min(once / asked, 1.0) if asked else 1.0
    batches = asked / (warps * 32) / max(counters["load_bytes_in_flight"], 1.0)
    return batches * (first * LATENCY_US + (1 - first) * _L2_LATENCY_US)


def _bulk_us(counters: Mapping[str, float], launch: Launch, blocks: int) -> float:
    """Bulk copies, of which a block has as much in flight as it has shared memory."""
    room = max(launch.dynamic_smem_bytes, 1024)
    return counters.get("bulk_load_bytes", 0.0) / blocks / room * LATENCY_US


def starts_us(launch: Launch, gpu: GpuSpec) -> float:
    """Blocks are handed out one after another; those of a cluster need room at the same time."""
    cluster = math.prod(launch.cluster)
    return math.prod(launch.grid) * _START_CYCLES * (1 + math.log2(cluster)) / gpu.clock_hz * 1e6
