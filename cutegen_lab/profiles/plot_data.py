"""Data of plots, selected from a run's rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from cutegen_lab.core.counters import STALLS
from cutegen_lab.core.predicted import named_terms
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.core.trial import draw_kind
from cutegen_lab.profiles.records import (
    Basis,
    CheckCell,
    Limit,
    MemoryBar,
    MixShare,
    Registers,
    Stall,
    TermBar,
    TimeSample,
    WhatIf,
    WholeTime,
)
from cutegen_lab.profiles.residency import by_registers, by_smem, taken_of
from cutegen_lab.profiles.row import Row, Source
from cutegen_lab.profiles.rows import CANDIDATE

WAVEFRONT_BYTES = 128
"""Maximum bytes that one wavefront moves through shared memory."""
_CLASS = "warp_instructions_"
_LEAST_SHARE = 0.01  # minimum share of a class of instructions that is shown by its name
_OTHER = "other"


def by_candidate(rows: Iterable[Row]) -> Mapping[str, Sequence[Row]]:
    """Rows of each candidate, in the order of the run."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.candidate:
            found[row.candidate].append(row)
    return found


def own(rows: Iterable[Row], candidate: str) -> list[Row]:
    """Rows of a candidate and of the problem."""
    return [row for row in rows if row.candidate in ("", candidate)]


def counters(rows: Iterable[Row], candidate: str, source: Source = "emulator") -> dict[str, float]:
    """Counters of a call with all its launches, by name."""
    of = [r for r in rows if (r.candidate, r.source, r.subject) == (candidate, source, "")]
    whole = [r for r in of if not r.kernel] or of
    return {r.metric: r.value for r in whole}


def time_of(rows: Iterable[Row], candidate: str) -> tuple[float, Basis] | None:
    """(microseconds, basis) of a candidate: measured if it was timed, else predicted; None if neither is known."""
    times = {r.source: r.value for r in rows if (r.candidate, r.subject, r.metric) == (candidate, CANDIDATE, "time")}
    if "timer" in times:
        return times["timer"], "measured"
    return (times["emulator"], "predicted") if "emulator" in times else None


def of_the_problem(rows: Iterable[Row], metric: str) -> float:
    """A number that holds for every candidate; 0 if it is not known."""
    return next((r.value for r in rows if not r.candidate and r.metric == metric), 0.0)


def terms(rows: Sequence[Row], candidate: str) -> list[TermBar]:
    """Terms of the predicted time, the longest first; the launch last."""
    found = {r.subject: r.value for r in rows if (r.candidate, r.metric) == (candidate, "term")}
    return [TermBar(*term) for term in named_terms(found)]


def whole_times(rows: Sequence[Row], candidate: str) -> list[WholeTime]:
    """Speed of light, and the candidate's time."""
    found = [WholeTime("speed of light", of_the_problem(rows, "speed_of_light"))]
    if (time := time_of(rows, candidate)) is not None:
        found.append(WholeTime(time[1], time[0]))
    return [time for time in found if time.time_us]


def memory(rows: Sequence[Row], candidate: str) -> list[MemoryBar]:
    """Bytes by level, read and written, with the compulsory ones. Levels that moved nothing are left out."""
    read, written = (of_the_problem(rows, f"compulsory_bytes_{way}") for way in ("read", "written"))
    found = []
    for source in ("emulator", "ncu"):
        counted = counters(rows, candidate, source)
        wavefronts, conflicts = (WAVEFRONT_BYTES * counted.get(f"shared_{x}", 0.0) for x in ("wavefronts", "conflicts"))
        for level, part, nbytes, least in (
            ("DRAM", "read", counted.get("dram_load_bytes", 0.0), read),
            ("DRAM", "written", counted.get("dram_store_bytes", 0.0), written),
            ("L2 to SMs", "read", _sectors(counted, "load"), read),
            ("L2 to SMs", "written", _sectors(counted, "store"), written),
            ("shared memory", "wavefronts", wavefronts - conflicts, None),
            ("shared memory", "bank conflicts", conflicts, None),
        ):
            if nbytes:
                found.append(MemoryBar(source, level, part, nbytes, least))
    return found


def moved(rows: Sequence[Row], candidate: str) -> list[MemoryBar | Registers]:
    """:func:`memory` and :func:`registers`; nothing if no bytes were counted."""
    bars = memory(rows, candidate)
    return [*bars, *registers(rows, candidate)] if bars else []


def _sectors(counted: dict[str, float], way: str) -> float:
    """Bytes between L2 and multiprocessors; an atomic operation counts in both directions."""
    names = (f"global_{way}_sectors", f"bulk_{way}_sectors", "global_atomic_sectors")
    return 32 * sum(counted.get(name, 0.0) for name in names)


def kernels(rows: Iterable[Row], candidate: str) -> list[str]:
    """Kernels of a candidate whose resources are known."""
    return [r.kernel for r in rows if (r.candidate, r.metric) == (candidate, "occupancy")]


def registers(rows: Sequence[Row], candidate: str) -> list[Registers]:
    """Registers and spills per thread of each kernel."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        if row.candidate == candidate and row.metric in ("registers", "spill_bytes"):
            found.setdefault(row.kernel, {})[row.metric] = row.value
    return [Registers(kernel, int(of["registers"]), int(of["spill_bytes"])) for kernel, of in found.items()]


def what_if(rows: Sequence[Row], candidate: str, gpu: GpuSpec) -> list[WhatIf]:
    """Resident warps as a function of registers per thread and of shared memory per block, for each kernel."""
    found = []
    for kernel in kernels(rows, candidate):
        one = taken_of(rows, candidate, kernel)
        now = one.warps(gpu)
        for value, warps in sorted({*by_registers(one, gpu), (one.registers, now)}):
            found.append(WhatIf(kernel, "registers per thread", value, warps, value == one.registers))
        for value, warps in sorted({*by_smem(one, gpu), (one.smem_bytes, now)}):
            found.append(WhatIf(kernel, "shared memory per block", value, warps, value == one.smem_bytes))
    return found


def occupancy(rows: Sequence[Row], candidate: str, gpu: GpuSpec) -> list[Limit | WhatIf]:
    """:func:`limits` and :func:`what_if`."""
    return [*limits(rows, candidate), *what_if(rows, candidate, gpu)]


def limits(rows: Sequence[Row], candidate: str) -> list[Limit]:
    """Blocks per multiprocessor that each resource allows."""
    found = []
    for kernel in kernels(rows, candidate):
        wanted = (candidate, kernel, "resident_blocks_allowed")
        by = {r.subject: int(r.value) for r in rows if (r.candidate, r.kernel, r.metric) == wanted}
        found += [Limit(kernel, name, blocks, blocks == min(by.values())) for name, blocks in by.items()]
    return found


def mix(rows: Sequence[Row]) -> list[MixShare]:
    """Warp instructions of every candidate by class, as the emulator counts PTX; small classes are added up as
    "other"."""
    found = []
    for candidate, own in by_candidate(rows).items():
        counted = counters(own, candidate)
        classes = {k.removeprefix(_CLASS): v for k, v in counted.items() if k.startswith(_CLASS)}
        total = sum(classes.values())
        named: dict[str, float] = defaultdict(float)
        for name, value in sorted(classes.items(), key=lambda item: -item[1]):
            named[name if value >= _LEAST_SHARE * total else _OTHER] += value
        found += [MixShare(candidate, name, value, value / total) for name, value in named.items() if value]
    return found


def checks(rows: Sequence[Row], candidate: str) -> list[CheckCell]:
    """One cell for each workload and kind of draw."""
    passed: dict[tuple[str, str], list[float]] = defaultdict(list)
    errors: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows:
        if row.candidate == candidate and row.source == "judge":
            at = (row.workload, draw_kind(row.subject))
            if row.metric == "passed":
                passed[at].append(row.value)
            elif row.metric == "error_over_budget":
                errors[at].append(row.value)
    return [
        CheckCell(*at, len(those), sum(not value for value in those), max(errors[at]) if at in errors else None)
        for at, those in passed.items()
    ]


def times(rows: Sequence[Row], candidate: str) -> list[TimeSample]:
    """Every round of the candidate and of the subjects timed with it, and the medians."""
    of = [r for r in rows if r.candidate == candidate and r.source in ("timer", "emulator")]
    rounds: dict[str, list[float]] = defaultdict(list)
    for row in of:
        if row.metric == "time_round":
            rounds[row.subject].append(row.value)
    found = [TimeSample(s, n, us, None, None, "measured") for s, all_ in rounds.items() for n, us in enumerate(all_, 1)]
    for row in of:
        if row.metric == "time":
            basis: Basis = "measured" if row.source == "timer" else "predicted"
            found.append(TimeSample(row.subject, 0, row.value, row.low, row.high, basis))
    return found


def stalls(rows: Sequence[Row], candidate: str) -> list[Stall]:
    """Why warps could not issue, the most common reason first."""
    counted = counters(rows, candidate, "ncu")
    cycles = {reason: counted.get(f"stall_cycles_{reason}", 0.0) for reason in STALLS}
    total = sum(cycles.values())
    most = sorted((reason for reason in cycles if cycles[reason] > 0), key=lambda reason: -cycles[reason])
    return [Stall(reason, STALLS[reason], cycles[reason], cycles[reason] / total) for reason in most]
