"""A recording says what each warp of a block did, in the order in which the emulator executed it."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.core.timeline import Span, Timeline, trace_events
from cutegen_lab.devices import emulator
from cutegen_lab.devices.emulator import EmulatorDevice
from cutegen_lab.emulator import Options, run_plan
from cutegen_lab.emulator.machine import recorder
from tests.emulator.ptx_kernel import build, kernel
from tests.profiles.recorded import recorded, timelines_of

# Warp 1 works before it comes to the barrier; warp 0 waits there, and stores.
LATE = """
  mov.u32 %r4, %tid.x; setp.lt.u32 %p1, %r4, 32; @%p1 bra MEET;
  mov.u32 %r5, 0;
AGAIN: add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 50; @%p2 bra AGAIN;
MEET: bar.sync 0;
  mul.wide.u32 %rd9, %r1, 4; add.s64 %rd10, %rd1, %rd9; st.global.u32 [%rd10], %r1;
  ret;"""
# Each thread copies 16 bytes from the first tensor, waits for them, and stores one word.
COPIES = """
  mul.wide.u32 %rd9, %r1, 16; add.s64 %rd10, %rd1, %rd9; mul.wide.u32 %rd12, %r1, 4; add.s64 %rd11, %rd2, %rd12;
  shl.b32 %r4, %r1, 4; mov.b32 %r5, tile; add.s32 %r5, %r5, %r4;
  cp.async.cg.shared.global [%r5], [%rd10], 16; cp.async.commit_group;
  mov.u32 %r6, 1; mov.u32 %r7, 2; add.u32 %r6, %r6, %r7;
  cp.async.wait_group 0; ld.shared.u32 %r8, [%r5]; st.global.u32 [%rd11], %r8;
  ret;"""


def recording(body: str, *tensors: np.ndarray, shared: str = "", threads: int = 64) -> Timeline:
    made = build(kernel(body, len(tensors), shared), list(tensors), block=(threads, 1, 1), grid=(2, 1, 1))
    specs = [TensorSpec(f"t{i}", DType.U8, (t.nbytes,)) for i, t in enumerate(tensors)]
    views = [memoryview(t.reshape(-1).view(np.uint8)) for t in tensors]
    found = EmulatorDevice().timelines(made, specs, views, threading.Event())
    assert not isinstance(found, str), found
    (timeline,) = found
    return timeline


def by_warp(timeline: Timeline, *kinds: str) -> dict[int, list[Span]]:
    found: dict[int, list[Span]] = defaultdict(list)
    for span in sorted(timeline.spans, key=lambda span: span.start):
        if span.kind in kinds:
            found[span.warp].append(span)
    return found


def test_a_warp_waits_at_the_barrier_until_the_last_one_comes() -> None:
    timeline = recording(LATE, np.zeros(128, np.uint32))
    assert (timeline.kernel, timeline.block, timeline.warps, timeline.cut) == ("k", (0, 0, 0), 2, False)
    (wait,) = by_warp(timeline, "wait")[0]
    assert wait.label == "bar.sync" and wait.end - wait.start > 100, "50 rounds of three instructions"
    assert not by_warp(timeline, "wait")[1], "it came last"
    busy = by_warp(timeline, "run")
    last_before = max(span.end for span in busy[1] if span.end <= wait.end)
    assert wait.end >= last_before and busy[0][-1].end <= timeline.length


def test_a_warp_never_does_two_things_at_a_time() -> None:
    for timeline in (recording(LATE, np.zeros(128, np.uint32)), *timelines_of(recorded("matmul"), "c1")):
        for spans in by_warp(timeline, "run", "wait").values():
            assert all(first.end <= second.start for first, second in pairwise(spans))
        assert max(span.end for span in timeline.spans) <= timeline.length


def test_a_copy_is_under_way_until_it_is_waited_for() -> None:
    timeline = recording(COPIES, np.arange(512, dtype=np.uint32), np.zeros(128, np.uint32),
                         shared="  .shared .align 16 .b8 tile[2048];\n")  # fmt: skip
    for warp, (copy,) in by_warp(timeline, "copy in").items():
        assert copy.label.startswith("cp.async.cg") and copy.end - copy.start == 5, "commit, three others, the wait"
        assert timeline.role(warp) == "copies"


def test_a_products_warps_and_a_copying_one_are_told_apart() -> None:
    (timeline,) = timelines_of(recorded("matmul"), "c1")
    assert [timeline.role(warp) for warp in range(timeline.warps)] == ["products"] * 4 + ["copies"] + [""] * 3
    copies, products = by_warp(timeline, "copy in")[4], by_warp(timeline, "product")[0]
    assert copies and all(".tensor." in span.label and span.line for span in copies)
    waits = by_warp(timeline, "wait")[0]
    assert waits[0].label.startswith("mbarrier.try_wait") and waits[0].end <= products[0].start
    assert min(copy.end for copy in copies) <= products[0].start, "the first product reads what has come"


def test_executing_with_and_without_a_recording_gives_the_same_answer() -> None:
    outs = []
    for record in (False, True):
        out = np.zeros(128, np.uint32)
        made = build(kernel(LATE, 1), [out], block=(64, 1, 1), grid=(2, 1, 1))
        specs, views = [TensorSpec("t0", DType.U8, (out.nbytes,))], [memoryview(out.view(np.uint8))]
        result = run_plan(made, specs, views, threading.Event(), Options(record=record))
        assert result.execution.fault is None and len(result.timelines) == int(record)
        outs.append((out, result.execution.counters))
    assert (outs[0][0] == outs[1][0]).all() and (outs[0][0] == np.arange(128)).all()
    assert outs[0][1] == outs[1][1], "the same counters"


def test_a_recording_that_is_full_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "MOST_SPANS", 3)
    timeline = recording(LATE, np.zeros(128, np.uint32))
    assert timeline.cut and len(timeline.spans) == 3


def test_blocks_that_wait_for_each_other_are_recorded_among_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of two blocks counts itself and waits for the other: no block runs alone."""
    monkeypatch.setattr(emulator, "RECORDED", 1000)
    body = """
  atom.global.add.u32 %r4, [%rd1], 1;
WAIT: ld.acquire.gpu.global.u32 %r5, [%rd1]; setp.lt.u32 %p1, %r5, 2; @%p1 bra WAIT;
  ret;"""
    timeline = recording(body, np.zeros(1, np.uint32), threads=1)
    assert timeline.block == (0, 0, 0) and not timeline.cut and timeline.spans


def test_what_cannot_be_executed_is_said() -> None:
    made = build(kernel("trap; ret;", 1), [np.zeros(4, np.uint8)], block=(32, 1, 1))
    specs, views = [TensorSpec("t0", DType.U8, (4,))], [memoryview(np.zeros(4, np.uint8))]
    assert isinstance(EmulatorDevice().timelines(made, specs, views, threading.Event()), str)


def test_the_trace_is_one_that_perfetto_reads() -> None:
    """By the Trace Event Format's rules: times in µs, names of processes and threads, and events of a thread that nest
    or do not overlap. Trace viewers drop others."""
    timelines = timelines_of(recorded("matmul"), "c1")
    trace = json.loads(json.dumps(trace_events([timelines[0], timelines[0]])))
    assert set(trace) == {"traceEvents", "displayTimeUnit", "otherData"} and trace["displayTimeUnit"] == "ns"
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert len(events) == 2 * len(timelines[0].spans)
    assert all(event["dur"] > 0 and event["ts"] >= 0 and event["name"] and event["cat"] for event in events)
    assert max(event["ts"] + event["dur"] for event in events) <= timelines[0].length, "1 instruction: 1 µs"
    for event in trace["traceEvents"]:
        assert event["ph"] in "XM" and event["pid"] > 0 and isinstance(event.get("args", {}), dict)
    processes = {e["pid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"}
    assert len(processes) == 2
    assert all(name.endswith("the emulator's order of execution, not time") for name in processes.values())
    threads = defaultdict(list)
    for event in events:
        threads[event["pid"], event["tid"]].append(event)
    named, sorted_at = (
        {(e["pid"], e["tid"]): e["args"][key] for e in trace["traceEvents"] if e["name"] == name}
        for name, key in (("thread_name", "name"), ("thread_sort_index", "sort_index"))
    )
    assert set(named) == set(threads) == set(sorted_at) and len({tid for _, tid in threads}) == len(threads)
    for found in threads.values():
        assert all(first["ts"] + first["dur"] <= second["ts"] for first, second in pairwise(found)), "drawn beside"
    assert {"warp 0, products", "warp 0, products: products under way (2)"} <= set(named.values())
    assert "warp 4, copies: copies under way (1)" in named.values()
