"""``cutegen profile``: every number of a run as a table, and what its warps do as a trace."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from cutegen_lab.cli.output import Output
from cutegen_lab.core.errors import SetupError
from cutegen_lab.core.timeline import said_of
from cutegen_lab.profiles.row import Row, to_csv, to_json
from cutegen_lab.profiles.rows import CANDIDATE
from cutegen_lab.profiles.trace import trace_text
from cutegen_lab.session import RunHandle, Session
from cutegen_lab.session.handle import unknown_candidate
from cutegen_lab.session.outputs import may_write, write_out
from cutegen_lab.views.hints import COMMAND_LINE, advised


def execute(arguments: argparse.Namespace, output: Output) -> int:
    for path in filter(None, (arguments.csv, arguments.trace)):
        may_write(Path(path))
    with Session.open(arguments.workdir) as session:
        handle = session.find(arguments.run_id)
        chosen = _chosen(handle, arguments.candidate)
        if arguments.count:
            _count(handle, chosen, arguments.count)
        rows = handle.profile_rows()
        output.line(_summary(handle, rows) if handle.state.candidates else "no candidate yet")
        if chosen:
            output.line()
            output.line(_counters(rows, chosen))
        if arguments.csv:
            write_out(Path(arguments.csv), to_csv(rows))
            output.line(f"\n{arguments.csv}: {len(rows)} rows")
        if arguments.trace:
            from cutegen_lab.views.units import plural

            timelines = handle.timelines(chosen, arguments.trace_on)
            write_out(Path(arguments.trace), trace_text(timelines))
            what = said_of(timelines)
            output.line(
                f"\n{arguments.trace}: {plural(len(timelines), 'block')}, {what}; open it at https://ui.perfetto.dev"
            )
        files = {"csv": arguments.csv, "trace": arguments.trace}
        output.result({"run_id": handle.run_id, "candidate": chosen, **files, "rows": to_json(rows)})
    return 0


def _chosen(handle: RunHandle, asked: str | None) -> str | None:
    """The candidate asked for, else the accepted one, else the last. Raises InputError for an unknown one."""
    state = handle.state
    known = list(state.candidates)
    if asked and asked not in known:
        raise unknown_candidate(state, repr(asked))
    return asked or state.incumbent_id or (known[-1] if known else None)


def _count(handle: RunHandle, chosen: str | None, device: str) -> None:
    try:
        handle.profile(chosen, device)
    except SetupError as error:  # --count names the device, not --device
        raise SetupError(error.message, advised(error, replace(COMMAND_LINE, device="--count")).action) from None


def _summary(handle: RunHandle, rows: Sequence[Row]) -> str:
    """A line for each candidate: time and its range, bytes moved, registers, occupancy, limiter."""
    from cutegen_lab.views.text import columns
    from cutegen_lab.views.units import microseconds, size

    def shown(candidate: str) -> tuple[str, ...]:
        by = {row.metric: row for row in rows if row.candidate == candidate and row.subject in ("", CANDIDATE)}
        trial = handle.state.trials.get(candidate)
        time = f"{microseconds(by['time'].value)} {_BASIS[by['time'].source]}" if "time" in by else "-"
        moved = size(by["moved_bytes"].value) if "moved_bytes" in by else "-"
        occupied = f"{by['occupancy'].value:.0%}" if "occupancy" in by else "-"
        registers = f"{by['registers'].value:.0f}" if "registers" in by else "-"
        limiter = trial.profile.limiter if trial and trial.profile else "-"
        ends = trial.timing.band_us if trial and trial.timing else None
        between = " to ".join(map(microseconds, ends)) if ends else "-"
        return candidate, time, between, moved, registers, occupied, limiter

    head = ("candidate", "time", "9 of 10 measured", "moved", "registers", "occupancy", "limited by")
    return "\n".join(columns([head, *map(shown, handle.state.candidates)]))


_BASIS: Mapping[str, str] = {"timer": "measured", "emulator": "predicted"}


def _counters(rows: Sequence[Row], candidate: str) -> str:
    """Counters of a candidate by source, of all launches together; zeros are left out."""
    from cutegen_lab.views.text import columns
    from cutegen_lab.views.units import count

    counted = [r for r in rows if r.candidate == candidate and r.source in ("emulator", "ncu") and r.value]
    lines = [
        (r.source, f"{r.metric} {r.subject}".strip(), count(r.value) if r.value >= 100 else f"{r.value:.3g}", r.unit)
        for r in counted
        if r.metric != "time"
    ]
    return "\n".join(columns([("source", candidate, "value", "unit"), *lines]))
