"""Panels of layouts, accesses and fragments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cutegen_lab.core.errors import InputError
from cutegen_lab.core.hints import Advice, Hint
from cutegen_lab.layouts.access import BANK_BYTES, BANKS, Access, contiguous_mode, indices, runs
from cutegen_lab.layouts.fragments import Fragment
from cutegen_lab.layouts.int_tuple import idx2crd, written
from cutegen_lab.layouts.layout import AnyLayout, Layout, plain_part
from cutegen_lab.layouts.picture import Cell, Panel, colour_of_lane, colour_of_tile

MOST_ROWS, MOST_COLUMNS, MOST_CELLS = 64, 64, 2048
LINE_BYTES = BANKS * BANK_BYTES


@dataclass(frozen=True)
class Window:
    """Rows and columns that are drawn, as (first, end); None: as many as a picture can show."""

    rows: tuple[int, int] | None = None
    columns: tuple[int, int] | None = None

    def within(self, rows: int, columns: int) -> tuple[range, range]:
        """The part of a grid of ``rows`` by ``columns`` that is drawn. Raises InputError if it is empty."""
        down = _cut("rows", self.rows or (0, MOST_ROWS), rows)
        most = max(1, min(MOST_COLUMNS, MOST_CELLS // max(1, len(down))))
        return down, _cut("columns", self.columns or (0, most), columns)


def _cut(name: str, window: tuple[int, int], count: int) -> range:
    first, end = window
    if first >= count:
        raise InputError(f"{name} {first}:{end} begin after the last of {count} {name}", f"The last is {count - 1}.")
    return range(first, max(first + 1, min(end, count)))


def left_out(rows: range, columns: range, shape: tuple[int, int]) -> dict[str, Hint]:
    """A note for each direction in which the grid is not drawn completely, with a hint on how to choose the part."""
    parts = [("rows", rows, shape[0]), ("columns", columns, shape[1])]
    return {
        f"Shown: {name} {seen.start} to {seen.stop - 1} of {count}": Hint(Advice.CHOOSE_PART, (name,))
        for name, seen, count in parts
        if len(seen) < count
    }


@dataclass(frozen=True)
class Grid:
    """A layout as rows (its first mode) and columns (the others), in pieces of ``together`` elements along ``mode``."""

    layout: AnyLayout
    together: int = 1
    mode: int = 0

    @classmethod
    def of(cls, layout: AnyLayout, together: int = 1) -> Grid:
        """A grid with ``together`` elements per cell if these are contiguous, else with one."""
        mode = contiguous_mode(layout, together) if together > 1 else 0
        return cls(layout, 1) if mode is None else cls(layout, together, mode)

    @property
    def shape(self) -> tuple[int, int]:
        parts = plain_part(self.layout).modes
        rows = parts[0].size // (self.together if self.mode == 0 else 1)
        columns = self.layout.size // parts[0].size // (self.together if self.mode else 1)
        return (1, rows) if len(parts) == 1 else (rows, columns)  # a vector is one row

    def pieces(self) -> list[tuple[int, ...]]:
        """Numbers of the coordinates in each cell, in column-major order."""
        if self.together == 1:
            return [(at,) for at in range(self.layout.size)]
        return runs(self.layout, self.mode, self.together)

    def piece(self, row: int, column: int, pieces: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        return pieces[row + self.shape[0] * column]

    def coordinate(self, element: int) -> str:
        """The coordinate of an element, with the shape's nesting."""
        return written(idx2crd(element, plain_part(self.layout).shape))

    def row_and_column(self, element: int) -> str:
        """(row, column) of an element, as in the headings."""
        parts = plain_part(self.layout).modes
        return str(element) if len(parts) == 1 else f"{element % parts[0].size},{element // parts[0].size}"


def coordinates_panel(
    grid: Grid, window: Window, itemsize: int, access: Access | None = None, tiles: Sequence[int] | None = None,
    banks: bool = False,
) -> Panel:  # fmt: skip
    """Index of each coordinate. Colours: the bank of its address, or its tile; owners: its lane, bank or tile.

    ``tiles``: the tile of each coordinate.
    """
    rows, columns = window.within(*grid.shape)
    pieces, table = grid.pieces(), indices(grid.layout)
    lanes = {lane.elements[0]: lane.number for lane in access.lanes} if access else {}
    cells = []
    for at_row, row in enumerate(rows):
        for at_column, column in enumerate(columns):
            run = grid.piece(row, column, pieces)
            index = table[run[0]]
            bank = index * itemsize // BANK_BYTES % BANKS
            tooltip = [f"{grid.coordinate(run[0])} → {index}" + (f" … {table[run[-1]]}" if len(run) > 1 else "")]
            lines, owner, colour = [str(index)], "", None
            if banks:
                tooltip.append(f"bank {bank}, byte {index * itemsize}")
                owner, colour = f"bank {bank}", colour_of_lane(bank)
            if tiles is not None:
                tile = tiles[run[0]]
                tooltip.append(f"tile {tile}")
                owner, colour = f"tile {tile}", colour_of_tile(tile)
            if access:
                lane = _lane(run, lanes)
                owner = "" if lane is None else f"lane {lane}"
                lines += [] if lane is None else [f"T{lane}"]
                tooltip += [] if lane is None else [f"thread {lane}"]
            element, marked = ("", bool(owner)) if access else (f"index {index}", False)
            place = at_row, at_column
            cells.append(Cell(*place, tuple(lines), "; ".join(tooltip), owner, element, colour, marked=marked))
    many = grid.together > 1
    title = f"coordinates: index of the first of {grid.together} elements" if many else "coordinates: index of each"
    labels = [_labels(part, grid.together if at == grid.mode else 1) for at, part in enumerate((rows, columns))]
    if grid.shape[0] == 1 and len(plain_part(grid.layout).modes) == 1:
        labels[1] = _labels(columns, grid.together)
    return Panel(
        title, labels[0], labels[1], tuple(cells), "",
        _changes(tiles, grid, pieces, rows, columns, 0), _changes(tiles, grid, pieces, rows, columns, 1),
    )  # fmt: skip


def _lane(run: tuple[int, ...], lanes: dict[int, int]) -> int | None:
    return next((lanes[element] for element in run if element in lanes), None)


def _labels(numbers: range, step: int) -> tuple[str, ...]:
    return tuple(str(number * step) for number in numbers)


def _changes(
    tiles: Sequence[int] | None, grid: Grid, pieces: Sequence[tuple[int, ...]], rows: range, columns: range, way: int
) -> frozenset[int]:
    """Rows (``way`` 0) or columns (1) at which some cell begins a new tile."""
    if tiles is None:
        return frozenset()
    table = [[tiles[grid.piece(row, column, pieces)[0]] for column in columns] for row in rows]
    lines = table if way == 0 else [list(column) for column in zip(*table, strict=True)]
    return frozenset(at for at in range(1, len(lines)) if lines[at] != lines[at - 1])


def memory_panel(grid: Grid, window: Window, itemsize: int, banks: bool) -> Panel | None:
    """Coordinate of each index of the drawn cells, in memory order; None if these indices are too sparse to draw."""
    rows, columns = window.within(*grid.shape)
    pieces, table = grid.pieces(), indices(grid.layout)
    found: dict[int, list[int]] = {}
    for column in columns:
        for row in rows:
            run = grid.piece(row, column, pieces)
            found.setdefault(table[run[0]] // grid.together, []).append(run[0])
    first, last = min(found), max(found)
    across = max(1, LINE_BYTES // (itemsize * grid.together)) if banks else min(last - first + 1, 16)
    first -= first % across
    lines = (last - first) // across + 1
    if across > MOST_COLUMNS or lines > MOST_ROWS or first < 0:
        return None
    cells = []
    for place, elements in sorted(found.items()):
        index = place * grid.together
        bank = index * itemsize // BANK_BYTES % BANKS
        at = (place - first) // across, (place - first) % across
        shown = grid.row_and_column(elements[0]) + ("…" if len(elements) > 1 else "")
        tooltip = f"{index} ← {', '.join(map(grid.coordinate, elements[:4]))}" + (f"; bank {bank}" if banks else "")
        owner, colour = (f"bank {bank}", colour_of_lane(bank)) if banks else ("", None)
        cells.append(Cell(*at, (shown,), tooltip, owner, f"index {index}", colour))
    step = across * grid.together
    labels = tuple(f"{(first * grid.together + line * step) * (itemsize if banks else 1)}" for line in range(lines))
    title = "shared memory: row,column at each place, 128 bytes a line" if banks else "memory: row,column at each index"
    heads = [at * grid.together * itemsize // BANK_BYTES if banks else at for at in range(across)]
    return Panel(title, labels, tuple(map(str, heads)), tuple(cells), "byte, bank" if banks else "")


def addresses_panel(access: Access) -> Panel:
    """The lanes that access each bank, by the 128-byte lines that they touch."""
    step = max(1, access.width // BANK_BYTES)
    places: dict[tuple[int, int], list[int]] = {}
    for lane in access.lanes:
        line, byte = divmod(lane.address, LINE_BYTES)
        places.setdefault((line, byte // (step * BANK_BYTES)), []).append(lane.number)
    lines = sorted({line for line, _ in places})
    cells = tuple(
        Cell(
            lines.index(line), column, (_threads(lanes),),
            f"bytes {line * LINE_BYTES + column * step * BANK_BYTES} and on, bank {_span(column * step, step)}: "
            f"{', '.join(f'T{lane}' for lane in lanes)}",
            f"lane {lanes[0]}", "", colour_of_lane(column * step),
        )
        for (line, column), lanes in sorted(places.items())
    )  # fmt: skip
    columns = tuple(_span(bank, step) for bank in range(0, BANKS, step))
    return Panel(
        "shared memory: thread at each address, 128 bytes a line", tuple(str(line * LINE_BYTES) for line in lines),
        columns, cells, "byte, bank",
    )  # fmt: skip


def wavefronts_panel(access: Access) -> Panel:
    """The thread that each bank serves, by wavefront."""
    step = max(1, access.width // BANK_BYTES)
    cells, labels, before = [], [], -1
    for row, wavefront in enumerate(access.wavefronts):
        again = wavefront.phase == before
        labels.append(f"{row + 1} conflict" if again else f"{row + 1}")
        before = wavefront.phase
        for bank in range(0, BANKS, step):
            lanes = wavefront.banks.get(bank, ())
            if lanes:
                tooltip = f"wavefront {row + 1}: bank {_span(bank, step)} serves {_threads(lanes)}"
                cells.append(
                    Cell(row, bank // step, (_threads(lanes),), tooltip, f"lane {lanes[0]}", "", colour_of_lane(bank))
                )
    columns = tuple(_span(bank, step) for bank in range(0, BANKS, step))
    count, ideal = len(access.wavefronts), access.ideal
    title = f"{count} wavefront{'s' * (count != 1)}; {ideal} without conflicts: thread that each bank serves"
    return Panel(title, tuple(labels), columns, tuple(cells), "bank")


def _span(bank: int, step: int) -> str:
    return str(bank) if step == 1 else f"{bank}–{bank + step - 1}"


def _threads(lanes: Sequence[int]) -> str:
    return f"T{lanes[0]}" if len(lanes) == 1 else f"T{lanes[0]}+{len(lanes) - 1}"


def fragment_panel(fragment: Fragment, window: Window) -> Panel:
    """Thread and value of each element."""
    rows, columns = window.within(fragment.rows, fragment.columns)
    owners = fragment.owners()
    cells = [
        _owned(row, column, owners[row, column], (at_row, at_column))
        for at_row, row in enumerate(rows)
        for at_column, column in enumerate(columns)
        if (row, column) in owners
    ]
    return Panel("elements: thread and value", _labels(rows, 1), _labels(columns, 1), tuple(cells))


def values_panel(fragment: Fragment, window: Window) -> Panel:
    """Row and column of each thread's values, for the elements of :func:`fragment_panel`."""
    rows, columns = window.within(fragment.rows, fragment.columns)
    shown = {at: owner for at, owner in fragment.owners().items() if at[0] in rows and at[1] in columns}
    threads = sorted({thread for thread, _ in shown.values()})
    values = sorted({value for _, value in shown.values()})
    cells = [
        _owned(row, column, owner, (threads.index(owner[0]), values.index(owner[1])), f"{row},{column}")
        for (row, column), owner in shown.items()
    ]
    labels = tuple(f"T{thread}" for thread in threads), tuple(f"V{value}" for value in values)
    return Panel("registers: row and column of each value", *labels, tuple(cells))


def _owned(row: int, column: int, owner: tuple[int, int], at: tuple[int, int], shown: str = "") -> Cell:
    thread, value = owner
    lines = (shown,) if shown else (f"T{thread}", f"V{value}")
    tooltip = f"({row},{column}): thread {thread}, value {value}"
    return Cell(*at, lines, tooltip, f"thread {thread}", f"element {row},{column}", colour_of_lane(thread))


def tile_numbers(layout: AnyLayout, tiles: Sequence[Layout]) -> list[int]:
    """By coordinate: the number of its tile, counted over modes, first mode fastest.

    ``tiles``: for each of the first modes, (coordinate in the tile, tile) → coordinate of the mode.
    """
    modes = plain_part(layout).modes
    by_mode: list[list[int]] = []
    for at, mode in enumerate(modes):
        numbers = [0] * mode.size
        if at < len(tiles):
            inside, outside = tiles[at].modes
            for which in range(outside.size):
                for place in range(inside.size):
                    coordinate = inside(place) + outside(which)
                    if coordinate < mode.size:
                        numbers[coordinate] = which
        by_mode.append(numbers)
    found = []
    for element in range(layout.size):
        tile, times, rest = 0, 1, element
        for numbers in by_mode:
            tile += times * numbers[rest % len(numbers)]
            times *= max(numbers) + 1
            rest //= len(numbers)
        found.append(tile)
    return found
