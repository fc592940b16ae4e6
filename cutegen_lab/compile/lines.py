"""From PTX ``.loc`` directives to lines of the candidate."""

from __future__ import annotations

import re
from pathlib import PurePath

from cutegen_lab.core.artifact import SourceLine

_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.M)
_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)\s+\d+(?:.*?inlined_at\s+(\d+)\s+(\d+))?")


def source_lines(ptx: str, path: str) -> tuple[SourceLine, ...]:
    """The ``.loc`` table for the candidate's file, by its base name (PTX ISA §11.5.3).

    Code the DSL's own library contributes keeps the candidate line it was called from.
    """
    own = {int(m[1]) for m in _FILE.finditer(ptx) if PurePath(m[2]).name == PurePath(path).name}
    table: list[SourceLine] = []
    for number, text in enumerate(ptx.splitlines(), start=1):
        match = _LOC.match(text)
        if not match:
            continue
        if int(match[1]) in own:
            line = int(match[2])
        elif match[3] and int(match[3]) in own:
            line = int(match[4])
        else:
            continue
        if line and (not table or table[-1].line != line):
            table.append(SourceLine(number, line))
    return tuple(table)
