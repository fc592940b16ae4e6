"""PTX split into code and the rest: comments, debug information and strings.

PTX ISA 9.0: 4.1 "Source Format", 4.2 "Comments", 4.4 "Identifiers", 11.4 ".pragma", 11.5 "Debugging Directives".

PTX that two readers could read differently is refused. The code that is left is assembled again
(:mod:`cutegen_lab.compile.reassemble`), so that the machine code matches the text which the emulator executes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache

# Beginnings of comments, strings and debugging directives, and characters that PTX code does not contain.
_NOT_CODE = re.compile(r"""/[/*]|"|(?<![\w$%.])\.(?:loc|file|section|pragma)\b|[^\t\n -~]|[#\\`'?]""")
_SPACE = r"[ \t]*"
_END_OF_LINE = r"(?=[ \t]*(?://[^\n]*)?(?:\n|\Z))"
_NAME = r'"[a-z_]+(?: (?:\d+|0x[0-9a-f]+))?"'
_USED_BYTES = re.compile(r'"used_bytes_mask (0x[0-9a-f]+|\d+)"')
_DIRECTIVES = {
    ".file": re.compile(
        rf'\.file[ \t]+(\d{{1,9}})[ \t]+"([^"\\\n]*)"(?:{_SPACE},{_SPACE}\d+{_SPACE},{_SPACE}\d+)?{_END_OF_LINE}'
    ),
    ".loc": re.compile(
        r"\.loc[ \t]+(\d{1,9})[ \t]+(\d{1,9})[ \t]+\d{1,9}"
        rf"(?:{_SPACE},{_SPACE}function_name[ \t]+[\w$]+(?:{_SPACE}\+{_SPACE}\d+)?"
        rf"{_SPACE},{_SPACE}inlined_at[ \t]+(\d{{1,9}})[ \t]+(\d{{1,9}})[ \t]+\d{{1,9}})?{_END_OF_LINE}"
    ),
    ".pragma": re.compile(rf"\.pragma[ \t]+{_NAME}(?:{_SPACE},{_SPACE}{_NAME})*{_SPACE};"),
    ".section": re.compile(r"\.section[ \t]+\.debug_\w+\s*\{[\w\s.,$+\-]*\}"),
}
_BLANKED = re.compile(r"[^\n]")


class PtxError(ValueError):
    """PTX that is not accepted. ``line`` counts from 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(f"line {line} of the PTX {message}")
        self.line = line


@dataclass(frozen=True)
class Place:
    """One ``.loc``: the source position of the PTX from a line on."""

    ptx_line: int
    """First PTX line it holds for, from 1."""
    file: int
    """Number of the source file."""
    line: int
    """Line of that file."""
    called_in: int = 0
    """For inlined code: number of the file that called it; 0 otherwise."""
    called_at: int = 0
    """For inlined code: line of that call; 0 otherwise."""


@dataclass(frozen=True)
class PtxText:
    """PTX split into code and debug information."""

    code: str
    """Code alone: comments, strings and directives are blanked, line numbers kept."""
    listing: str
    """Code with its debug directives."""
    files: dict[int, str]
    """Source files by number, from ``.file``."""
    places: tuple[Place, ...]
    """Source positions, by PTX line."""
    used_bytes: tuple[tuple[int, int], ...] = ()
    """Of each used_bytes_mask pragma: its character offset and mask, whose bit i says that the next load's byte i is
    used (PTX ISA 9.0, 11.4)."""


def code(ptx: str) -> str:
    """``ptx`` without comments and debug information, line by line. Raises PtxError."""
    return read(ptx).code


@lru_cache(maxsize=16)
def read(ptx: str) -> PtxText:
    """``ptx`` split in one pass, in time linear in its length. Raises PtxError for a comment or string without an end,
    a string or directive that is not in the form of PTX ISA, and characters that PTX code does not contain."""
    newlines = [match.start() for match in re.finditer("\n", ptx)]

    def line(position: int) -> int:
        return bisect_right(newlines, position - 1) + 1

    code: list[str] = []
    listing: list[str] = []
    files: dict[int, str] = {}
    places: list[Place] = []
    used_bytes: list[tuple[int, int]] = []
    done = 0
    while special := _NOT_CODE.search(ptx, done):
        what, start = special[0], special.start()
        code.append(ptx[done:start])
        listing.append(ptx[done:start])
        if what in ("//", "/*"):
            mark, beyond = ("\n", 0) if what == "//" else ("*/", 2)
            end = ptx.find(mark, start + 2)
            if end < 0 and what == "/*":
                raise PtxError("begins a comment that does not end", line(start))
            done = end + beyond if end >= 0 else len(ptx)
        elif what in _DIRECTIVES:
            found = _DIRECTIVES[what].match(ptx, start)
            if found is None:
                raise PtxError(f"has a {what} that is not in the form of PTX ISA", line(start))
            if what == ".file":
                files[int(found[1])] = found[2]
            elif what == ".loc":
                numbers = (int(number or 0) for number in found.groups())
                places.append(Place(line(start), *numbers))
            elif what == ".pragma":
                used_bytes += [(start, int(mask, 0)) for mask in _USED_BYTES.findall(found[0])]
            done = found.end()
        else:
            raise PtxError(f"holds {what!r}, which PTX code does not contain", line(start))
        blank = _BLANKED.sub(" ", ptx[start:done])
        code.append(blank)
        listing.append(ptx[start:done] if what in _DIRECTIVES else blank)
    rest = ptx[done:]
    whole, listed = "".join([*code, rest]), "".join([*listing, rest])
    return PtxText(whole, listed, files, tuple(places), tuple(used_bytes))
