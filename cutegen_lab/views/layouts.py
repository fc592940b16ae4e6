"""The layouts of a candidate in the widget, as answers to queries."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import prod

from cutegen_lab.core.errors import InputError
from cutegen_lab.core.plain_text import one_line
from cutegen_lab.layouts.conflicts import ConflictingAccess
from cutegen_lab.layouts.drawing import svg
from cutegen_lab.layouts.traced import MadeLayout
from cutegen_lab.views.model import View

_TEXT = 100  # maximum number of characters of a line


class LayoutView(View):
    """One layout. ``lines``: line numbers in the text that is shown; ``text``: the text of the first of these lines."""

    layout: str
    what: str
    lines: list[int]
    text: str


class LayoutsView(View):
    """The layouts that a candidate makes and uses. ``opens_at``: number of the one to show first."""

    candidate_id: str
    layouts: list[LayoutView]
    opens_at: int = 0


class LayoutTable(View):
    """A panel of a picture as text: the first row and the first column are headings."""

    title: str
    rows: list[list[str]]


class LayoutPicture(View):
    """Layout ``number`` of a candidate, as a drawing and as tables."""

    candidate_id: str
    number: int
    title: str
    svg: str
    tables: list[LayoutTable]


def layouts_view(
    candidate_id: str, made: Sequence[MadeLayout | ConflictingAccess], source: str, lines: Mapping[int, int] | None
) -> LayoutsView:
    """``made`` as a view. ``source``: the text that is shown. ``lines`` maps lines of the traced text to lines of
    ``source``, if the two texts differ; lines that ``source`` does not have are left out."""
    text = source.splitlines()

    def shown(one: MadeLayout | ConflictingAccess) -> LayoutView:
        places = sorted({line if lines is None else lines.get(line, 0) for line in one.lines} - {0})
        first = text[places[0] - 1] if places and places[0] <= len(text) else ""
        return LayoutView(layout=one.layout, what=one.what, lines=places, text=one_line(first.strip())[:_TEXT])

    telling = sorted(range(len(made)), key=lambda at: _tells(made[at]), reverse=True)
    opens_at = next((at for at in telling if _drawable(made[at])), 0)
    return LayoutsView(candidate_id=candidate_id, layouts=[shown(one) for one in made], opens_at=opens_at)


def _drawable(one: MadeLayout | ConflictingAccess) -> bool:
    try:
        one.picture()
    except InputError:  # too large
        return False
    return True


def _tells(one: MadeLayout | ConflictingAccess) -> tuple[int, int]:
    """The greater, the more a picture of it says: bank conflicts, then tiled copies and operands of tensor cores, then
    swizzles and TMA boxes, then the layout of the most elements."""
    if isinstance(one, ConflictingAccess):
        return 4, 0
    rank = {"tensor-core operand": 3, "tiled copy": 3, "TMA box": 2}.get(one.kind, 1)
    extents = one.layout.rpartition(" o ")[2].partition(":")[0]
    return max(rank, 2 * one.layout.startswith("Sw<")), prod(map(int, re.findall(r"\d+", extents)))


def layout_picture(candidate_id: str, number: int, made: MadeLayout | ConflictingAccess) -> LayoutPicture:
    """``made`` as a drawing and as tables. Raises InputError if it is too large to draw."""
    picture = made.picture()
    tables = [LayoutTable(title=panel.title, rows=panel.text()) for panel in picture.panels]
    return LayoutPicture(
        candidate_id=candidate_id, number=number, title=picture.title, svg=svg(picture), tables=tables
    )  # fmt: skip
