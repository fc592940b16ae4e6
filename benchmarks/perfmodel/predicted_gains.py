"""How many of ten predicted gains come true when both kernels are measured, by the size of the gain.

    python -m benchmarks.perfmodel.predicted_gains   (no GPU)

Of every two configs of one kernel on one shape in four records of an H200 and an H100, more than 20,000 pairs: whether
the one that is predicted to be faster was. :data:`cutegen_lab.core.gains.COME_TRUE` has the counts. Run it after the
records have been predicted anew.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations

from benchmarks.harness import RESULTS, command_line, read_json
from cutegen_lab.core.gains import COME_TRUE, come_true

RECORDS = (
    "template_order_on_gpu.json", "foreign_wide_on_gpu.json", "foreign_seen_on_gpu.json", "foreign_wide_on_h100.json",
)  # fmt: skip


def shares() -> dict[int, tuple[float, int]]:
    """By the number of ten that :data:`COME_TRUE` says: the share of pairs that came true, and the number of pairs."""
    right: dict[int, list[bool]] = defaultdict(list)
    for record in RECORDS:
        groups: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for group, _, measured_us, predicted_us in read_json(RESULTS / record)["rows"]:
            groups[group].append((predicted_us, measured_us))
        for timed in groups.values():
            for one, other in combinations(timed, 2):
                (fast_us, first_us), (slow_us, second_us) = sorted((one, other))
                right[come_true(1 - fast_us / slow_us)].append(first_us < second_us)
    return {of_ten: (sum(found) / len(found), len(found)) for of_ten, found in right.items()}


def main() -> None:
    found = shares()
    for least, of_ten in COME_TRUE:
        share, pairs = found[of_ten]
        print(f"predicted gain of {least:4.0%} or more: {share:.1%} of {pairs} came true; said: {of_ten} of 10")


if __name__ == "__main__":
    command_line(main)
