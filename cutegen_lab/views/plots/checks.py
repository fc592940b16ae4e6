"""The check matrix, which is a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cutegen_lab.profiles.records import CheckCell
from cutegen_lab.views.plots.words import cell_text, cell_told, checks_note


@dataclass(frozen=True)
class ShownCell:
    """The checks of one workload with one kind of inputs."""

    text: str
    """The largest error, relative to the allowed error; empty if nothing was checked."""
    told: str
    """Tooltip of a failure, in words."""
    failed: bool
    """Whether a check failed."""


@dataclass(frozen=True)
class CheckMatrix:
    """Every check of a candidate."""

    note: str
    """Number of failed checks, in words."""
    workloads: Sequence[str]
    """The columns."""
    rows: Sequence[tuple[str, Sequence[ShownCell]]]
    """Rows: a kind of inputs, and a cell for each workload."""


def check_matrix(cells: Sequence[CheckCell]) -> CheckMatrix | None:
    """The matrix of ``cells``; None without a check."""
    if not cells:
        return None
    by = {(cell.workload, cell.draw): cell for cell in cells}
    workloads = list(dict.fromkeys(cell.workload for cell in cells))
    rows = [
        (draw, [_shown(by.get((workload, draw))) for workload in workloads])
        for draw in dict.fromkeys(cell.draw for cell in cells)
    ]
    return CheckMatrix(checks_note(cells), workloads, rows)


def _shown(cell: CheckCell | None) -> ShownCell:
    failed = bool(cell and cell.failed)
    return ShownCell(cell_text(cell), cell_told(cell) if failed else "", failed)
