"""Clock stamps in PTX: where they stand, that the kernel computes what it did, and what is read from them."""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from cutegen_lab.core.artifact import KernelInfo
from cutegen_lab.core.timeline import Span, Timeline, trace_events
from cutegen_lab.devices.cuda import stamps
from cutegen_lab.devices.cuda.stamps import SLOTS, STAMP, WARP_BYTES, Place, middle, read, stamped
from cutegen_lab.devices.emulator import EmulatorDevice
from cutegen_lab.emulator.faults import Unsupported
from cutegen_lab.emulator.ptx.module import kernels
from cutegen_lab.judge.draws.inputs import fill
from cutegen_lab.judge.execution.buffers import POISONS, Buffers
from tests.emulator.ptx_kernel import build, kernel
from tests.profiles.recorded import recorded

RUNS = [("matmul", "c1"), ("softmax", "c1")]


def outputs(run: str, ptx: str | None, candidate: str) -> list[bytes]:
    """What the main workload's tensors hold after an execution on the emulator."""
    found = recorded(run)
    made = found.builds[candidate]
    workload = found.state.problem.workload
    tensors = Buffers(workload, made if ptx is None else replace(made, ptx=ptx), fill(workload, 7), POISONS[0])
    done = EmulatorDevice().execute(tensors.build, tensors.tensors, tensors.views, threading.Event())
    assert done.fault is None, done.fault
    return [bytes(view) for view in tensors.views]


@pytest.mark.parametrize(("run", "candidate"), RUNS)
@pytest.mark.parametrize("as_many_blocks", [False, True])
def test_a_kernel_with_stamps_computes_what_it_did(run: str, candidate: str, as_many_blocks: bool) -> None:
    made = recorded(run).builds[candidate]
    marked = stamped(made)
    text = marked.texts[0 if as_many_blocks else 1]
    assert text.count("%clock") == len(marked.places)
    # No kernel may read the clock, count how often it waits, or keep something in a variable of its module.
    refused = r"(@%cutegen_stamps_first st\.global|add\.u32 %cutegen_stamps_at|setp\.ne\.u32 %cutegen_stamps_on).*"
    allowed = re.sub(refused, "", text).replace("%clock", "%tid.x")
    assert outputs(run, allowed, candidate) == outputs(run, None, candidate)


def test_stamps_stand_before_and_after_waits_and_never_among_products() -> None:
    made = recorded("matmul").builds["c1"]
    marked = stamped(made)
    waits = {".".join(place.waits_for.split(".")[:2]) for place in marked.places if place.waits_for}
    assert {"mbarrier.try_wait", "wgmma.wait_group", "bar.sync"} <= waits
    lines = [line.strip() for line in marked.texts[0].splitlines()]
    inside = False
    for line in lines:
        inside = (inside or line.startswith("wgmma.fence")) and not line.startswith("wgmma.commit_group")
        assert not (inside and "%clock" in line)
    for at, line in enumerate(lines):
        if line.startswith(("bar.sync", "wgmma.wait_group", "mbarrier.try_wait", "barrier.cluster.wait")):
            assert lines[at - 1].startswith("$cutegen_stamps_"), f"no stamp before {line}"


def test_a_load_is_waited_for_where_it_is_used() -> None:
    body = """
  mul.wide.u32 %rd9, %r1, 4; add.s64 %rd10, %rd1, %rd9;
  ld.global.u32 %r4, [%rd10];
  mov.u32 %r5, 3;
  add.u32 %r6, %r4, %r5;
  st.global.u32 [%rd10], %r6;
  ret;"""
    made = build(kernel(body, 1), [np.zeros(64, np.uint32)], block=(32, 1, 1), grid=(2, 1, 1))
    places = stamped(replace(made, arch="sm_90a", kernels=(KernelInfo("k", 16, 0, 0, 0, 0, (8,)),))).places
    text = made.ptx.splitlines()
    waited = [text[place.ptx_line - 1].strip() for place in places if place.waits_for == "ld.global.u32"]
    assert waited == ["add.u32 %r6, %r4, %r5;"]
    after = places[[place.waits_for for place in places].index("ld.global.u32") + 1]
    assert text[after.ptx_line - 1].strip().startswith("st.global"), "and the wait ends"


def test_names_of_the_candidate_are_not_taken() -> None:
    made = recorded("softmax").builds["c1"]
    first = stamped(made)
    again = stamped(replace(made, ptx=first.texts[1]))
    assert again.symbol != first.symbol and len(kernels(again.texts[1])) == len(kernels(made.ptx))


def test_the_block_is_the_one_in_the_middle() -> None:
    made = recorded("softmax").builds["c1"]
    (launch,) = made.plan.launches
    twice = replace(made, plan=replace(made.plan, launches=(launch, replace(launch, grid=(2, 1, 1)))))
    assert stamped(twice).blocks == {launch.kernel: middle(launch)}, "of the first launch"
    assert middle(replace(launch, grid=(1, 1, 1))) == (0, 0, 0)
    assert middle(replace(launch, grid=(4, 3, 2))) == (0, 0, 1)
    assert middle(replace(launch, grid=(132, 1, 1))) == (66, 0, 0)


PLACES = (Place(10, ""), Place(20, "bar.sync"), Place(30, ""))


def memory(*warps: list[tuple[int, int]]) -> bytes:
    parts = [b"".join(STAMP.pack(*stamp) for stamp in warp) for warp in warps]
    return b"".join(part.ljust(WARP_BYTES, b"\0") for part in parts)


def test_spans_reach_from_a_stamp_to_the_next() -> None:
    found = read(
        memory([(100, 1), (140, 2), (190, 3), (200, 3)], [(90, 1), (190, 2), (191, 3)]), PLACES, lambda x: x, 2
    )
    assert [span for span in found.spans if span.warp == 0] == [
        Span(0, "run", 10, 50, "", 10), Span(0, "wait", 50, 100, "bar.sync", 20), Span(0, "run", 100, 110, "", 30),
    ]  # fmt: skip
    assert [(s.kind, s.start, s.end) for s in found.spans if s.warp == 1] == [("run", 0, 100), ("wait", 100, 101)]
    assert found.cycles == 110 and not found.cut


def test_a_wait_tried_again_is_one_wait_and_the_clock_may_wrap() -> None:
    top = (1 << 32) - 5
    found = read(memory([(top, 2), (top + 3, 2), (7, 3), (9, 1)]), PLACES, lambda x: x, 1)
    assert found.spans == (Span(0, "wait", 0, 12, "bar.sync", 20), Span(0, "run", 12, 14, "", 30))


def test_what_is_no_stamp_ends_a_warp_and_a_full_one_says_so() -> None:
    """A candidate may write into the variable: numbers of no place are not read."""
    assert read(memory([(1, 1), (5, 9), (9, 3)]), PLACES, lambda x: x, 1).spans == ()
    assert read(memory([], []), PLACES, lambda x: x, 2) == stamps.Recorded((), 0, False)
    assert read(memory([(at, 1 + at % 3) for at in range(SLOTS)]), PLACES, lambda x: x, 1).cut


def test_a_trace_has_the_time_of_cycles() -> None:
    spans = (Span(0, "wait", 1980, 3960, "bar.sync", 4),)
    timeline = Timeline("k", (0, 0, 0), 1, 3960, spans, False, "cycles", 1980.0, "measured on a GPU")
    (event,) = [event for event in trace_events([timeline])["traceEvents"] if event["ph"] == "X"]
    assert (event["ts"], event["dur"]) == (1.0, 1.0)
    assert trace_events([timeline])["otherData"]["axis"] == "measured on a GPU"


def test_events_of_a_trace_end_where_the_next_begin() -> None:
    """Viewers add start and duration: speedscope refuses an event that ends 1e-16 µs after the next has begun."""
    ends = range(0, 90_000, 7)
    spans = tuple(Span(0, "run", start, end, "", 1) for start, end in pairwise(ends))
    timeline = Timeline("k", (0, 0, 0), 1, 90_000, spans, False, "cycles", 1755.0, "measured on a GPU")
    events = [event for event in trace_events([timeline])["traceEvents"] if event["ph"] == "X"]
    assert all(first["ts"] + first["dur"] == second["ts"] for first, second in pairwise(events))
    assert all(event["dur"] > 0 for event in events) and events[-1]["ts"] == pytest.approx(
        spans[-1].start / 1755, abs=1 / 4096
    )


def test_what_cannot_be_read_is_refused() -> None:
    made = build(kernel("ret;", 1), [np.zeros(4, np.uint8)], block=(32, 1, 1))
    broken = replace(made, ptx=made.ptx.replace("ret;", ".weird x; ret;"), arch="sm_90a")
    with pytest.raises(Unsupported):
        stamped(broken)
