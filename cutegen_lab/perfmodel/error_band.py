"""Error band of predicted times, from measurements on an H200."""

from __future__ import annotations

from collections.abc import Mapping

from cutegen_lab.core.roofline import GpuSpec

MEASURED_ON = "H200"
EVERY = ""
# Kind of limiter -> (low, high) ratio of measured to predicted time, which contain at least 90% of the configs of
# benchmarks/perfmodel/prediction_errors.py. Kinds with fewer than ten configs have the band of all.
BANDS: Mapping[str, tuple[float, float]] = {
    "at the floor": (0.89, 1.12), "memory bandwidth": (0.82, 1.33), "memory latency": (0.81, 1.18),
    "shared memory": (0.85, 1.19), "instruction issue of few warps": (0.83, 1.23), EVERY: (0.84, 1.20),
}  # fmt: skip


def kind_of(limiter: str) -> str:
    """The kind in :data:`BANDS` of a predicted limiter."""
    return next((kind for kind in BANDS if kind and limiter.startswith(kind)), EVERY)


def error_band(time_us: float, limiter: str, gpu: GpuSpec) -> tuple[float, float] | None:
    """(low, high) in µs around the prediction ``time_us``: 90% of measured times lie in this range, for predictions
    with this ``limiter``. None for a GPU without measurements."""
    if gpu.name != MEASURED_ON:
        return None
    low, high = BANDS[kind_of(limiter)]
    return low * time_us, high * time_us
