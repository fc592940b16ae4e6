"""Rows as a table, and a summary."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import geometric_mean

from cutegen_lab.bench.quack import QUACK
from cutegen_lab.bench.record import COPY, Row

LARGE_BYTES = 1 << 28
OTHERS = ("eager", "compile", QUACK)


def default_us(row: Row) -> float:
    return row.times_us.get("c0", math.nan)


def ratio(row: Row, other: str) -> float:
    """``other``'s time divided by the default config's (median of the rounds' ratios): above 1 if the default config is
    faster."""
    return row.ratios[other][0]


def line(row: Row) -> str:
    """One row: time, rate, then each other subject's time divided by the default config's."""
    if "c0" not in row.times_us:
        return f"{row.name:34} {row.faults.get('c0') or row.faults.get('all', 'not timed')}"
    us = default_us(row)
    rate = f"{row.flops / us / 1e6:6.0f} TFLOP/s" if row.flops else f"{row.bytes / us / 1e3:6.0f} GB/s"
    others = "".join(f" {ratio(row, o):6.2f}" if o in row.ratios else "      -" for o in (COPY, *OTHERS))
    best = min((found[0] for name, found in row.ratios.items() if name[0] == "c" and name[1:].isdigit()), default=1.0)
    more = f"  another config: {best:.3f}" if best < 0.99 else ""
    wrong = "".join(f"  {name}: {fault[:90]}" for name, fault in row.faults.items())
    if row.insensitive:
        wrong += f"  the answer hardly depends on {', '.join(row.insensitive)}: left out of means"
    return f"{row.name:34} {us:9.1f} µs {rate}{others}{more}{wrong}"


HEAD = f"{'':34} {'default':>12} {'':12}   copy  eager compil  quack   (their time over ours)"


def summary(rows: Iterable[Row]) -> list[str]:
    """One line for each kind of work: fraction of the copy rate in cases of 256 MB or more, and ratios to the other
    subjects."""
    works: dict[str, list[Row]] = {}
    for row in rows:
        works.setdefault(row.work, []).append(row)
    return [_summed(work, found) for work, found in works.items()]


def _summed(work: str, rows: Sequence[Row]) -> str:
    every = [row for row in rows if "c0" in row.times_us]
    timed = [row for row in every if not row.insensitive]
    parts = [f"{len(every)} of {len(rows)} timed"]
    if len(timed) < len(every):
        parts.append(f"{len(every) - len(timed)} not in the means, because the answer hardly depends on an input")
    large = [ratio(row, COPY) for row in timed if row.bytes >= LARGE_BYTES and not row.flops and COPY in row.ratios]
    if large:
        parts.append(f"{min(large):.3f} to {max(large):.3f} of the copy rate from 256 MB up")
    known = [row.errors for row in timed if row.flops and "c0" in row.errors]
    of_eager = [errors["c0"] / errors["eager"] for errors in known if errors["eager"]]
    if of_eager:
        parts.append(f"error {min(of_eager):.2f} to {max(of_eager):.2f} of eager's")
    for other in OTHERS:
        found = {row.name: ratio(row, other) for row in timed if other in row.ratios}
        if found:
            least = min(found, key=found.__getitem__)
            parts.append(f"{other} {geometric_mean(found.values()):.2f}x (least {found[least]:.2f}, {least})")
    return f"{work}: " + "; ".join(parts)
