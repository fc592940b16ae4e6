"""Every planted fault still fits the product, and says what it breaks."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.mutants.planting import NEAR, Planted, planted

TREE = Path(__file__).parents[2]
FAULTS = planted()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_still_fits(fault: Planted) -> None:
    done = subprocess.run(  # noqa: S603
        ["git", "apply", "--check", str(fault.patch)],  # noqa: S607
        cwd=TREE, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stderr}\nMake the same mistake in the code as it is now."
    assert fault.why.endswith(".")


def test_there_are_ten_in_each_area() -> None:
    areas = [fault.area for fault in FAULTS]
    assert set(areas) == set(NEAR) and all(areas.count(area) >= 10 for area in NEAR)
