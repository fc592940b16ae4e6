"""Rows of suites for tests."""

from __future__ import annotations

from typing import Any

from cutegen_lab.suite.record import Row, Suite


def row(name: str, **values: Any) -> Row:
    """A row; its key is its name's, unless the file was not read."""
    key = "" if values.get("outcome") == "not read" else f"key of {name}"
    return Row(**{"name": name, "path": f"{name}.py", "problem_key": key, "outcome": "correct", **values})


def timed(name: str, time_us: float, bound_us: float = 5.0, **values: Any) -> Row:
    """A correct row with a measured time."""
    given = {"kind": "measured", "device": "NVIDIA H200", "compiled": True, "family": "elementwise", **values}
    return row(name, time_us=time_us, bound_us=bound_us, **given)


def suite(*rows: Row, **values: Any) -> Suite:
    return Suite(**{"name": "small", "gpu": "H200", "total": len(rows), "rows": rows, **values})
