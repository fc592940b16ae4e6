"""Pictures as SVG and HTML without scripts.

A picture has a title, a description, and its tables as text. Groups of cells are highlighted under the pointer by CSS
only; without CSS the picture still shows. It uses JupyterLab's colours if there are any, else those of a light or dark
page.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from string import Template
from textwrap import wrap

from cutegen_lab.core.plain_text import one_line, plain
from cutegen_lab.layouts.palette import MUTED, PAGE, TEXT, fill
from cutegen_lab.layouts.picture import Cell, Panel, Picture

_FONT = 11
_CHARACTER = 6.7  # width of a monospace character in pixels
_LINE = 13
_GAP = 26  # between panels, and around them
_BESIDE = 1500  # maximum width in pixels of panels next to each other
_STYLE = Template("""\
.cgl{--cgl-page:var(--jp-layout-color0,$page);--cgl-text:var(--jp-content-font-color1,$text);\
--cgl-muted:var(--jp-content-font-color2,$muted)}
@media (prefers-color-scheme:dark){.cgl{--cgl-page:var(--jp-layout-color0,$dark_page);\
--cgl-text:var(--jp-content-font-color1,$dark_text);--cgl-muted:var(--jp-content-font-color2,$dark_muted)}}
.cgl .p{fill:$page;fill:var(--cgl-page)}.cgl text{fill:$text;fill:var(--cgl-text)}
.cgl .m{fill:$muted;fill:var(--cgl-muted)}.cgl .t{text-anchor:middle}.cgl .r{text-anchor:end}
.cgl .b{font-weight:bold}.cgl .h{font-size:13px}
.cgl .l{stroke:$text;stroke:var(--cgl-text);stroke-width:2}
.cgl .c{fill:none;pointer-events:all;stroke:$muted;stroke:var(--cgl-muted);stroke-opacity:.35}
.cgl .a{stroke:$text;stroke:var(--cgl-text);stroke-opacity:1;stroke-width:1.6}
.cgl .o:hover .c{stroke:var(--cgl-text);stroke-opacity:.8;stroke-width:2}
.cgl .e:hover .c{stroke:var(--cgl-text);stroke-opacity:1;stroke-width:3}""").substitute(
    page=PAGE[0], text=TEXT[0], muted=MUTED[0], dark_page=PAGE[1], dark_text=TEXT[1], dark_muted=MUTED[1]
)


_SHOWN = ".cgl-inline{display:block!important;overflow-x:auto}.cgl-still{display:none!important}"


@dataclass(frozen=True)
class _Place:
    """Where a panel is drawn, in pixels: its corner, the width of its headings, and the size of its cells."""

    panel: Panel
    x: float
    y: float
    heading: float
    wide: float
    high: float

    @property
    def width(self) -> float:
        return max(self.heading + self.wide * len(self.panel.columns), _CHARACTER * len(self.panel.title))

    @property
    def height(self) -> float:
        return 2 * _LINE + 10 + self.high * len(self.panel.rows)

    def at(self, row: float, column: float) -> tuple[float, float]:
        return self.x + self.heading + column * self.wide, self.y + 2 * _LINE + 10 + row * self.high


def svg(picture: Picture) -> str:
    """The whole picture, with ``<title>`` and ``<desc>``."""
    name = f"cgl-{sha256(repr(picture).encode()).hexdigest()[:12]}"
    notes = [line for note in picture.notes for line in wrap(plain(note), 110)]
    places, width, height = _placed(picture.panels, top=36 + _LINE * 1.3 * (1 + len(notes)))
    width = max(width, *(_CHARACTER * len(line) + 2 * _GAP for line in (picture.title, *notes)))
    head = [_text(_GAP, 26, picture.title, kind="h b")]
    head += [_text(_GAP, 26 + _LINE * 1.3 * at, line, kind="m") for at, line in enumerate(notes, 1)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="cgl" role="img" aria-labelledby="{name}-t {name}-d" '
        f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'font-family="ui-monospace,Menlo,Consolas,DejaVu Sans Mono,monospace" font-size="{_FONT}">'
        f'<title id="{name}-t">{_escaped(picture.title)}</title><desc id="{name}-d">{_escaped(picture.summary)}</desc>'
        f'<style>{_STYLE}{_colours(picture)}</style><rect class="p" width="100%" height="100%"/>'
        f"{''.join(head)}{''.join(map(_headings, places))}{_cells(places)}{''.join(map(_tile_lines, places))}</svg>\n"
    )


def _colours(picture: Picture) -> str:
    """CSS rules of the picture's colours."""
    used = sorted({cell.colour for panel in picture.panels for cell in panel.cells if cell.colour is not None})
    rules = ((number, *fill(number)) for number in used)
    return "".join(f".cgl .k{number}{{fill:{hue};fill-opacity:{strength:g}}}" for number, hue, strength in rules)


def html(picture: Picture) -> str:
    """The inline picture, with highlights, and its tables below, folded.

    JupyterLab drops SVG and style tags from an untrusted notebook, but keeps their text. So the inline picture is
    hidden unless the style is kept, which shows it and hides the fallback image.
    """
    drawn = svg(picture)
    still = b64encode(drawn.encode()).decode()
    tables = "".join(f"<p>{_escaped(panel.title)}</p>{_table(panel)}" for panel in picture.panels)
    return (
        f"<style>{_SHOWN}</style>"
        f'<div class="cgl-inline" hidden="hidden" style="display:none">{drawn}</div>'
        f'<img class="cgl-still" alt="{_escaped(picture.summary)}" src="data:image/svg+xml;base64,{still}">'
        f"<details><summary>{_escaped(picture.title)}, as a table</summary>{tables}</details>"
    )


def _placed(panels: Sequence[Panel], top: float) -> tuple[list[_Place], float, float]:
    """Panels next to each other while they fit, and the size of all."""
    found: list[_Place] = []
    x, y, widest, lowest = float(_GAP), top, 0.0, top
    for panel in panels:
        columns = [cell for cell in panel.cells if cell.span == 1] or panel.cells
        longest = max((len(line) for cell in columns for line in cell.lines), default=1)
        wide = max(24, _CHARACTER * max(longest, *map(len, panel.columns)) + 6)
        high = max(20, _LINE * max((len(cell.lines) for cell in panel.cells), default=1) + 6)
        heading = _CHARACTER * max(len(panel.corner), *map(len, panel.rows)) + 8
        place = _Place(panel, x, y, heading, wide, high)
        if found and x + place.width > _BESIDE:
            x, y = float(_GAP), lowest + _GAP
            place = _Place(panel, x, y, heading, wide, high)
        found.append(place)
        x += place.width + 1.5 * _GAP
        widest, lowest = max(widest, place.x + place.width), max(lowest, y + place.height)
    return found, widest + _GAP, lowest + _GAP


def _headings(place: _Place) -> str:
    panel = place.panel
    parts = [_text(place.x, place.y, panel.title, kind="b")]
    x, y = place.at(0, 0)
    parts.append(_text(x - 5, y - 5, panel.corner, kind="m r"))
    for at, label in enumerate(panel.columns):
        parts.append(_text(place.at(0, at + 0.5)[0], y - 5, label, kind="m t"))
    for at, label in enumerate(panel.rows):
        parts.append(_text(x - 5, place.at(at + 0.5, 0)[1] + 4, label, kind="m r"))
    return "".join(parts)


def _cells(places: Iterable[_Place]) -> str:
    """Cells of all panels, grouped by owner and then by element."""
    owners: dict[str, dict[str, list[str]]] = {}
    for place in places:
        for cell in place.panel.cells:
            owners.setdefault(cell.owner, {}).setdefault(cell.element, []).append(_cell(place, cell))
    written = []
    for owner, elements in owners.items():
        inside = "".join(
            f'<g class="e">{"".join(cells)}</g>' if element else "".join(cells) for element, cells in elements.items()
        )
        written.append(f'<g class="o">{inside}</g>' if owner else f"<g>{inside}</g>")
    return "".join(written)


def _cell(place: _Place, cell: Cell) -> str:
    x, y = place.at(cell.row, cell.column)
    wide = place.wide * cell.span
    kind = "c" + " a" * cell.marked + (f" k{cell.colour}" if cell.colour is not None else "")
    box = f'<rect class="{kind}" x="{x + 1:g}" y="{y + 1:g}" width="{wide - 2:g}" height="{place.high - 2:g}"/>'
    first = y + place.high / 2 + 4 - _LINE * (len(cell.lines) - 1) / 2
    texts = (
        _text(x + wide / 2, first + _LINE * at, line, kind="t" if at or len(cell.lines) == 1 else "t b")
        for at, line in enumerate(cell.lines)
        if line
    )
    return f"<g><title>{_escaped(cell.tooltip)}</title>{box}{''.join(texts)}</g>"


def _tile_lines(place: _Place) -> str:
    panel = place.panel
    ends = place.at(len(panel.rows), len(panel.columns))
    lines = [(*place.at(row, 0), ends[0], place.at(row, 0)[1]) for row in sorted(panel.row_lines)]
    lines += [(*place.at(0, column), place.at(0, column)[0], ends[1]) for column in sorted(panel.column_lines)]
    return "".join(f'<line class="l" x1="{a:g}" y1="{b:g}" x2="{c:g}" y2="{d:g}"/>' for a, b, c, d in lines)


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    """A text element. ``kind``: CSS classes: b bold, h the heading, m muted, t centred, r ends at ``x``."""
    chosen = f' class="{kind}"' if kind else ""
    return f'<text{chosen} x="{x:g}" y="{y:g}">{_escaped(text)}</text>'


def _table(panel: Panel) -> str:
    head, *rows = panel.text()
    columns = "".join(f'<th scope="col">{_escaped(label)}</th>' for label in head)
    body = "".join(
        f'<tr><th scope="row">{_escaped(row[0])}</th>{"".join(f"<td>{_escaped(word)}</td>" for word in row[1:])}</tr>'
        for row in rows
    )
    return f"<table><thead><tr>{columns}</tr></thead><tbody>{body}</tbody></table>"


def _escaped(text: str) -> str:
    return escape(one_line(text))
