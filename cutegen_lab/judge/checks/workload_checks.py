"""Checks of one workload: as many draws as its device can afford."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from cutegen_lab.core.errors import Cancelled
from cutegen_lab.core.protocols import Say
from cutegen_lab.core.trial import WorkloadCheck
from cutegen_lab.judge.checks.case import Case
from cutegen_lab.judge.draws.schedule import TOO_MANY, affordable, owed


@dataclass(frozen=True)
class LeftOut:
    """Workloads that were checked less than fully."""

    fewer: list[str] = field(default_factory=list)
    """Names of workloads that got fewer draws."""
    untold: list[str] = field(default_factory=list)
    """What would have to run for a verdict, in words."""


def checks_of(
    case: Case, names: Sequence[str], seed: Callable[[], int], left: LeftOut, say: Say
) -> Iterator[WorkloadCheck]:
    """Checks of the draws ``names`` of one workload: as many as ``case``'s device can afford, or all if only some
    blocks run. Draws left out are recorded in ``left``. Raises Cancelled."""
    count, what = len(names), case.workload.name if case.whole else f"some blocks of {case.workload.name}"
    for number, distribution in enumerate(names):
        if case.cancel.is_set():
            raise Cancelled()
        if number >= count:
            left.fewer.append(case.workload.name)
            return
        say(f"check {what} ({distribution})")
        check = case.run(distribution, seed(), first=number == 0)
        if number == 0 and case.whole:
            alone = not case.problem.check_workloads
            count = affordable(case.workload, names, case.device, case.executed, alone)
            if case.device.kind == "emulator" and count < (all_owed := owed(case.workload, names, alone)):
                left.untold.append(_too_slow(case, count, all_owed))
        if check is not None:
            yield check


def _too_slow(case: Case, count: int, all_owed: int) -> str:
    name, spent = case.workload.name, case.executed.counters["warp_instructions"]
    return (
        f"more than {count} of {all_owed} draws of {name}, each of which takes {spent:,.0f} warp instructions, where "
        f"{TOO_MANY / all_owed:,.0f} are affordable"
    )
