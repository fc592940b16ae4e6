"""Faults of a kernel that static analysis finds."""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_lab.core.artifact import Build, Launch
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.analysis import address_use
from cutegen_lab.emulator.faults import Unsupported
from cutegen_lab.emulator.program import Program, load

_POLLED = (
    "counts its polls, which measures time: a result may not depend on time. Do nothing else in the loop that polls"
)


def examined(build: Build, tensors: Sequence[str]) -> Fault | None:
    """:func:`misused` for every launch, without running any; UNSUPPORTED if the emulator cannot read one and the others
    have no fault. ``tensors`` are their names."""
    unread: Fault | None = None
    for launch in build.plan.launches:
        try:
            if fault := misused(load(build.ptx, launch.kernel), launch, build, tensors):
                return fault
        except (Unsupported, MemoryError) as error:
            unread = unread or Fault(Verdict.UNSUPPORTED, str(error) or "too much memory", launch.kernel)
    return unread


def misused(program: Program, launch: Launch, build: Build, tensors: Sequence[str]) -> Fault | None:
    """The first use of something that a result may not depend on: an address, or time."""
    if found := address_use.objection(program, launch):
        return _fault(found.text(tensors), found.instruction, launch, build)
    if polled := program.polled:
        return _fault(_POLLED, polled, launch, build)
    return None


def _fault(message: str, instruction: ptx.Instruction, launch: Launch, build: Build) -> Fault:
    line = build.source_line(instruction.line)
    return Fault(Verdict.CONTRACT, message, launch.kernel, line=line, instruction=instruction.text)
