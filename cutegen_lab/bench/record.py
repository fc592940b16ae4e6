"""Writes results after every row, so that an interrupted run keeps what it measured."""

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
from cutegen_lab.core.hints import Advice, Hint

COPY = "copy"
_DRIVER = Path("/proc/driver/nvidia/version")


@dataclass
class Row:
    """Results of one case. ``times_us``: medians by subject; ``c0`` is the default config, ``c1`` and so on are other
    configs, the rest are baselines and peers.

    ``ratios``: each other subject's time divided by that of ``c0``, as [median of the rounds' ratios, lower, upper
    bound of its 95% interval]. ``faults``: subjects that were not timed or were wrong. ``checked``: subjects whose
    output elements were all compared with the float64 reference. ``errors``: their errors and eager's, ‖out − ref‖ /
    ‖ref‖ of the worst output. ``insensitive``: inputs that hardly affect the result; such a row is excluded from means.
    """

    name: str
    work: str
    bytes: int
    flops: float = 0.0
    family: str = ""
    configs: list[Config] = field(default_factory=list)
    times_us: dict[str, float] = field(default_factory=dict)
    # Half widths of the 95% intervals, relative to the medians.
    half_widths: dict[str, float] = field(default_factory=dict)
    ratios: dict[str, list[float]] = field(default_factory=dict)
    rounds: int = 0
    checked: list[str] = field(default_factory=list)
    errors: dict[str, float] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    insensitive: list[str] = field(default_factory=list)


class Record:
    """Rows of a benchmark, the given ``rows`` first. Each :meth:`add` writes all of them to ``path`` (nowhere if None),
    with facts ``about`` the machine."""

    def __init__(self, about: Mapping[str, str], path: Path | None, rows: Iterable[Row] = ()) -> None:
        self._about, self._path, self.rows = about, path, list(rows)

    def __contains__(self, name: str) -> bool:
        return any(row.name == name for row in self.rows)

    def add(self, row: Row) -> None:
        self.rows.append(row)
        if self._path:
            write_table(self._path, self._about, self._row_dicts())

    def facts(self) -> Mapping[str, Any]:
        return {**self._about, "rows": self._row_dicts()}

    def _row_dicts(self) -> list[dict[str, Any]]:
        return [{name: value for name, value in vars(row).items() if value} for row in self.rows]


def read(path: Path) -> list[Row]:
    """Rows of the record ``path``. Raises InputError if the file cannot be read or is no record."""
    try:
        return [Row(**row) for row in read_table(path)[1]]
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", Hint(Advice.BENCH_RECORD)) from None
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path} is no record of a benchmark ({type(error).__name__})", Hint(Advice.BENCH_RECORD)
        ) from None


def about(device: str) -> dict[str, str]:
    """Date, versions and ``device``: the head of every record."""
    match = re.search(r"  (\d+\.[\d.]+)  ", _DRIVER.read_text()) if _DRIVER.exists() else None
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"), "python": platform.python_version(),
        "torch": version("torch"), "device": device, "driver": match[1] if match else "unknown",
    }  # fmt: skip
