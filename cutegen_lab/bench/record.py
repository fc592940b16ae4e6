"""Results as they are written down: after every row, so that what was measured survives whatever comes next."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cutegen_lab.bench.table import read_table, write_table
from cutegen_lab.core.candidate import Config
from cutegen_lab.core.errors import InputError

COPY = "copy"
_DRIVER = Path("/proc/driver/nvidia/version")


@dataclass
class Row:
    """Medians in µs by subject: ``c0`` is the default config, ``c1`` and on are others, then peers. ``ratios`` are the
    others' times over those of ``c0``: the median of each round's own, and its 95% interval. ``faults`` are what was
    not timed or was wrong; of ``checked`` subjects every element was compared with float64's result, and ``errors`` are
    theirs and eager's: ‖out − ref‖ / ‖ref‖ of the output where it is largest. ``insensitive``: inputs on which the
    answer hardly depends; such a row is in no mean."""

    name: str
    work: str
    bytes: int
    flops: float = 0.0
    family: str = ""
    configs: list[Config] = field(default_factory=list)
    times_us: dict[str, float] = field(default_factory=dict)
    half_widths: dict[str, float] = field(default_factory=dict)  # of the 95% intervals, relative
    ratios: dict[str, list[float]] = field(default_factory=dict)
    rounds: int = 0
    checked: list[str] = field(default_factory=list)
    errors: dict[str, float] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    insensitive: list[str] = field(default_factory=list)


class Record:
    """``rows`` and those that are added, in ``path`` (nowhere if None) after ``facts`` of the machine."""

    def __init__(self, about: Mapping[str, str], path: Path | None, rows: Iterable[Row] = ()) -> None:
        self._about, self._path, self.rows = about, path, list(rows)

    def __contains__(self, name: str) -> bool:
        return any(row.name == name for row in self.rows)

    def add(self, row: Row) -> None:
        self.rows.append(row)
        if self._path:
            write_table(self._path, self._about, self._told())

    def facts(self) -> Mapping[str, Any]:
        return {**self._about, "rows": self._told()}

    def _told(self) -> list[dict[str, Any]]:
        return [{name: value for name, value in vars(row).items() if value} for row in self.rows]


def read(path: Path) -> list[Row]:
    """The rows of a record. Raises InputError where it is none."""
    try:
        return [Row(**row) for row in read_table(path)[1]]
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", "cutegen bench writes one with --out.") from None
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path} is no record of a benchmark ({type(error).__name__})", "cutegen bench writes one with --out."
        ) from None


def about(device: str) -> dict[str, str]:
    """Date, versions and ``device``, as recorded results begin."""
    match = re.search(r"  (\d+\.[\d.]+)  ", _DRIVER.read_text()) if _DRIVER.exists() else None
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"), "python": platform.python_version(),
        "torch": version("torch"), "device": device, "driver": match[1] if match else "unknown",
    }  # fmt: skip
