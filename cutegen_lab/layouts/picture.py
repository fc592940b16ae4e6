"""A picture as data: panels of cells, which :mod:`drawing` writes as SVG."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cutegen_lab.core.hints import Hint


@dataclass(frozen=True)
class Cell:
    """One cell of a panel. Cells of equal ``owner`` are highlighted together in all panels; those of equal ``owner``
    and ``element`` more strongly."""

    row: int
    column: int
    lines: tuple[str, ...]
    """Its text."""
    tooltip: str
    """Its tooltip."""
    owner: str = ""
    """Its thread or bank, as "thread 5"; empty if there is none."""
    element: str = ""
    """The element that it shows."""
    colour: int | None = None
    """Number of its colour; None for none."""
    span: int = 1
    """Number of columns that it spans."""
    marked: bool = False
    """Whether the cell has a frame: an access touches it."""


@dataclass(frozen=True)
class Panel:
    """A grid with headings."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[Cell, ...]
    corner: str = ""
    """Text in the corner of the headings: the meaning of rows and columns."""
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
    """Hints by the text of their notes. Only a front end with options shows hints."""

    def advised(self, spell: Callable[[Hint], str]) -> Picture:
        """A copy of the picture with its hints in its notes, in the words of ``spell``."""
        notes = (
            f"{note}; {spell(self.hints[note]).rstrip('.')}" if note in self.hints else note for note in self.notes
        )
        return replace(self, notes=tuple(notes), hints={})

    def text(self) -> str:
        """The picture as text for terminals and screen readers."""
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
    """Colour of a bank or thread: one hue for four (16 bytes of banks, a quad of threads), a strength for each of the
    four."""
    return number % 32


def colour_of_tile(number: int) -> int:
    """Colour of a tile: neighbours have different hues."""
    return number % 8 * 4 + number // 8 % 4
