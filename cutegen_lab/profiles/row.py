"""One number of a run's profile, the same for emulator and hardware, and tables of them as CSV, JSON and pandas."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from cutegen_lab.core.errors import SetupError

if TYPE_CHECKING:
    from pandas import DataFrame

Source = Literal["emulator", "ncu", "timer", "judge", "static"]
"""Where a number is from: the emulator (counted or predicted), Nsight Compute, a timer on a GPU, the judge (errors), or
static facts (registers, bounds)."""


@dataclass(frozen=True)
class Row:
    """One number. Strings are empty if a column does not apply."""

    run: str
    """Id of the run."""
    candidate: str
    """The candidate; empty for numbers of the problem."""
    workload: str
    """Workload it was counted, timed or checked on."""
    kernel: str
    """The kernel; empty for a call with all its kernels."""
    source: Source
    """Where the number is from."""
    subject: str
    """The timed subject ("eager PyTorch"), the draw of a check ("normal"), the input, or the resource."""
    metric: str
    """Name of the metric."""
    unit: str
    """Its unit; empty for ratios."""
    value: float
    """The value."""
    low: float | None = None
    """Lower end of its 95% interval, if it has one."""
    high: float | None = None
    """Upper end of that interval."""


RECORD = "record"
"""First column of a plot's table: the kind of its rows."""
COLUMNS = tuple(field.name for field in fields(Row))


def to_csv(rows: Iterable[Row]) -> str:
    """A header and a line for each row; an empty field if there is no interval."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    return out.getvalue()


def to_json(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """A mapping for each row; None for a number that JSON cannot hold."""
    return [{name: _finite(value) for name, value in asdict(row).items()} for row in rows]


def to_frame(rows: Iterable[Row]) -> DataFrame:
    """A pandas table. Raises SetupError if pandas is not installed."""
    return frame_of([asdict(row) for row in rows], COLUMNS)


def frame_of(table: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> DataFrame:
    """A pandas table of mappings. Raises SetupError if pandas is not installed."""
    try:
        import pandas
    except ModuleNotFoundError:
        raise SetupError(
            "a pandas table needs pandas, which is not installed", "pip install pandas, or use .rows or .csv."
        ) from None
    return pandas.DataFrame(table, columns=columns)


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value
