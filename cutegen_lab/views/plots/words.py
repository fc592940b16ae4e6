"""Texts of plots about their records, the same in a notebook, the widget and a page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from cutegen_lab.profiles.records import CheckCell, Limit, MemoryBar, Registers, RooflinePoint
from cutegen_lab.views.units import significant, size

BYTES_COUNTED: Mapping[str, str] = {"compulsory": "by compulsory bytes", "moved": "by bytes moved from L2"}
"""The bytes with which a roofline's intensities are computed."""
_SHORT = {"blocks per multiprocessor": "the GPU"}


def roofline_note(points: Sequence[RooflinePoint]) -> str:
    basis = " and ".join(dict.fromkeys(p.basis for p in points))
    return f"times are {basis}; a lane's fp32 instruction is one operation"


def level_name(bar: MemoryBar) -> str:
    """``L2 to SMs, read``."""
    return f"{bar.level}, {bar.part}"


def moved_text(bar: MemoryBar) -> str:
    """Bytes moved, and their ratio to the compulsory bytes."""
    more = f", {significant(bar.nbytes / bar.compulsory_bytes)} × compulsory" if bar.compulsory_bytes else ""
    return size(bar.nbytes) + more


def memory_notes(records: Sequence[MemoryBar | Registers]) -> list[str]:
    """Registers and spills of each kernel, and what the emulator does not know."""
    notes = [_registers(record) for record in records if isinstance(record, Registers)]
    if any(isinstance(record, MemoryBar) and record.source == "emulator" for record in records):
        notes.append("the emulator assumes that repeated reads of DRAM hit L2")
    return notes


def _registers(record: Registers) -> str:
    """``row_kernel: 48 registers per thread, none spilled``."""
    spilled = f"{record.spill_bytes:,} bytes of spills" if record.spill_bytes else "none spilled"
    return f"{f'{record.kernel}: ' if record.kernel else ''}{record.registers} registers per thread, {spilled}"


def resource_name(limit: Limit) -> str:
    """Short name of a resource, marked if no other allows fewer blocks."""
    return f"{'►' if limit.limits else ''}{_SHORT.get(limit.resource, limit.resource)}"


def limited_by(limits: Sequence[Limit]) -> str:
    """What limits each kernel."""
    by: dict[str, list[str]] = {}
    for limit in limits:
        by.setdefault(limit.kernel, []).extend([limit.resource] if limit.limits else [])
    return "; ".join(f"{kernel} is limited by {' and '.join(names)}" for kernel, names in by.items())


def checks_note(cells: Sequence[CheckCell]) -> str:
    failed = sum(cell.failed for cell in cells)
    return f"largest error relative to its limit: {failed} of {sum(cell.checks for cell in cells)} checks failed (✗)"


def cell_text(cell: CheckCell | None) -> str:
    """The largest error as a share of the allowed error, with a cross if a check failed; empty without a check."""
    if cell is None:
        return ""
    share = cell.error_over_budget
    number = "" if share is None else f"{share:.0%}" if share < 10 else f"{share:.0e}×" if math.isfinite(share) else "∞"
    return " ".join(filter(None, ("✗" if cell.failed else "", number))) or "✓"


def cell_told(cell: CheckCell | None) -> str:
    """The tooltip of a cell."""
    if cell is None:
        return ""
    return f"{cell.checks - cell.failed} of {cell.checks} passed, error {cell_text(cell)} of the allowed error"
