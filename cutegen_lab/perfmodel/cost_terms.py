"""Terms of the time model: each is a lower bound on a launch's time by one resource, in microseconds."""

from __future__ import annotations

import math
from collections.abc import Mapping

from cutegen_lab.core.artifact import Launch
from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.perfmodel.occupancy import Occupancy
from cutegen_lab.perfmodel.traffic import Traffic, copied_share, share

# Launch overhead that overlaps the end of the launch before: sums of 4 and 16 MB in two kernels took 3.8 µs instead of
# 4.2 and 6.65 instead of 7.65 on an H200 (2026-11-22).
OVERLAPPED_US = 0.7
_LAST_BLOCKS = 0.11  # fraction of a wave's time in which some of its blocks have ended
# L2 bandwidth of each multiprocessor in bytes per cycle while all are active, for loads and for bulk copies (few, large
# requests): 6.2 and 14.5 TB/s on an H200, independent of DRAM. An H100's L2 is no slower.
_L2_A_CYCLE = 23.76
_BULK_L2_A_CYCLE = 55.44
LOADED_A_CYCLE = 32.0  # bytes per cycle that a multiprocessor loads from L2
# The path is 64 bytes wide, all of which bulk copies use: with this value, rings of two stages of 24, 32 and 48 KiB on
# an H200 (p7 of benchmarks/foreign_kernels) fit one latency.
COPIED_A_CYCLE = 64.0
# L1 cycles (a wavefront takes one; benchmarks/results/strided_accesses_on_gpu.json) for a missed line, in parallel to
# wavefronts; for a line of cp.async that bypasses L1, in addition to its wavefronts; for a line that a store touches.
# Fitted to the order of kernels' configs (benchmarks/results/foreign_seen_on_gpu.json).
_FILL_CYCLES = 3.0
_PAST_CYCLES = 0.6
_STORE_CYCLES = 1.75
# Shared-memory cycles of a warp's cp.async that bypasses L1: 512 bytes at 128 per cycle. NVIDIA's counter shows up to
# 19 wavefronts for one, but ncu reports L1 at 47% and 56% of its peak for kernels in which such wavefronts alone would
# take the whole time (p6 of benchmarks/foreign_kernels). Copies through L1 cost a cycle for each wavefront, which
# matches ncu's figure for n3.
_PAST_L1_CYCLES = 4.0
_START_CYCLES = 1.2  # cycles between the starts of two blocks anywhere on the GPU
_CLUSTER_STARTS = 0.9  # increase, as a fraction, for each doubling of the cluster, which is scheduled as a whole
_MMA_SYNC_SHARE = 0.62  # fraction of a Hopper tensor core's rate that mma.sync reaches
_PIPES: Mapping[str, tuple[str, float]] = {  # class of warp instruction -> (unit, cycles in a sub-partition)
    "f32": ("FMA", 1.0), "half": ("FMA", 1.0), "f64": ("FP64", 2.0), "integer": ("integer", 1.5),
    "convert": ("integer", 2.0), "special": ("special-function", 8.0), "load": ("load/store", 4.0),
    "store": ("load/store", 4.0), "shared": ("load/store", 4.0), "local": ("load/store", 4.0),
    "warp": ("load/store", 4.0), "atomic": ("load/store", 8.0),
}  # fmt: skip
_OTHER_CYCLES = 1.0  # cycles of an instruction of any other class, branches included
# One data path serves shared memory, loads, lines of stores and shuffles, one wavefront per cycle. Divided by the
# measured time, their sum is 0 to 11 points (median 3) below ncu's percentage of L1 for kernels without cp.async (39 to
# 88% in 11 configs of q1, q2, q5 and q7 in benchmarks/results/foreign_blind_on_gpu.json).
PATH = "L1 data path"
_APART = ("tensor", "shared", "L1", PATH)  # units that work at the same time as instructions are issued
_FREE = ("move",)  # classes without cost: registers are renamed, not copied
_TENSOR_RATE: Mapping[str, tuple[DType, float]] = {  # operand type -> (type with a known dense rate, factor)
    "f16": (DType.F16, 1.0), "bf16": (DType.BF16, 1.0), "tf32": (DType.BF16, 0.5), "e4m3": (DType.I8, 1.0),
    "e5m2": (DType.I8, 1.0), "s8": (DType.I8, 1.0), "u8": (DType.I8, 1.0), "f64": (DType.F64, 1.0),
}  # fmt: skip

_OPERAND_BYTES = {"f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1, "s8": 1, "u8": 1}


def memory_us(moved: Traffic, gpu: GpuSpec) -> float:
    """Time of all DRAM bytes at the GPU's copy rate."""
    return moved.dram_bytes / gpu.copy_bytes_per_s * 1e6


def last_wave(shape: Occupancy) -> float:
    """Factor on memory time: the blocks of the last (or only) wave do not all end at the same time."""
    return 1 + _LAST_BLOCKS / max(shape.waves, 1.0)


def dram_us(moved: Traffic, gpu: GpuSpec) -> float:
    """Time, at the datasheet's rate, of the bytes that cross DRAM before the launch ends; divided by the launch's time
    it is what a profiler reports as the fraction of peak."""
    return (moved.dram_bytes - moved.left_bytes) / gpu.dram_bytes_per_s * 1e6


def l2_us(counters: Mapping[str, float], launch: Launch, shape: Occupancy, moved: Traffic, gpu: GpuSpec) -> float:
    """The longer of two times: all L2 bytes at L2's bandwidth; loads and cp.async at the rate of one multiprocessor, on
    the one with the most blocks."""
    copied, loaded = copied_share(counters), (moved.far + moved.near) * counters["global_load_bytes"]
    cycles = loaded * ((1 - copied) / LOADED_A_CYCLE + copied / COPIED_A_CYCLE)
    taken = cycles / (shape.busy(math.prod(launch.grid)) * gpu.clock_hz) * 1e6
    return max(taken, (moved.l2_bytes / l2_bytes_per_s(gpu) + moved.bulk_bytes / l2_bytes_per_s(gpu, True)) * 1e6)


def spills_us(moved: Traffic, gpu: GpuSpec) -> float:
    """Part of :func:`l2_us` caused by spilled registers."""
    return moved.spilled_bytes / l2_bytes_per_s(gpu) * 1e6


def l2_bytes_per_s(gpu: GpuSpec, bulk: bool = False) -> float:
    """L2's bandwidth for loads, stores and cp.async, or for ``bulk`` copies."""
    return (_BULK_L2_A_CYCLE if bulk else _L2_A_CYCLE) * gpu.sm_count * gpu.clock_hz


def units_us(
    counters: Mapping[str, float], launch: Launch, shape: Occupancy, moved: Traffic, gpu: GpuSpec
) -> dict[str, float]:
    """Time of each functional unit and of the issue slots, on the multiprocessor with the most blocks."""
    running = shape.busy(math.prod(launch.grid))
    cycles: dict[str, float] = {"issue": 0.0}
    for klass, value in by_class(counters).items():
        cycles["issue"] += value
        if klass in _PIPES:
            unit, cost = _PIPES[klass]
            cycles[unit] = cycles.get(unit, 0.0) + cost * value
    if shape.waves <= 1:  # persistent blocks, some with more work than others
        running /= counters.get("busiest_block", 1.0)
    slots = running * gpu.clock_hz / 1e6  # cycles of all busy multiprocessors per microsecond
    found = {unit: value / (4 * slots) for unit, value in cycles.items()}
    found["shared"] = (_wavefronts(counters) + _operand_wavefronts(counters)) / slots
    loads, stores = counters.get("global_load_lines", 0.0), counters.get("global_store_lines", 0.0)
    waves = counters.get("global_load_wavefronts", loads)
    past = share(counters.get("shared_copies_past_l1", 0.0), counters["global_load_requests"])
    other_wavefronts = (1 - copied_share(counters)) * waves + stores + counters.get("warp_instructions_warp", 0.0)
    found[PATH] = found["shared"] + other_wavefronts / slots
    served = max(waves + _PAST_CYCLES * past * loads, _FILL_CYCLES * _fills(counters, moved))
    found["L1"] = (served + _STORE_CYCLES * stores) / slots
    found["tensor"] = _tensor_us(counters, gpu) * gpu.sm_count / running
    return found


def beside_each_other(units: Mapping[str, float], norm: float) -> tuple[float, ...]:
    """Times of concurrent units, slightly longer if several are busy. Issue slots and arithmetic units
    count as one, since they handle the same instructions; so do shared memory and L1, which share a data path. ``norm``
    is the exponent of the norm that combines them."""
    l1 = max(units[PATH], (units["shared"] ** norm + units["L1"] ** norm) ** (1 / norm))
    return units["tensor"], l1, max(us for name, us in units.items() if name not in _APART)


def pipe_cycles(counters: Mapping[str, float]) -> float:
    """Cycles of a sub-partition's units if all warp instructions execute one after another."""
    classes = by_class(counters)
    return sum(_PIPES.get(klass, ("", _OTHER_CYCLES))[1] * count for klass, count in classes.items())


def by_class(counters: Mapping[str, float]) -> dict[str, float]:
    """Warp instructions by class, without free ones."""
    start = "warp_instructions_"
    named = {name.removeprefix(start): count for name, count in counters.items() if name.startswith(start)}
    return {klass: count for klass, count in named.items() if klass not in _FREE}


def _wavefronts(counters: Mapping[str, float]) -> float:
    """Cycles of shared memory for loads, stores and cp.async."""
    past = counters.get("shared_copies_past_l1", 0.0)
    direct = share(past, counters.get("shared_copy_requests", 0.0))
    counted = counters.get("shared_wavefronts", 0.0) - direct * counters.get("shared_copy_wavefronts", 0.0)
    return counted + _PAST_L1_CYCLES * past


def _operand_wavefronts(counters: Mapping[str, float]) -> float:
    """Cycles in which wgmma reads its operands from shared memory, 128 bytes per cycle: 64 rows of 32 bytes of A, and N
    rows of B. A narrow product is limited by A."""
    wgmma = 1 - share(counters.get("mma_sync_ops", 0.0), counters.get("tensor_ops", 0.0))
    products = wgmma * counters.get("tensor_instructions", 0.0) / 4  # each wgmma is counted four times, once per warp
    wide = sum(counters.get(f"tensor_ops_{kind}", 0.0) * size for kind, size in _OPERAND_BYTES.items()) * wgmma / 4096
    return (64 * products + wide) * 32 / 128


def _fills(counters: Mapping[str, float], moved: Traffic) -> float:
    """Lines that L1 fetches for loads, without cp.async."""
    asked = counters.get("global_load_new_lines", counters.get("global_load_lines", 0.0))
    return min(moved.far + moved.near, 1.0) * (1 - copied_share(counters)) * asked


def _tensor_us(counters: Mapping[str, float], gpu: GpuSpec) -> float:
    """Operations over the dense rate of their operands; mma.sync is slower than wgmma on a GPU with both."""
    total = counters.get("tensor_ops", 0.0)
    if not total:
        return 0.0
    seconds = 0.0
    for kind, (dtype, rate) in _TENSOR_RATE.items():
        if dtype in gpu.flops:
            seconds += counters.get(f"tensor_ops_{kind}", 0.0) / (gpu.flops[dtype] * rate)
    by_mma = counters.get("mma_sync_ops", 0.0) / total if gpu.arch.startswith("sm_90") else 0.0
    return seconds * (1 + by_mma * (1 / _MMA_SYNC_SHARE - 1)) * 1e6


def starts_us(launch: Launch, gpu: GpuSpec) -> float:
    """Time to start all blocks, one after another; blocks of a cluster need room at the same time."""
    cycles = _START_CYCLES * (1 + _CLUSTER_STARTS * math.log2(math.prod(launch.cluster)))
    return math.prod(launch.grid) * cycles / gpu.clock_hz * 1e6
