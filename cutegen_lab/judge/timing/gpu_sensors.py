"""GPU sensors during a timing, in words: clocks, power, temperature, throttle reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_IDLE = 0x1
# nvmlClocksEventReasons, NVML API reference
_REASONS = {
    0x2: "clocks set by the application", 0x4: "software power cap", 0x8: "hardware slowdown", 0x10: "sync boost",
    0x20: "software thermal slowdown", 0x40: "hardware thermal slowdown", 0x80: "hardware power brake",
    0x100: "display clocks",
}  # fmt: skip
_SLOWING = 0x4 | 0x8 | 0x20 | 0x40 | 0x80


def sensor_ranges(readings: Sequence[Mapping[str, float]]) -> dict[str, str]:
    """Range of each reading and all throttle reasons seen; {} if the GPU reports nothing."""
    words = {
        "SM clock": _range(readings, "sm_clock_mhz", "MHz"),
        "memory clock": _range(readings, "memory_clock_mhz", "MHz"),
        "power": _range(readings, "power_w", "W"),
        "temperature": _range(readings, "temperature_c", "°C"),
    }
    if any("throttle" in r for r in readings):
        words["throttle reasons"] = ", ".join(_names(_mask(readings) & ~_IDLE)) or "none"
    return {name: text for name, text in words.items() if text}


def throttle_note(readings: Sequence[Mapping[str, float]]) -> str:
    """Note if the GPU throttled its clocks; "" otherwise."""
    reasons = _names(_mask(readings) & _SLOWING)
    return f"the GPU throttled its clocks: {', '.join(reasons)}" if reasons else ""


def _mask(readings: Sequence[Mapping[str, float]]) -> int:
    mask = 0
    for reading in readings:
        mask |= int(reading.get("throttle", 0))
    return mask


def _names(mask: int) -> list[str]:
    return [name for bit, name in _REASONS.items() if mask & bit]


def _range(readings: Sequence[Mapping[str, float]], key: str, unit: str) -> str:
    values = [r[key] for r in readings if key in r]
    if not values:
        return ""
    low, high = f"{min(values):.0f}", f"{max(values):.0f}"
    return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"
