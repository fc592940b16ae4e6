"""Predicted time of a launch from what it was counted to do.

    time = overhead + (memory⁴ + pipes⁴ + latency⁴)^¼

*memory*: bytes to and from DRAM at the GPU's copy rate, or all moved sectors at the L2's, whichever is longer. *pipes*:
warp instructions over the sub-partitions' issue slots and functional units. *latency*: waves × the time one block needs
on its own, which is Little's law: a wave has ``resident warps × 32 × bytes in flight a thread`` outstanding and a load
takes ``LATENCY_US``. The fourth power lets the longest term win and near ties cost a little more than either.

**Calibrated on** one H200 (2026-11-20, cold L2): copies of 4 MB to 1 GB (4.9 to 259 µs), softmax and RMSNorm bf16
32768×8192 (265 and 268 µs) and seven hand-written kernels of 14 to 54 µs, elementwise, row and column reductions.
Copies and good streaming kernels took 4 to 6 µs beyond their bytes at the copy rate: OVERHEAD_US. LATENCY_US and the
unit rates are the vendor's published figures and common microbenchmark values, not fitted; L2_RATIO is an assumption.
**Not covered:** tensor cores, shared-memory bank conflicts, atomics' contention, instruction-cache misses, other
GPUs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cutegen_lab.core.artifact import KernelInfo, Launch
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.tuning.findings import findings
from cutegen_lab.tuning.occupancy import Occupancy, occupancy

MODEL = "roofline with latency and issue terms, v1"
OVERHEAD_US = 4.0  # launch, ramp-up and drain of one kernel
LATENCY_US = 0.75  # of a DRAM access on a busy GPU
L2_RATIO = 1.6  # L2 bandwidth over the copy rate
_DEPENDENT_CYCLES = 4.0  # between a warp's instructions on average: 4 to 6 cycles' latency, some overlap
_BARRIER_CYCLES = 40.0
_BLOCK_START_US = 0.3
_PIPES: Mapping[str, tuple[str, float]] = {  # class of warp instruction -> (unit, cycles a sub-partition)
    "f32": ("FMA", 1.0), "half": ("FMA", 1.0), "f64": ("FP64", 2.0), "integer": ("integer", 1.5),
    "convert": ("integer", 2.0), "special": ("special-function", 8.0), "load": ("load/store", 4.0),
    "store": ("load/store", 4.0), "shared": ("load/store", 4.0), "local": ("load/store", 4.0),
    "warp": ("load/store", 4.0), "atomic": ("load/store", 8.0),
}  # fmt: skip
_FREE = ("move",)  # registers are renamed, not copied


@dataclass(frozen=True)
class Prediction:
    """``parts`` in microseconds by name. ``limiter`` names the longest part in words."""

    time_us: float
    limiter: str
    parts: Mapping[str, float]
    findings: tuple[str, ...]
    occupancy: Occupancy | None = None


def predict_launch(
    counters: Mapping[str, float], launch: Launch, kernel: KernelInfo | None, gpu: GpuSpec
) -> Prediction:
    """``counters`` are the whole launch's, by the emulator's names (bytes, sectors of 32 bytes, warp instructions)."""
    shape = occupancy(launch, kernel, gpu)
    dram = counters["dram_load_bytes"] + counters["dram_store_bytes"]
    moved = 32 * (counters["global_load_sectors"] + counters["global_store_sectors"])
    memory = max(dram / gpu.copy_bytes_per_s, moved / (gpu.copy_bytes_per_s * L2_RATIO)) * 1e6
    pipes = _pipes_us(counters, launch, gpu)
    unit = max(pipes, key=lambda name: pipes[name])
    latency = _latency_us(counters, launch, shape, gpu)
    parts = {"memory": memory, unit: pipes[unit], "latency": latency, "overhead": OVERHEAD_US}
    time_us = OVERHEAD_US + (memory**4 + pipes[unit] ** 4 + latency**4) ** 0.25
    longest = max(parts, key=lambda name: parts[name])
    limiter = {
        "memory": "memory bandwidth", "latency": "memory latency: too few loads in flight",
        "overhead": "launch overhead", "issue": "instruction issue",
    }.get(longest, f"{longest} units")  # fmt: skip
    if longest == "latency" and _tail(shape) > 0.3:
        limiter = "tail: the last wave of blocks is nearly empty"
    if longest == "latency" and counters["global_load_bytes"] == 0:
        limiter = "instruction latency: too few warps"
    found = findings(counters, launch, kernel, shape, gpu, limiter, LATENCY_US)
    return Prediction(time_us, limiter, parts, found, shape)


def predict_plan(
    per_launch: Sequence[Mapping[str, float]],
    launches: Sequence[Launch],
    kernels: Mapping[str, KernelInfo],
    gpu: GpuSpec,
) -> Prediction:
    """Launches run one after another; the limiter is the longest launch's."""
    each = [
        predict_launch(c, launch, kernels.get(launch.kernel), gpu)
        for c, launch in zip(per_launch, launches, strict=True)
    ]
    if len(each) == 1:
        return each[0]
    longest = max(each, key=lambda p: p.time_us)
    parts: dict[str, float] = {}
    for prediction in each:
        for name, value in prediction.parts.items():
            parts[name] = parts.get(name, 0.0) + value
    total = sum(p.time_us for p in each)
    share = f"{len(each)} launches; the longest takes {longest.time_us:.0f} of {total:.0f} µs"
    return Prediction(total, longest.limiter, parts, (share, *longest.findings), longest.occupancy)


def _pipes_us(counters: Mapping[str, float], launch: Launch, gpu: GpuSpec) -> dict[str, float]:
    """Time of each functional unit and of the issue slots, with only as many multiprocessors busy as blocks allow."""
    busy = min(math.prod(launch.grid), gpu.sm_count)
    slots = busy * 4 * gpu.clock_hz / 1e6  # cycles of all sub-partitions in a microsecond
    cycles: dict[str, float] = {"issue": 0.0}
    for name, value in counters.items():
        klass = name.removeprefix("warp_instructions_")
        if klass == name or klass in _FREE:
            continue
        cycles["issue"] += value
        if klass in _PIPES:
            unit, cost = _PIPES[klass]
            cycles[unit] = cycles.get(unit, 0.0) + cost * value
    return {unit: value / slots for unit, value in cycles.items()}


def _latency_us(counters: Mapping[str, float], launch: Launch, shape: Occupancy, gpu: GpuSpec) -> float:
    """Waves × what one block takes alone: its batches of loads one after another, then its instructions."""
    blocks = math.prod(launch.grid)
    warps = blocks * -(-math.prod(launch.block) // 32)
    a_thread = counters["global_load_bytes"] / (warps * 32)
    batches = a_thread / max(counters["load_bytes_in_flight"], 1.0)
    moves = counters.get("warp_instructions_move", 0.0)
    instructions = (counters["warp_instructions"] - moves) / warps
    barriers = counters.get("warp_instructions_barrier", 0.0) / warps
    cycles = instructions * _DEPENDENT_CYCLES + barriers * _BARRIER_CYCLES
    alone = batches * LATENCY_US + cycles / gpu.clock_hz * 1e6 + _BLOCK_START_US
    return max(shape.waves, 1.0) * alone


def _tail(shape: Occupancy) -> float:
    """Part of the run in which the last wave leaves multiprocessors idle."""
    whole = math.ceil(shape.waves)
    return (whole - shape.waves) / whole if shape.waves > 1 else 0.0
