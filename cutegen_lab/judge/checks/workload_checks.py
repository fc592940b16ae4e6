"""Checks of one workload: as many draws as its device can afford."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from cutegen_lab.core.errors import Cancelled
from cutegen_lab.core.protocols import Say
from cutegen_lab.core.trial import WorkloadCheck
from cutegen_lab.judge.checks.case import Case
from cutegen_lab.judge.checks.overlapping import overlapping
from cutegen_lab.judge.draws.schedule import INSTRUCTION_LIMIT, affordable_draws, required_draws


@dataclass(frozen=True)
class Omitted:
    """Draws and workloads that were left out."""

    fewer_draws: list[str] = field(default_factory=list)
    """Names of workloads that got fewer draws."""
    not_run: list[str] = field(default_factory=list)
    """Draws or workloads that a verdict needs and that could not be run, in words."""


def draw_checks(
    case: Case, names: Sequence[str], seed: Callable[[], int], omitted: Omitted, say: Say
) -> Iterator[WorkloadCheck]:
    """Checks of the draws ``names`` of one workload: as many as ``case``'s device can afford, or all if only some
    blocks run. Draws left out are recorded in ``omitted``. Raises Cancelled."""
    count, what = len(names), case.workload.name if case.whole else f"some blocks of {case.workload.name}"

    def announced(some: Sequence[str]) -> Iterator[tuple[str, int]]:
        for name in some:
            if case.cancel.is_set():
                raise Cancelled()
            say(f"check {what} ({name})")
            yield name, seed()

    checks = [case.run(name, number, first=True) for name, number in announced(names[:1])]
    if checks and case.whole:
        alone = not case.problem.check_workloads
        count = affordable_draws(case.workload, names, case.device, case.executed, alone)
        if case.device.kind == "emulator" and count < (all_owed := required_draws(case.workload, names, alone)):
            omitted.not_run.append(_too_slow_note(case, count, all_owed))
    rest = announced(names[1:count])
    later = overlapping(case, rest) if case.overlaps else (case.run(*drawn, first=False) for drawn in rest)
    yield from (check for check in chain(checks, later) if check is not None)
    if count < len(names):
        omitted.fewer_draws.append(case.workload.name)


def _too_slow_note(case: Case, count: int, all_owed: int) -> str:
    name, spent = case.workload.name, case.executed.counters["warp_instructions"]
    return (
        f"more than {count} of {all_owed} draws of {name}, each of which takes {spent:,.0f} warp instructions "
        f"(affordable: {INSTRUCTION_LIMIT / all_owed:,.0f})"
    )
