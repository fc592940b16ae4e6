"""Ideas of a model about a kernel: what it claims, what metric that changes and by how much, and what the work costs.

An idea is not the code that tries it: a first implementation that fails leaves the idea open.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Cost = Literal["small", "large"]
MOST_CLAIM = 240  # maximum number of characters of a claim


TIME = "time"
METRICS = (TIME, "dram bytes", "l2 bytes", "instructions", "bank conflicts", "registers", "shared memory")
"""Metrics that an idea may name, of the main workload."""

_CHANGE = re.compile(rf"\b({'|'.join(METRICS)})\s*:?\s*([+\-−–]?)\s*(\d{{1,4}}(?:\.\d{{1,4}})?)\s*%", re.IGNORECASE)


@dataclass(frozen=True)
class Change:
    """A change of a metric."""

    metric: str
    """One of :data:`METRICS`."""
    fraction: float
    """The change as a fraction of the value before: -0.12 for 12% less."""

    def __str__(self) -> str:
        return f"{self.metric} {100 * self.fraction:+.3g}%"


@dataclass(frozen=True)
class Idea:
    """A change that a model or an analyst thinks of."""

    claim: str
    """What to do, in one line."""
    expects: Change | None = None
    """What it is expected to change; None if that was not said."""
    cost: Cost = "small"
    """The work it takes."""


def read_change(text: str) -> Change | None:
    """The first change named in ``text`` ("time -12%"); None without one. A change without a sign is a reduction."""
    found = _CHANGE.search(text.replace("*", "").replace("`", ""))
    if found is None:
        return None
    fraction = float(found[3]) / 100
    return Change(found[1].lower(), fraction if found[2] == "+" else max(-fraction, -1.0))


def read_idea(text: str) -> Idea | None:
    """An idea written as ``claim | metric ±N% | small or large``, of which only the claim must be given; None without a
    claim."""
    claim, *rest = (part.strip() for part in text.split("|"))
    if not claim:
        return None
    large = any(part.lower().startswith("large") for part in rest)
    return Idea(claim[:MOST_CLAIM], read_change(" ".join(rest)), "large" if large else "small")
