"""A picture as data: panels of cells that belong together, which :mod:`drawing` writes as SVG."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cutegen_lab.core.hints import Hint


@dataclass(frozen=True)
class Cell:
    """One cell of a panel. Cells of equal ``owner`` light up together under the pointer, in all panels; those of equal
    ``owner`` and ``element`` more so."""

    row: int
    column: int
    lines: tuple[str, ...]
    """Its text."""
    told: str
    """What pointing at it says."""
    owner: str = ""
    """Its thread or bank, as "thread 5"; empty if there is none."""
    element: str = ""
    """Which element it shows."""
    colour: int | None = None
    """Number of its colour; None for none."""
    span: int = 1
    """Columns that it takes."""
    marked: bool = False
    """Whether it has a frame, as cells do that an access touches."""


@dataclass(frozen=True)
class Panel:
    """A grid with headings."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[Cell, ...]
    corner: str = ""
    """Of the headings: what rows and columns are."""
    row_lines: frozenset[int] = frozenset()
    """Rows above which a tile begins."""
    column_lines: frozenset[int] = frozenset()
    """Columns left of which a tile begins."""

    def text(self) -> list[list[str]]:
        """Headings and cells, as a table."""
        table = [["" for _ in self.columns] for _ in self.rows]
        for cell in self.cells:
            for column in range(cell.column, cell.column + cell.span):
                table[cell.row][column] = " ".join(cell.lines)
        return [[self.corner, *self.columns], *([label, *row] for label, row in zip(self.rows, table, strict=True))]


@dataclass(frozen=True)
class Picture:
    """``notes`` are sentences below the title; ``facts`` are what ``--json`` prints."""

    title: str
    panels: tuple[Panel, ...]
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    hints: Mapping[str, Hint] = field(default_factory=dict, repr=False)
    """What can be done about a note, by its text. Only a front end that has options for it says so."""

    def advised(self, spell: Callable[[Hint], str]) -> Picture:
        """The same picture with its hints in its notes, in the words of ``spell``."""
        notes = (
            f"{note}; {spell(self.hints[note]).rstrip('.')}" if note in self.hints else note for note in self.notes
        )
        return replace(self, notes=tuple(notes), hints={})

    def text(self) -> str:
        """For terminals and screen readers."""
        parts = [self.title, *self.notes]
        for panel in self.panels:
            table = panel.text()
            widths = [max(map(len, column)) for column in zip(*table, strict=True)]
            lines = (" ".join(f"{word:>{wide}}" for word, wide in zip(row, widths, strict=True)) for row in table)
            parts += ["", panel.title, *(line.rstrip() for line in lines)]
        return "\n".join(parts)

    @property
    def summary(self) -> str:
        return ". ".join((self.title, *(note.rstrip(".") for note in self.notes)))


def colour_of_lane(number: int) -> int:
    """Colours of banks and threads: a hue for each four (a 16-byte piece of banks, a quad of threads), a strength for
    each of them."""
    return number % 32


def colour_of_tile(number: int) -> int:
    """Colours of tiles: neighbours have different hues."""
    return number % 8 * 4 + number // 8 % 4
