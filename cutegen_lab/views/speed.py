"""A timing as rows of the evidence card: time, uncertainty, comparisons, conditions."""

from __future__ import annotations

import math

from cutegen_lab.core.roofline import SpeedOfLight
from cutegen_lab.core.trial import Comparison, Timing
from cutegen_lab.views.model import EvidenceRow, Tone
from cutegen_lab.views.units import microseconds, significant

_POSSIBLE = 0.97  # fraction of the bound below which a measured time is no noise
_UNDER = "under the bound: not all that it counts may be needed, or the time is wrong"
_TONES: dict[str, Tone] = {"faster": "good", "slower": "bad", "same": "neutral", "ambiguous": "warn"}


def speed_rows(timing: Timing | None, sol: SpeedOfLight) -> list[EvidenceRow]:
    """Rows of a time; each says whether it was measured or predicted."""
    if timing is None:
        return []
    baselines = "".join(f"; {name} {microseconds(value)}" for name, value in sorted(timing.baselines.items()))
    detail = f"{timing.device}: {timing.method}{_spread(timing)}{baselines}"
    gap = sol.gap(timing.time_us)
    under = timing.kind == "measured" and gap < _POSSIBLE
    rows = [
        EvidenceRow(key="time", label="Time", value=microseconds(timing.time_us), detail=detail, basis=timing.kind),
        EvidenceRow(
            key="sol_gap",
            label="Gap to speed of light",
            value=f"{significant(gap)}×",
            detail=_UNDER if under else f"{100 / gap:.0f}% of the bound" if gap > 0 else "",
            basis=timing.kind,
            tone="warn" if under else "good" if gap < 1.25 else "neutral" if gap < 2 else "warn",
        ),
    ]
    if timing.warm_us is not None:
        warm = microseconds(timing.warm_us)
        rows.append(EvidenceRow(key="time_warm", label="Time, warm L2", value=warm, basis=timing.kind))
    rows += [_comparison_row(number, found, timing) for number, found in enumerate(timing.comparisons, 1)]
    for number, note in enumerate(timing.notes, 1):
        rows.append(EvidenceRow(key=f"timing_note_{number}", label="Timing note", value=note, tone="warn"))
    if timing.conditions:
        text = ", ".join(f"{name} {value}" for name, value in timing.conditions.items())
        rows.append(EvidenceRow(key="conditions", label="Timed under", value=text))
    return rows


def band(timing: Timing) -> str:
    """The range in which most measured times lie for such a prediction, or a remark that it is not known."""
    if timing.band_us is None:
        return f"the error of predictions for {timing.device} is not known"
    low, high = map(microseconds, timing.band_us)
    return f"when measured, nine of ten such kernels take {low} to {high}"


def _spread(timing: Timing) -> str:
    if timing.kind != "measured":
        return f"; {band(timing)}"
    sure = 0 < timing.half_width_us < math.inf
    interval = f", median ± {microseconds(timing.half_width_us)} (95%)" if sure else ""
    return f"{interval}, IQR {microseconds(timing.iqr_us)} of {timing.samples}"


def _comparison_row(number: int, found: Comparison, timing: Timing) -> EvidenceRow:
    interval = f"{found.low:.3f} to {found.high:.3f}" if math.isfinite(found.high) else "unknown"
    other = timing.baselines.get(found.against)
    beside = f"; it takes {microseconds(other)}" if other is not None else ""
    return EvidenceRow(
        key=f"against_{number}",
        label=f"Compared with {found.against}" + (", the baseline" if found.against == timing.baseline else ""),
        value=f"{found.answer}: {significant(found.ratio)}× its time",
        detail=f"95% {interval}, {found.pairs} interleaved rounds{beside}",
        basis=timing.kind,
        tone="neutral" if found.against.startswith("copy") else _TONES[found.answer],
    )
