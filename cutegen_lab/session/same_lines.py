"""Which lines of two texts are the same: those that compile to the same instructions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from cutegen_lab.core.artifact import Build


def same_lines(general: str, specialised: str, builds: Iterable[tuple[Build, Build]]) -> dict[int, int]:
    """Line of ``general`` (from 1) → line of ``specialised``. ``builds`` are pairs of the same PTX, built
    from either text: lines with the same instructions match. A line without instructions matches the line with the
    same text, if either text has it once."""
    counted = dict[int, Counter[int]]()
    for old, new in builds:
        for before, now in zip(_lines(old), _lines(new), strict=False):
            if before and now:
                counted.setdefault(before, Counter())[now] += 1
    found = _once_in_both(general, specialised)
    return dict(sorted({**found, **{line: counts.most_common(1)[0][0] for line, counts in counted.items()}}.items()))


def ptx_lines(build: Build) -> Iterator[tuple[str, int | None]]:
    """Lines of a build's PTX up to its debug sections, without ``.loc`` and ``.file``, each with the candidate's line:
    0 for an instruction without one, None for other lines."""
    begins = {each.ptx_line: each.line for each in build.lines}
    line = 0
    for number, text in enumerate(build.ptx.partition(".section\t.debug")[0].splitlines(), 1):
        line = begins.get(number, line)
        code = text.partition("//")[0].strip()
        if not code.startswith((".loc", ".file")):
            yield text, line if code.endswith(";") and not code.startswith(".") else None


def _lines(build: Build) -> list[int]:
    return [line for _, line in ptx_lines(build) if line is not None]


def _once_in_both(general: str, specialised: str) -> dict[int, int]:
    places = [_places(text) for text in (general, specialised)]
    both = places[0].keys() & places[1].keys()
    return {places[0][text]: places[1][text] for text in both}


def _places(text: str) -> dict[str, int]:
    """Stripped line → its number, for lines that occur once."""
    lines = [line.strip() for line in text.splitlines()]
    counts = Counter(lines)
    return {line: number for number, line in enumerate(lines, 1) if line and counts[line] == 1}
