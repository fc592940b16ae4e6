"""Maps PTX ``.loc`` directives to lines of the candidate."""

from __future__ import annotations

from pathlib import PurePath

from cutegen_lab.core import ptx_text
from cutegen_lab.core.artifact import SourceLine


def source_lines(ptx: str, path: str) -> tuple[SourceLine, ...]:
    """The ``.loc`` table for the candidate's file, found by its base name (PTX ISA §11.5.3). Raises PtxError.

    Code from the DSL's library keeps the candidate line that called it.
    """
    text = ptx_text.read(ptx)
    own = {number for number, name in text.files.items() if PurePath(name).name == PurePath(path).name}
    table: list[SourceLine] = []
    for place in text.places:
        line = place.line if place.file in own else place.called_at if place.called_in in own else 0
        if line and (not table or table[-1].line != line):
            table.append(SourceLine(place.ptx_line, line))
    return tuple(table)
