"""The layouts of a candidate in a notebook: a table, and a picture of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from cutegen_lab.core.errors import InputError
from cutegen_lab.core.plain_text import one_line
from cutegen_lab.layouts.conflicts import ConflictingAccess
from cutegen_lab.layouts.traced import MadeLayout
from cutegen_lab.notebook.layout_magic import ShownPicture

_LINES = 4  # maximum number of source lines listed in a row of the table


class CandidateLayouts(Sequence[ShownPicture]):
    """``layouts[n]`` is the picture of row ``n`` of the table."""

    def __init__(self, made: Sequence[MadeLayout | ConflictingAccess], source: str) -> None:
        self.made = tuple(made)
        self._source = source.splitlines()

    def __len__(self) -> int:
        return len(self.made)

    def __getitem__(self, number: int) -> ShownPicture:  # type: ignore[override]
        """The picture of layout ``number``. Raises InputError if there is none."""
        if not isinstance(number, int) or not -len(self.made) <= number < len(self.made):
            raise InputError(f"there is no layout {number}", f"There are {len(self.made)}, counted from 0.")
        return ShownPicture(self.made[number].picture())

    def __iter__(self) -> Iterator[ShownPicture]:
        return (ShownPicture(made.picture()) for made in self.made)

    def __repr__(self) -> str:
        rows = [("", "layout", "what", "lines", ""), *self._rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(f"{word:{wide}}" for word, wide in zip(row, widths, strict=True)).rstrip() for row in rows
        )

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col">{name}</th>' for name in ("", "layout", "what", "lines", "text"))
        body = "".join(f"<tr>{''.join(f'<td>{escape(word)}</td>' for word in row)}</tr>" for row in self._rows())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _rows(self) -> list[tuple[str, str, str, str, str]]:
        return [
            (str(number), made.layout, made.what, self._lines(made), self._text(next(iter(made.lines), 0)))
            for number, made in enumerate(self.made)
        ]

    @staticmethod
    def _lines(made: MadeLayout | ConflictingAccess) -> str:
        named = ", ".join(map(str, made.lines[:_LINES]))
        return named if len(made.lines) <= _LINES else f"{named} and {len(made.lines) - _LINES} more"

    def _text(self, line: int) -> str:
        return one_line(self._source[line - 1])[:100] if 0 < line <= len(self._source) else ""
