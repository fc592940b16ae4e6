"""How much a run still compiles and judges: all of it, or in a quick run what fits into its time.

Every build goes through :meth:`Pace.before_work`, so that a test which compiles is one that says so.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import pytest

LEFT = "not checked in this quick run, whose time is up; `make test` checks it"


@dataclass
class Pace:
    """``quick_seconds``: no test that is slow or compiles begins later than that after ``started`` (None: all do).
    ``test`` is the one that runs."""

    quick_seconds: float | None = None
    started: float = 0.0
    test: pytest.Item | None = None

    def before_work(self) -> None:
        """Skips the test where no time is left; fails one that does not say that it compiles."""
        if self.test is not None and self.test.get_closest_marker("kernel") is None:
            pytest.fail(f"{self.test.nodeid} compiles a kernel: mark it with @pytest.mark.kernel")
        self.skip_if_late()

    def skip_if_late(self) -> None:
        """Skips the test where no time is left."""
        if self.quick_seconds is not None and time.monotonic() - self.started > self.quick_seconds:
            pytest.skip(LEFT)


PACE = Pace()
