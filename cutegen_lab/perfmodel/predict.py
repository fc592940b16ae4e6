"""Predicted time of a launch from its counters.

    time = launch + max((memory³ + units³ + waits³)^⅓, block starts)

The terms, in microseconds, are those of :mod:`cutegen_lab.perfmodel.cost_terms` and :mod:`cutegen_lab.perfmodel.waits`:
*memory* is bytes over bandwidth, DRAM's or L2's; *units* is the time of units that work concurrently (tensor cores,
shared memory, L1, and the busiest of issue slots and arithmetic units); *waits* is the sum of latencies of consecutive
blocks, without those that other warps hide; *block starts* is the time to start all blocks, which overlaps everything
else. With the third power the longest term dominates, and near ties cost a little more than either.
:mod:`cutegen_lab.perfmodel.traffic` says what L1 and L2 serve. Constants were fitted on one set of kernels and tested
on another: ``benchmarks/results/predicted_times_on_gpu.json``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from cutegen_lab.core.artifact import PROGRAMMATIC, KernelInfo, Launch
from cutegen_lab.core.predicted import COPY, L2, LAUNCH, LAUNCH_US, MEMORY, SPILLS, STARTS, WAITS
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.perfmodel import cost_terms
from cutegen_lab.perfmodel.findings import ByLine, findings
from cutegen_lab.perfmodel.limiter import at_the_floor, limiter, runner_up
from cutegen_lab.perfmodel.occupancy import Occupancy, occupancy
from cutegen_lab.perfmodel.stalls import stalls_us
from cutegen_lab.perfmodel.traffic import traffic
from cutegen_lab.perfmodel.waits import hidden_us, waits_us

MODEL = "roofline of memory, units, waits and block starts, v11"
# Exponent of the norm that adds the times of the resources: the higher, the better they overlap.
_NORM = 3.0
# The same for a kernel of mma.sync with one block per multiprocessor: no other block hides its waits.
_LONE_NORM = 1.8


@dataclass(frozen=True)
class Prediction:
    """Predicted time of a launch or plan."""

    time_us: float
    """Microseconds."""
    limiter: str
    """The longest part, in words."""
    parts: Mapping[str, float]
    """Microseconds by term."""
    findings: tuple[str, ...]
    """Sentences that say what to change."""
    occupancy: Occupancy
    """Residency of the launch; of the longest one if there are several."""
    dram_share: float
    """Mean DRAM bandwidth over the whole time, as a fraction of the peak."""
    stalls_us: Mapping[int, float] = field(default_factory=dict)
    """Microseconds of the part *waits* by line of the candidate's text; line 0 for waits that belong to none."""


def predict_launch(
    counters: Mapping[str, float], launch: Launch, kernel: KernelInfo | None, gpu: GpuSpec, lines: ByLine | None = None
) -> Prediction:
    """Prediction of a launch. ``counters``: those of the whole launch, by the names of
    :data:`~cutegen_lab.core.counters.COUNTERS`; ``lines``: those of each line of the candidate's text, if known."""
    shape = occupancy(launch, kernel, gpu)
    moved = traffic(counters, launch, kernel, shape, gpu)
    units = cost_terms.units_us(counters, launch, shape, moved, gpu)
    unit = max(units, key=lambda name: units[name])
    waited = waits_us(counters, launch, shape, moved, units[unit], gpu)
    memory = {MEMORY: cost_terms.memory_us(moved, gpu), L2: cost_terms.l2_us(counters, launch, shape, moved, gpu)}
    concurrent = {unit: units[unit], WAITS: sum(waited.values())}
    starts = {STARTS: cost_terms.starts_us(launch, gpu), LAUNCH: LAUNCH_US}
    exposed_us = concurrent[WAITS] - hidden_us(waited)
    moving_us = max(memory[MEMORY] * cost_terms.last_wave(shape), memory[L2])
    norm = _LONE_NORM if shape.resident(math.prod(launch.grid)) == 1 and _in_step(counters) else _NORM
    parts_us = (moving_us, *cost_terms.beside_each_other(units, norm))
    working_us = sum(value**norm for value in parts_us) ** (1 / norm)
    time_us = starts[LAUNCH] + max((working_us**_NORM + exposed_us**_NORM) ** (1 / _NORM), starts[STARTS])
    terms_us = {**memory, **concurrent, **starts}
    dram_share = cost_terms.dram_us(moved, gpu) / time_us
    spills = {SPILLS: cost_terms.spills_us(moved, gpu)}
    named = limiter({**terms_us, **spills}, waited, unit, counters, shape, dram_share)
    second = runner_up(terms_us, waited, unit, counters)
    lines = lines or {0: counters}
    found = findings(counters, launch, kernel, shape, gpu, moved, named, lines)
    parts = {**memory, **spills, **concurrent, **units, **waited, **starts}
    stalls = stalls_us(waited, lines, counters, launch, shape, moved, gpu)
    return Prediction(time_us, named, parts, (*found, second) if second else found, shape, dram_share, stalls)


def _in_step(counters: Mapping[str, float]) -> bool:
    """True if barriers synchronise the warps of a block around mma.sync: tensor cores idle while the block copies,
    reads operands and stores. wgmma overlaps with these."""
    barriers = counters.get("barrier_waits", 0.0) > counters.get("mbarrier_waits", 0.0)
    return barriers and counters.get("mma_sync_ops", 0.0) > 0


def predict_plan(
    per_launch: Sequence[Mapping[str, float]],
    launches: Sequence[Launch],
    kernels: Mapping[str, KernelInfo],
    gpu: GpuSpec,
    compulsory_bytes: float = 0.0,
    lines: Sequence[ByLine] | None = None,
) -> Prediction:
    """Prediction of a plan: launches run one after another, with a small overlap; the limiter is the longest launch's.
    There are no findings if the launches take no longer than a copy of ``compulsory_bytes`` and one launch's overhead.
    ``lines``: for each launch, counters by line."""
    each = [
        predict_launch(c, launch, kernels.get(launch.kernel), gpu, of_lines)
        for c, launch, of_lines in zip(per_launch, launches, lines or [{}] * len(launches), strict=True)
    ]
    each[1:] = [_overlapping(p) if _programmatic(x) else p for p, x in zip(each[1:], launches[1:], strict=True)]
    longest = max(each, key=lambda p: p.time_us)
    parts, stalls = dict[str, float](), dict[int, float]()
    for prediction in each:
        for name, value in prediction.parts.items():
            parts[name] = parts.get(name, 0.0) + value
        for line, value in prediction.stalls_us.items():
            stalls[line] = stalls.get(line, 0.0) + value
    total = sum(p.time_us for p in each)
    parts[COPY] = compulsory_bytes / gpu.copy_bytes_per_s * 1e6
    dram_share = sum(p.dram_share * p.time_us for p in each) / total
    floor_us = parts[COPY] * cost_terms.last_wave(longest.occupancy) + LAUNCH_US
    if floor := at_the_floor(total, max(parts[MEMORY], parts[L2]), parts[COPY], floor_us, dram_share):
        return Prediction(total, floor, parts, (), longest.occupancy, dram_share, stalls)
    share = f"{len(each)} launches; the longest takes {longest.time_us:.0f} of {total:.0f} µs"
    found = (share, *longest.findings) if len(each) > 1 else longest.findings
    return Prediction(total, longest.limiter, parts, found, longest.occupancy, dram_share, stalls)


def _programmatic(launch: Launch) -> bool:
    return any(launch.attributes.get(PROGRAMMATIC, b""))


def _overlapping(prediction: Prediction) -> Prediction:
    """Prediction of a launch that starts while the one before it ends (programmatic dependent launch)."""
    parts = {**prediction.parts, LAUNCH: prediction.parts[LAUNCH] - cost_terms.OVERLAPPED_US}
    return replace(prediction, time_us=prediction.time_us - cost_terms.OVERLAPPED_US, parts=parts)
