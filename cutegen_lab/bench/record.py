"""Results as they are written down: after every row, so that what was measured survives whatever comes next."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from cutegen_lab.bench.measure import Row

_DRIVER = Path("/proc/driver/nvidia/version")


class Record:
    """Rows in ``path`` (nowhere if None). With ``resume`` those that are there already count."""

    def __init__(self, path: Path | None, device: str, resume: bool = False) -> None:
        self._path, self._about, self.rows = path, about(device), list[Row]()
        if resume and path and path.exists():
            self.rows = [Row(**row) for row in json.loads(path.read_text())["rows"]]

    def row(self, name: str) -> Row | None:
        return next((row for row in self.rows if row.name == name), None)

    def add(self, row: Row) -> None:
        self.rows.append(row)
        if self._path:
            scratch = self._path.with_name(self._path.name + ".new")
            scratch.write_text(json.dumps(self.facts(), indent=1) + "\n")
            scratch.replace(self._path)

    def facts(self) -> Mapping[str, Any]:
        rows = [{name: value for name, value in vars(row).items() if value} for row in self.rows]
        return {**self._about, "rows": rows}


def about(device: str) -> dict[str, str]:
    """Date, versions and ``device``, as recorded results begin."""
    match = re.search(r"  (\d+\.[\d.]+)  ", _DRIVER.read_text()) if _DRIVER.exists() else None
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"), "python": platform.python_version(),
        "torch": torch.__version__, "device": device, "driver": match[1] if match else "unknown",
    }  # fmt: skip
