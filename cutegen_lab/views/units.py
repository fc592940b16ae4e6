"""Numbers with their unit, for display: equal values give equal text."""

from __future__ import annotations

import math


def microseconds(value: float) -> str:
    """``12.3 µs``, ``1.52 ms``: three significant digits."""
    for unit, scale in (("s", 1e6), ("ms", 1e3)):
        if value >= scale:
            return f"{significant(value / scale)} {unit}"
    return f"{significant(value)} µs"


def seconds(value: float) -> str:
    """Duration of a step: ``0.04 s``, ``12 s``, ``3 min 20 s``."""
    if value < 10:
        return f"{value:.2g} s" if value >= 0.1 else f"{value:.2f} s"
    if value < 60:
        return f"{value:.0f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest} s"


def size(value: float) -> str:
    """Bytes in binary units; exact below 1 MiB (``232,448 B``)."""
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20)):
        if value >= scale:
            return f"{significant(value / scale)} {unit}"
    return f"{value:,.0f} B"


def relative(value: float) -> str:
    """A relative error: ``1.6e-03``; in words if it is zero or not finite."""
    if not math.isfinite(value):
        return "not finite"
    return "0 (exact)" if value == 0 else f"{value:.1e}"


def count(value: float) -> str:
    """A counter: exact below ten million, otherwise with three significant digits: ``32,768``, ``1.07e+09``."""
    return f"{value:,.0f}" if abs(value) < 1e7 else f"{value:.2e}"


def prefixed(value: float) -> str:
    """A tick of an axis: ``0.1``, ``100``, ``10 k``, ``1 T``."""
    for letter, scale in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= 0.999 * scale:
            return f"{significant(value / scale)} {letter}"
    return significant(value)


def plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def significant(value: float) -> str:
    """Three significant digits without an exponent: ``0.0123``, ``12.3``, ``1,230``."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.3g}"
