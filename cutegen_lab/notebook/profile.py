"""A run's profile in a notebook: all its numbers as one table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cutegen_lab.notebook.checked_arguments import verb
from cutegen_lab.profiles.row import Row, to_csv, to_frame
from cutegen_lab.session import RunHandle

if TYPE_CHECKING:
    from pandas import DataFrame

    from cutegen_lab.core.trial import Profile


class RunProfile:
    """Times, counters, errors and resources of every candidate, the same for emulator and hardware.

    A call collects the counters of one candidate on one device, and adds them to the table.
    """

    def __init__(self, handle: RunHandle) -> None:
        self._handle = handle

    def __repr__(self) -> str:
        return f"<profile of {self._handle.run_id}: {len(self.rows)} rows; .df, .rows, .save('profile.csv')>"

    @verb
    def profile(self, candidate_id: str | None = None, device: str = "emulator") -> Profile:
        """Counters of a candidate from the emulator or a GPU (``device="cuda"``). Raises InputError, SetupError."""
        return self._handle.profile(candidate_id, device)

    __call__ = profile

    @property
    def rows(self) -> Sequence[Row]:
        """The table: run, candidate, workload, kernel, source, subject, metric, unit, value and its 95% interval."""
        return self._handle.profile_rows()

    @property
    def df(self) -> DataFrame:
        """The table as a pandas DataFrame. Raises SetupError if pandas is not installed."""
        return to_frame(self.rows)

    @verb
    def save(self, path: str | Path) -> Path:
        """Writes the table as CSV. Raises InputError if ``path`` is a file that cutegen did not write."""
        from cutegen_lab.session.outputs import write_out

        write_out(Path(path), to_csv(self.rows))
        return Path(path)
