"""What candidates are compared by: numbers, each with its text."""

from __future__ import annotations

import math

from cutegen_lab.core.predicted import terms_to_show
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.core.stopwatch import INCUMBENT
from cutegen_lab.core.trial import Resources, Timing, Trial
from cutegen_lab.views.model import IntervalView, MetricView, TermView
from cutegen_lab.views.units import count, microseconds, relative, size

_COUNTED = (
    "warp_instructions", "tensor_instructions", "global_load_sectors", "global_store_sectors", "bulk_load_sectors",
    "bulk_store_sectors", "shared_wavefronts", "shared_conflicts", "barrier_waits", "dram_load_bytes",
    "dram_store_bytes",
)  # fmt: skip


def metrics(trial: Trial | None, resources: Resources | None, gpu: GpuSpec | None = None) -> list[MetricView]:
    """What is known of a candidate so far, in reading order: time (µs), errors (relative to float64), resources per
    block and per thread, bytes moved, occupancy of ``gpu``. Less is better, except for the resident warps."""
    rows = [*_time(trial.timing if trial else None), *_errors(trial)]
    resources = (trial.resources if trial else None) or resources
    if resources is not None:
        rows += [
            _metric("registers", "Registers per thread", resources.registers, str(resources.registers)),
            _metric("spills", "Register spills", resources.spill_bytes, f"{resources.spill_bytes:,} B"),
            _metric("shared_memory", "Shared memory per block", resources.smem_bytes, f"{resources.smem_bytes:,} B"),
        ]
    return [*rows, *_counted(trial, gpu)]


def counters(trial: Trial | None) -> list[MetricView]:
    """Counters of a profile that candidates are compared by, without those that are zero."""
    found = trial.profile.counters if trial and trial.profile else {}
    return [
        _metric(name, name.replace("_", " ").capitalize().replace("Dram", "DRAM"), found[name], count(found[name]))
        for name in _COUNTED
        if found.get(name)
    ]


def baselines(trial: Trial | None) -> dict[str, float]:
    """Microseconds of the other subjects timed in the candidate's rounds, by name; without the incumbent, which has a
    column of its own."""
    timing = trial.timing if trial else None
    return {name: time for name, time in timing.baselines.items() if name != INCUMBENT} if timing else {}


def baseline_intervals(trial: Trial | None) -> dict[str, IntervalView]:
    """95% intervals of the candidate's time divided by that of each baseline that it was compared with, by name."""
    timing = trial.timing if trial else None
    found = timing.comparisons if timing else ()
    return {each.against: IntervalView(low=each.low, high=each.high) for each in found
            if each.against != INCUMBENT and math.isfinite(each.high)}  # fmt: skip


def terms(trial: Trial | None) -> list[TermView]:
    """Terms of the predicted time."""
    found = terms_to_show(trial.profile) if trial and trial.profile else []
    return [TermView(name=name, us=us, part=part) for name, us, part in found]


def _time(timing: Timing | None) -> list[MetricView]:
    if timing is None:
        return []
    interval = f" ± {microseconds(timing.half_width_us)}" if timing.half_width_us else ""
    return [_metric("time", "Time", timing.time_us, microseconds(timing.time_us) + interval, timing.kind)]


def _errors(trial: Trial | None) -> list[MetricView]:
    worst = trial.check.worst() if trial and trial.check else None
    if worst is None:
        return []
    return [
        _metric("error", "Error vs fp64, norm", worst.norm, relative(worst.norm)),
        _metric("error_worst", "Error vs fp64, worst element", worst.worst, relative(worst.worst)),
    ]


def _counted(trial: Trial | None, gpu: GpuSpec | None) -> list[MetricView]:
    counters = trial.profile.counters if trial and trial.profile else {}
    rows = []
    if moved := counters.get("moved_bytes"):
        rows.append(_metric("moved_bytes", "Bytes moved, L2 to SMs", moved, size(moved)))
    if warps := counters.get("resident_warps_per_sm"):
        most = gpu.max_threads_per_sm // 32 if gpu else 0
        share = f" of {most} ({warps / most:.0%})" if most else ""
        rows.append(_metric("resident_warps", "Occupancy, warps per SM", warps, f"{warps:.0f}{share}", better="more"))
    return rows


def _metric(key: str, label: str, value: float, text: str, basis: str = "", better: str = "less") -> MetricView:
    return MetricView.model_validate(
        {"key": key, "label": label, "value": value, "text": text, "basis": basis, "better": better}
    )
