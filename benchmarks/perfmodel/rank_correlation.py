"""How well predicted times order the configs of one kernel, compared with measured times.

Spearman's rank correlation counts every measured difference, however small. ``spearman_resolved`` counts only pairs of
configs whose times are more than 1% apart: sampling ends when the 95% interval of each median is within 0.5% of it, so
the intervals of two medians closer than that overlap, and the judge calls such kernels *same*. ``regret`` is how much
longer than the fastest config the one takes that was predicted fastest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from statistics import median
from typing import Any

SAME = 0.01
Row = dict[str, Any]


def spearman(measured: Sequence[float], guessed: Sequence[float], same: float = 0.0) -> float:
    """Rank correlation; equal values share their mean rank. A pair whose measured values are within ``same`` of each
    other is a tie of both: its order counts neither for nor against, and 1.0 is every other pair in order. 0 for fewer
    than three values, and where all are ties."""
    if len(measured) < 3:
        return 0.0
    x, y = [0] * len(measured), [0] * len(measured)  # of each value: how many are less, minus how many are more
    for i, j in combinations(range(len(measured)), 2):
        if same and tied(measured[i], measured[j], same):
            continue
        for ranks, values in ((x, measured), (y, guessed)):
            above = (values[i] > values[j]) - (values[i] < values[j])
            ranks[i] += above
            ranks[j] -= above
    alone = math.sqrt(sum(i * i for i in x) * sum(j * j for j in y))
    return sum(i * j for i, j in zip(x, y, strict=True)) / alone if alone else 0.0


def tied(one: float, other: float, same: float = SAME) -> bool:
    """Whether two times are within ``same`` of each other."""
    return max(one, other) <= (1 + same) * min(one, other)


def regret(measured: Sequence[float], guessed: Sequence[float]) -> float:
    """How much longer than the fastest the config that was predicted fastest takes: 0.0 is the fastest itself."""
    chosen = min(range(len(guessed)), key=guessed.__getitem__)
    return measured[chosen] / min(measured) - 1


def ordered(measured: Sequence[float], guessed: Sequence[float]) -> tuple[int, int]:
    """(pairs that the prediction has in their order, pairs whose measured times differ by more than 1%)."""
    pairs = [(m, g) for m, g in combinations(zip(measured, guessed, strict=True), 2) if not tied(m[0], g[0])]
    return sum((m[0] < g[0]) == (m[1] < g[1]) for m, g in pairs), len(pairs)


def ranked_rows(rows: Sequence[Row]) -> Row:
    """Of rows with ``measured_us`` and ``predicted_us``: the figures, and the rows."""
    measured, guessed = ([row[key] for row in rows] for key in ("measured_us", "predicted_us"))
    return {
        "spearman": round(spearman(measured, guessed), 3),
        "spearman_resolved": round(spearman(measured, guessed, SAME), 3),
        "pairs_in_order": "{} of {}".format(*ordered(measured, guessed)),
        "regret": round(regret(measured, guessed), 3),
        "median_ratio": round(median(max(g / m, m / g) for m, g in zip(measured, guessed, strict=True)), 3),
        "rows": rows,
    }


def ranked_text(name: str, group: Row) -> str:
    """One line about what :func:`ranked_rows` made."""
    return (
        f"{name:28} Spearman {group['spearman']:.2f} ({group['spearman_resolved']:.2f} of pairs over 1% apart, "
        f"{group['pairs_in_order']} pairs), regret {group['regret']:.1%}, ratio {group['median_ratio']:.2f}"
    )
