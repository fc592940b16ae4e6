"""Bars of one candidate: bytes moved compared with compulsory bytes, and what limits its resident blocks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from cutegen_lab.profiles.records import Limit, MemoryBar, Registers, WhatIf
from cutegen_lab.views.plots.picture import CHARACTER, WIDTH, LogAxis, Picture, bar, drawable, path, svg, text
from cutegen_lab.views.plots.words import level_name, limited_by, memory_notes, moved_text, resource_name
from cutegen_lab.views.profile import tables_of

_ROW, _TOP = 22, 8
_LEFT, _BESIDE = 165, 170  # pixels of names to the left, and of numbers to the right


def memory_plot(records: Sequence[MemoryBar | Registers], candidate_id: str) -> Picture | None:
    """Bytes by level, with a mark at the compulsory bytes."""
    bars = [record for record in records if isinstance(record, MemoryBar) and drawable(record.nbytes)]
    if not bars:
        return None
    most = max(max(b.nbytes, b.compulsory_bytes or 0.0) for b in bars)
    several = len({b.source for b in bars}) > 1
    room, parts = WIDTH - _LEFT - _BESIDE, []
    for row, each in enumerate(bars):
        y = _TOP + _ROW * row
        name, width = level_name(each), room * each.nbytes / most
        parts.append(text(_LEFT - 8, y + 13, name, "end"))
        parts.append(bar(_LEFT, y + 3, width, 12, f"{name}: {moved_text(each)}", f"cg-{each.source}"))
        end = width
        if each.compulsory_bytes:
            end = max(end, at := room * each.compulsory_bytes / most)
            parts.append(path(f"M{_LEFT + at:.1f} {y}v18", "cg-must"))
        said = f"{moved_text(each)} ({each.source})" if several else moved_text(each)
        parts.append(text(_LEFT + end + 8, y + 13, said, kind="cg-value"))
    title = f"Memory of {candidate_id}: bytes moved (bar), compulsory bytes (red mark)"
    return Picture(
        title, svg(title, _TOP + _ROW * len(bars) + 4, parts), tables_of(records), "; ".join(memory_notes(records))
    )


def occupancy_plot(records: Sequence[Limit | WhatIf], candidate_id: str, most_warps: int) -> Picture | None:
    """Blocks per multiprocessor that each resource allows, for each kernel, on a logarithmic scale."""
    limits = [record for record in records if isinstance(record, Limit)]
    if not limits:
        return None
    axis = LogAxis(0.7, max(2, *(limit.blocks for limit in limits)), _LEFT, WIDTH - 60)
    y, parts, said = float(_TOP), [], []
    for kernel, group in groupby(limits, lambda limit: limit.kernel):
        now = next(r for r in records if isinstance(r, WhatIf) and r.kernel == kernel and r.current)
        said.append(f"{kernel}: {now.resident_warps} of {most_warps} warps per multiprocessor "
                    f"({now.resident_warps / most_warps:.0%})")  # fmt: skip
        parts.append(text(_LEFT - 8, y + 13, f"{kernel}, blocks by"[: int(_LEFT / CHARACTER)], "end"))
        for limit in group:
            y += _ROW
            parts.append(text(_LEFT - 8, y + 13, resource_name(limit), "end", "cg-value" if limit.limits else ""))
            width = axis.at(limit.blocks) - _LEFT if limit.blocks else 0.0
            kind = "cg-limit" if limit.limits else "cg-dot"
            parts.append(bar(_LEFT, y + 3, width, 12, f"{limit.resource}: {limit.blocks} blocks", kind))
            parts.append(text(_LEFT + width + 6, y + 13, str(limit.blocks), kind="cg-value"))
        y += _ROW
    title = f"Occupancy of {candidate_id}: blocks per multiprocessor that each resource allows (► fewest)"
    note = "; ".join([*said, limited_by(limits)])
    return Picture(title, svg(title, y + 4, parts), tables_of(limits), note)
