"""What each warp of a block did, in the emulator's order of execution or by a GPU's clock."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal

Kind = Literal["run", "wait", "copy in", "copy out", "product"]
"""``run``: instructions are executed; ``wait``: at a barrier or for a copy; ``copy in``: cp.async or a bulk copy into
shared memory is under way; ``copy out``: a bulk copy out of it; ``product``: wgmma is under way."""
GENERATOR = "cutegen-lab"
TRACE_MARK = f'"generator": "{GENERATOR}"'
"""Text that every trace written here contains."""
EMULATED = "the emulator's order of execution, not time"


@dataclass(frozen=True)
class Span:
    """Something a warp did."""

    warp: int
    """Number of the warp in its block."""
    kind: Kind
    """What it did."""
    start: int
    """When it began, in the timeline's ``unit`` from the start of the block."""
    end: int
    """When it ended."""
    label: str
    """The instruction that began it; empty for ``run``."""
    line: int
    """Line of the candidate's text; 0 if the instruction belongs to none."""


@dataclass(frozen=True)
class Timeline:
    """One block of one launch."""

    kernel: str
    """The kernel."""
    block: tuple[int, int, int]
    """The block (x, y, z)."""
    warps: int
    """Number of warps of the block."""
    length: int
    """Length of the axis."""
    spans: tuple[Span, ...]
    """Spans, sorted by end."""
    cut: bool
    """Whether the recording was full before the block ended."""
    unit: Literal["instructions", "cycles"] = "instructions"
    """Unit of the axis: instructions that the block has executed (warps that execute one together count once), or
    cycles of the multiprocessor."""
    per_us: float = 1.0
    """Units of the axis per microsecond of a trace."""
    what: str = EMULATED
    """What was recorded, and how."""

    def role(self, warp: int) -> str:
        """What a warp is for: "products" where it issues matrix products, else "copies" where it issues copies."""
        mine = [span for span in self.spans if span.warp == warp]
        issued = {span.kind for span in mine}
        if "product" in issued or any(span.label.startswith("wgmma") for span in mine):
            return "products"
        return "copies" if "copy in" in issued else ""

    def name(self, warp: int) -> str:
        """``warp 3, products``."""
        return ", ".join(filter(None, (f"warp {warp}", self.role(warp))))


_TRACKS: Sequence[tuple[str, tuple[Kind, ...]]] = (
    ("", ("run", "wait")), (": products under way", ("product",)), (": copies under way", ("copy in", "copy out")),
)  # fmt: skip


_STEPS = 4096
"""Time steps per microsecond: viewers add start and duration, and multiples of a step add exactly, so that one event
ends where the next begins. A cycle is two steps."""


def trace_events(timelines: Sequence[Timeline]) -> dict[str, Any]:
    """Trace for Perfetto or Chrome (``Trace Event Format``, complete events): a process for each block, a thread for
    each warp, and more threads for its copies and products under way. Cycles of a GPU become time; an emulator's
    instruction is one microsecond."""
    found: list[dict[str, Any]] = []
    threads = count(1)
    for process, timeline in enumerate(timelines, 1):  # process 0 is the idle process
        name = f"{timeline.kernel}, block {timeline.block}: {timeline.what}"
        found.append({"ph": "M", "name": "process_name", "pid": process, "args": {"name": name}})
        for warp in range(timeline.warps):
            for what, kinds in _TRACKS:
                lanes = _lanes(s for s in timeline.spans if s.warp == warp and s.kind in kinds)
                for number, spans in enumerate(lanes, 1):
                    thread, which = next(threads), f" ({number})" if len(lanes) > 1 else ""
                    told = {"name": f"{timeline.name(warp)}{what}{which}"}
                    found.append({"ph": "M", "name": "thread_name", "pid": process, "tid": thread, "args": told})
                    sort = {"sort_index": thread}
                    found.append({"ph": "M", "name": "thread_sort_index", "pid": process, "tid": thread, "args": sort})
                    found += [_event(process, thread, span, timeline.per_us) for span in spans]
    other = {"axis": said_of(timelines), "generator": GENERATOR}
    return {"traceEvents": found, "displayTimeUnit": "ns", "otherData": other}


def said_of(timelines: Iterable[Timeline]) -> str:
    """What was recorded, and how, without repetitions."""
    return "; ".join(dict.fromkeys(timeline.what for timeline in timelines))


def _lanes(spans: Iterable[Span]) -> list[list[Span]]:
    """The spans in the minimum number of lists without overlaps: Perfetto drops events of a thread that overlap and do
    not nest."""
    lanes: list[list[Span]] = []
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        free = next((lane for lane in lanes if lane[-1].end <= span.start), None)
        if free is None:
            lanes.append(free := [])
        free.append(span)
    return lanes


def _event(process: int, thread: int, span: Span, per_us: float) -> dict[str, Any]:
    start, end = (round(at / per_us * _STEPS) / _STEPS for at in (span.start, span.end))
    return {
        "ph": "X", "name": span.label or span.kind, "cat": span.kind, "pid": process, "tid": thread, "ts": start,
        "dur": end - start, "args": {"line": span.line},
    }  # fmt: skip
