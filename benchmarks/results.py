"""What was measured, and how it is written down: as tables, a row a line (``cutegen_lab.bench.table``).

Where rows are configs, a group has the names of its ``parameters`` and a row their values, in that order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cutegen_lab.bench.table import read_table, write_table

__all__ = ["RESULTS", "read_configs", "read_table", "write_configs", "write_table"]
RESULTS = Path(__file__).parent / "results"
Row = Mapping[str, Any]


def write_configs(path: Path, head: Row, groups: Mapping[str, Row]) -> None:
    """``groups`` by name: what holds for a group, and its ``rows``, each with a ``config`` of the same parameters."""
    told, rows = {}, []
    for name, group in groups.items():
        parameters = list(group["rows"][0]["config"])
        told[name] = {**{key: value for key, value in group.items() if key != "rows"}, "parameters": parameters}
        for row in group["rows"]:
            rows.append({"group": name, **row, "config": [row["config"][p] for p in parameters]})
    write_table(path, {**head, "groups": told}, rows)


def read_configs(path: Path) -> dict[str, dict[str, Any]]:
    """The groups, as ``write_configs`` took them."""
    head, rows = read_table(path)
    groups: dict[str, dict[str, Any]] = {name: {**group, "rows": []} for name, group in head["groups"].items()}
    for row in rows:
        group = groups[row.pop("group")]
        group["rows"].append({**row, "config": _config(group["parameters"], row["config"])})
    return groups


def _config(parameters: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(parameters, values, strict=True))
