"""How far measured times are from predicted ones, by the limiter that is predicted.

    python -m benchmarks.perfmodel.prediction_errors   (no GPU)

Of the 131 configs of 23 kernels by other authors in ``foreign_on_gpu.json`` and ``foreign_blind_on_gpu.json``: the
ratios of measured to predicted times without the 5% at either end, so that at least 90% are within. They are the error
bands of :mod:`cutegen_lab.perfmodel.error_band`. Run it after the records have been predicted anew.
"""

from __future__ import annotations

import math
from collections import defaultdict

from benchmarks.harness import RESULTS, command_line, read_json
from cutegen_lab.perfmodel.error_band import EVERY, kind_of

RECORDS = ("foreign_on_gpu.json", "foreign_blind_on_gpu.json")


def ratios() -> dict[str, list[float]]:
    """Measured over predicted time of each config, by kind of limiter; of all configs under :data:`EVERY`."""
    found: dict[str, list[float]] = defaultdict(list)
    for record in RECORDS:
        for group in read_json(RESULTS / record)["groups"].values():
            for row in group["rows"]:
                for kind in {EVERY, kind_of(row["limiter"])}:
                    found[kind].append(row["measured_us"] / row["predicted_us"])
    return found


def bands() -> dict[str, tuple[float, float]]:
    """Least and greatest ratio of each kind without the 5% at either end, to two digits outwards."""
    found = {}
    for kind, values in ratios().items():
        out = len(values) // 20
        kept = sorted(values)[out : len(values) - out]
        found[kind] = (math.floor(100 * kept[0]) / 100, math.ceil(100 * kept[-1]) / 100)
    return found


def main() -> None:
    for kind, (low, high) in bands().items():
        print(f"{kind or 'any limiter':32} {len(ratios()[kind]):3} configs: {low:.2f} to {high:.2f}")


if __name__ == "__main__":
    command_line(main)
