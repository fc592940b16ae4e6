"""Records of measurements as JSON tables: each row is an array on one line, and ``columns`` names its fields once.

A nested field has a column such as ``times_us/eager``. ``null`` is a missing field; missing fields at the end of a row
are left out. Floats have five significant digits; integers are exact.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

DIGITS = 5


def write_table(path: Path, head: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> None:
    """Replaces the file ``path`` atomically. ``head``: facts that hold for all rows: GPU, driver, date, …"""
    flat = [dict(_flat(row)) for row in rows]
    count = Counter(column for row in flat for column in row)
    columns = sorted(count, key=lambda column: -count[column])  # columns that many rows lack come last
    lines = [f" {json.dumps(key)}: {_indented(value)}" for key, value in {**head, "columns": columns}.items()]
    cells = ",\n".join(f"  {_line(_cells(row, columns), ',')}" for row in flat)
    lines.append(f' "rows": [\n{cells}\n ]')
    scratch = path.with_name(f"{path.name}.new")
    scratch.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    scratch.replace(path)


def read_table(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Head and rows of the table ``path``. Raises OSError, ValueError or KeyError if it is not a table."""
    head = json.loads(path.read_text())
    columns, rows = head.pop("columns"), head.pop("rows")
    return head, [_nested(zip(columns, row, strict=False)) for row in rows]


def _flat(row: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if "/" in name:
            raise ValueError(f"a field's name may not contain a slash: {name}")
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}/")
        elif value is not None:
            yield before + name, value


def _nested(fields: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for column, value in fields:
        if value is not None:
            *outer, name = column.split("/")
            inside = row
            for key in outer:
                inside = inside.setdefault(key, {})
            inside[name] = value
    return row


def _cells(row: Mapping[str, Any], columns: Sequence[str]) -> list[Any]:
    cells = [row.get(column) for column in columns]
    while cells and cells[-1] is None:
        cells.pop()
    return cells


def _indented(value: Any) -> str:
    """JSON on one line; a mapping whose values are all mappings has one line for each of these."""
    if isinstance(value, Mapping) and all(isinstance(item, Mapping) for item in value.values()):
        return "{\n" + ",\n".join(f"  {json.dumps(key)}: {_line(item)}" for key, item in value.items()) + "\n }"
    return _line(value)


def _line(value: Any, between: str = ", ") -> str:
    return json.dumps(_rounded(value), ensure_ascii=False, separators=(between, ": "))


def _rounded(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    if isinstance(value, float) and not value.is_integer():
        value = float(f"{value:.{DIGITS}g}")
    return int(value) if isinstance(value, float) and value.is_integer() else value
