"""Predicted time of a launch from what it was counted to do.

    time = overhead + max((memory³ + unit³ + latency³)^⅓, starts)

The terms, in microseconds, are those of :mod:`cutegen_lab.tuning.terms`: *memory* is bytes over bandwidth, *unit* the
busiest functional unit (tensor cores, shared memory, L1, issue slots, …), *latency* what one block after another must
wait for, *starts* how fast blocks can be handed out, which goes on beside all else. The third power lets the longest
term win and near ties cost a little more than either. What L1 and L2 serve is :mod:`cutegen_lab.tuning.traffic`'s.
Constants were chosen on one set of kernels and tried on another: ``benchmarks/results/predicted_times_on_gpu.json``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cutegen_lab.core.artifact import KernelInfo, Launch
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.tuning import terms
from cutegen_lab.tuning.findings import findings
from cutegen_lab.tuning.occupancy import Occupancy, occupancy
from cutegen_lab.tuning.traffic import traffic

MODEL = "roofline of memory, units, latency and block starts, v4"
_NORM = 3.0
_LIMITERS = {
    "memory": "memory bandwidth", "latency": "memory latency: too few loads in flight", "overhead": "launch overhead",
    "issue": "instruction issue", "tensor": "tensor cores", "shared": "shared memory",
    "L1": "L1: accesses touch many cache lines", "starts": "block starts: "
    "too many small blocks for the launch hardware",
}  # fmt: skip


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
    """``counters`` are the whole launch's, by the names of :data:`~cutegen_lab.core.counters.COUNTERS`."""
    shape = occupancy(launch, kernel, gpu)
    units = terms.units_us(counters, launch, shape, gpu)
    unit = max(units, key=lambda name: units[name])
    moved = traffic(counters, launch, kernel, shape, gpu)
    parts = {
        "memory": terms.memory_us(moved, gpu), unit: units[unit],
        "latency": terms.latency_us(counters, launch, shape, moved, units[unit], gpu),
        "starts": terms.starts_us(launch, gpu),
    }  # fmt: skip
    together = sum(value**_NORM for name, value in parts.items() if name != "starts") ** (1 / _NORM)
    time_us = terms.OVERHEAD_US + max(together, parts["starts"])
    parts["overhead"] = terms.OVERHEAD_US
    longest = max(parts, key=lambda name: parts[name])
    limiter = _named(longest, counters, shape)
    found = findings(counters, launch, kernel, shape, gpu, moved, limiter, terms.BUSY_LATENCY_US)
    return Prediction(time_us, limiter, parts, found, shape)


def _named(longest: str, counters: Mapping[str, float], shape: Occupancy) -> str:
    if longest == "latency":
        if shape.tail > 0.3:
            return "tail: the last wave of blocks is nearly empty"
        if counters["global_load_bytes"] + counters.get("bulk_load_bytes", 0.0) == 0:
            return "instruction latency: too few warps"
    if longest == "shared" and 2 * counters.get("shared_conflicts", 0.0) > counters.get("shared_wavefronts", 0.0):
        return "shared memory: bank conflicts"
    return _LIMITERS.get(longest, f"{longest} units")


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
