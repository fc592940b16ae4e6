"""What is said of a predicted gain is what the measurements say."""

from __future__ import annotations

from benchmarks.perfmodel.predicted_gains import shares
from cutegen_lab.core.gains import COME_TRUE


def test_of_ten_predicted_gains_so_many_come_true():
    found = shares()
    assert sum(pairs for _, pairs in found.values()) > 20_000
    assert set(found) == {of_ten for _, of_ten in COME_TRUE}
    for of_ten, (share, _) in found.items():
        assert round(10 * share) == of_ten
