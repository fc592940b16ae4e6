"""Plots of real runs: every mark is a number of the run, and can be read on light and dark pages."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import plotly.io
import pytest

from cutegen_lab.core.counters import STALLS
from cutegen_lab.core.errors import InputError, SetupError
from cutegen_lab.core.roofline import GPUS
from cutegen_lab.core.run import RunState
from cutegen_lab.core.timeline import Span, Timeline
from cutegen_lab.core.trial import Profile
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.notebook.plots import PLOTS, Plot, Subject, draw, timeline
from cutegen_lab.notebook.run import NotebookRun
from cutegen_lab.notebook.search_figure import plain_figure
from cutegen_lab.profiles.row import Row
from cutegen_lab.profiles.rows import rows
from cutegen_lab.session import Session
from tests.notebook.test_profile_figure import PAGES, colours, contrast
from tests.profiles.recorded import Recorded, kept, recorded, timelines_of
from tests.profiles.test_rows import measured

SOFTMAX, MATMUL = recorded("softmax"), recorded("matmul")
FOUND = rows(SOFTMAX.state, SOFTMAX.builds)
H200 = GPUS["H200"]
STALLED = {f"stall_cycles_{reason}": float(cycles) for cycles, reason in enumerate(STALLS)}
HARDWARE = Profile("hardware", "L2", {"dram_load_bytes": 7e7, **STALLED})


def plot(name: str, run: Recorded = SOFTMAX, candidate: str = "c1", state: RunState | None = None) -> Plot:
    state = state or run.state
    found = rows(state, run.builds, {candidate: [HARDWARE]})
    timelines = partial(timelines_of, run, candidate)
    return draw(name, Subject(found, candidate, GPUS[state.sol.gpu], timelines, "a run"))


def of(found: Plot, kind: str) -> list[dict[str, object]]:
    return [row for row in found.table if row["record"] == kind]


def test_the_roofline_has_every_candidate_at_its_rate_by_both_bytes() -> None:
    found = plot("roofline", MATMUL)
    points = of(found, "RooflinePoint")
    assert [(p["candidate"], p["bytes_counted"]) for p in points] == [
        (c, what) for c in ("c1", "c2", "c3") for what in ("compulsory", "moved")
    ]
    trial = MATMUL.state.trials["c2"]
    assert trial.timing is not None and trial.profile is not None
    mine = points[2]
    operations = MATMUL.state.sol.flops + 32 * trial.profile.counters.get("warp_instructions_f32", 0.0)
    assert mine["operations_per_s"] == pytest.approx(operations / (trial.timing.time_us * 1e-6))
    assert mine["intensity"] == pytest.approx(operations / MATMUL.state.sol.compulsory_bytes)
    assert points[3]["intensity"] == pytest.approx(operations / trial.profile.counters["moved_bytes"])
    trail = next(t for t in found.figure.data if t.name == "by bytes moved from L2")
    assert list(trail.text) == ["c1", "c2", "c3"] and trail.y[1] == mine["operations_per_s"]
    assert {c["operations_per_s"] for c in of(found, "Ceiling")} == {None, 33.5e12, 989e12}
    assert H200.dram_bytes_per_s in {c["bytes_per_s"] for c in of(found, "Ceiling")}


def test_a_run_without_matrix_products_has_no_ceiling_of_tensor_cores() -> None:
    assert {c["operations_per_s"] for c in of(plot("roofline"), "Ceiling")} == {None, 33.5e12}


def test_terms_stand_beside_the_whole_time_and_say_whether_it_was_measured() -> None:
    found, timed = plot("time"), plot("time", state=measured(SOFTMAX.state))
    longest = max(of(found, "TermBar"), key=lambda term: term["time_us"])  # type: ignore[return-value, arg-type]
    assert longest["name"] == "memory" and "memory (longest)" in found.figure.data[0].y
    assert {w["name"] for w in of(found, "WholeTime")} == {"speed of light", "predicted"}
    assert {w["name"]: w["time_us"] for w in of(timed, "WholeTime")}["measured"] == 40.0
    texts = [a.text for a in timed.figure.layout.annotations]
    assert "measured 40 µs" in texts and not any("predicted" in text for text in texts)


def test_memory_is_beside_what_must_move_by_whoever_counted_it() -> None:
    bars = {(b["source"], b["level"], b["part"]): b for b in of(plot("memory"), "MemoryBar")}
    read = bars["emulator", "L2 to SMs", "read"]
    assert read["nbytes"] == 2 * 4096 * 8192 == read["compulsory_bytes"]
    assert bars["ncu", "DRAM", "read"]["nbytes"] == 7e7 and ("ncu", "DRAM", "written") not in bars
    trial = SOFTMAX.state.trials["c1"]
    wavefronts = trial.profile.counters["shared_wavefronts"]  # type: ignore[union-attr]
    assert bars["emulator", "shared memory", "wavefronts"]["nbytes"] == 128 * wavefronts
    assert {t.name for t in plot("memory").figure.data} == {"emulator", "ncu", "must move"}


def test_memory_says_how_many_registers_a_thread_has_and_what_it_spills() -> None:
    (kept,) = of(plot("memory"), "Registers")
    assert kept == {"record": "Registers", "kernel": "row_kernel", "registers": 48, "spill_bytes": 0}
    assert "row_kernel: 48 registers per thread, none spilled" in plot("memory").figure.layout.title.text
    spilled = [replace(row, value=1024.0) if row.metric == "spill_bytes" else row for row in FOUND]
    figure = draw("memory", Subject(spilled, "c1", H200)).figure
    assert "48 registers per thread, 1,024 bytes of spills" in figure.layout.title.text


def test_occupancy_says_what_limits_it_and_marks_where_the_kernel_is() -> None:
    found = plot("occupancy")
    assert [limit["resource"] for limit in of(found, "Limit") if limit["limits"]] == ["registers"]
    now = [(w["resource"], w["value"], w["resident_warps"]) for w in of(found, "WhatIf") if w["current"]]
    assert now == [("registers per thread", 48, 40), ("shared memory per block", 64, 40)]
    marks = [t for t in found.figure.data if t.name == "this kernel"]
    assert [(m.x[0], m.y[0]) for m in marks] == [(48, 40), (64 / 1024, 40)]
    assert "row_kernel is limited by registers" in found.figure.layout.title.text


def test_the_mix_adds_up_to_all_instructions_of_each_candidate() -> None:
    shares = of(plot("mix", MATMUL), "MixShare")
    for name in MATMUL.state.candidates:
        assert math.fsum(s["share"] for s in shares if s["candidate"] == name) == pytest.approx(1)  # type: ignore[misc]
    assert "tensor" in {s["instructions"] for s in shares}


def test_a_failed_check_is_a_cross_in_its_cell() -> None:
    trial = SOFTMAX.state.trials["c1"]
    check = trial.check
    assert check is not None
    first = check.checks[0]
    bad = replace(first, verdict=Verdict.WRONG_RESULT, errors=(replace(first.errors[0], norm=1.0),))
    failed = replace(check, checks=(bad, *check.checks[1:]))
    found = plot("checks", state=replace(SOFTMAX.state, trials={"c1": replace(trial, check=failed)}))
    cells = {(c["workload"], c["draw"]): c for c in of(found, "CheckCell")}
    assert sum(c["checks"] for c in cells.values()) == len(check.checks)  # type: ignore[misc]
    assert cells[first.workload, first.kind]["failed"] == 1
    shown = found.figure.data[0]
    text = shown.text[list(shown.y).index(first.kind)][list(shown.x).index(first.workload)]
    assert text.startswith("✗ ") and text.endswith("×")
    assert "1 of 250 checks failed" in found.figure.layout.title.text
    assert not any("✗" in said for row in plot("checks").figure.data[0].text for said in row)


def test_times_have_every_round_and_say_if_they_are_predicted() -> None:
    timed = plot("times", state=measured(SOFTMAX.state))
    box = next(t for t in timed.figure.data if t.type == "box" and t.name == "eager PyTorch")
    assert list(box.x) == [80.0, 80.0, 81.0]
    medians = next(t for t in timed.figure.data if t.type == "scatter")
    at = list(medians.y).index("candidate")
    assert (medians.x[at], medians.error_x.array[at], medians.error_x.arrayminus[at]) == (40.0, 0.25, 0.25)
    assert "nothing was measured" in plot("times").figure.layout.title.text
    assert "3 rounds" in timed.figure.layout.title.text


def test_stalls_are_ncus_and_missing_without_it() -> None:
    found = plot("stalls")
    assert found.table[0]["reason"] == list(STALLS)[-1] and found.table[0]["share"] == 16 / sum(range(17))
    with pytest.raises(InputError, match=r"no plot 'stalls' of c1: Nsight Compute did not profile it"):
        draw("stalls", Subject(FOUND, "c1", H200))


def test_the_timeline_has_a_track_for_each_warp_and_says_that_it_is_no_time() -> None:
    found = plot("timeline", MATMUL)
    (recording,) = found.records
    bars = {trace.name: trace for trace in found.figure.data}
    assert set(bars["executes"].y) == {recording.name(warp) for warp in range(recording.warps)}
    assert {"warp 0, products", "warp 4, copies"} <= set(bars["executes"].y)
    assert set(bars["copies in under way"].y) == {"under way (4)"}
    waits = [span for span in recording.spans if span.kind == "wait"]
    assert sum(bars["waits"].x) == sum(span.end - span.start for span in waits) > 0
    assert "the emulator's order of execution, not time" in found.figure.layout.title.text
    assert found.table[0]["record"] == "Span" and len(found.table) == len(recording.spans)


def test_a_timeline_is_saved_as_a_trace_and_nothing_else_is(tmp_path: Path) -> None:
    found = plot("timeline", MATMUL)
    saved = found.save(tmp_path / "warps.json")
    events = json.loads(saved.read_text())["traceEvents"]
    names = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert found.trace == saved.read_text() and "warp 0" in {name[:6] for name in names}
    other = plot("roofline", MATMUL)
    with pytest.raises(InputError, match="cannot tell from the name"):
        other.save(tmp_path / "roofline.json")
    assert other.trace == "" and not (tmp_path / "roofline.json").exists()


def test_a_measured_timeline_has_cycles_and_says_how_it_was_measured() -> None:
    spans = (Span(0, "run", 0, 400, "", 3), Span(0, "wait", 400, 900, "ld.global.v4.b32", 7))
    what = "measured on cuda:0 NVIDIA H200 by stamps of its clock, with which a call takes 1.02 times as long"
    figure = timeline.draw([Timeline("k", (66, 0, 0), 1, 900, spans, False, "cycles", 1980.0, what)], "a run c1")
    assert what in figure.layout.title.text.replace("<br>", " ") and "not time" not in figure.layout.title.text
    assert figure.layout.annotations[0].text == "k, block (66, 0, 0): 900 cycles"
    assert figure.layout.xaxis.title.text == "cycles of the block"


def test_an_unknown_plot_is_answered_with_the_one_meant() -> None:
    with pytest.raises(InputError, match=r"no plot 'rofline'.*Did you mean 'roofline'\? Plots: roofline, time, memory"):
        plot("rofline")


HOSTILE = "<a href='https://x'>&<img src=x onerror=pwned()>%{x}"
_OURS = re.compile(r"</?(?:b|sub|extra)>|<br>")


def texts(value: object) -> Iterator[str]:
    """Every text of a figure's JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from texts(each)


@pytest.mark.parametrize("name", PLOTS)
def test_no_text_of_a_run_is_html_in_a_plot(name: str) -> None:
    """Names of candidates, kernels, workloads, inputs, baselines and counters, which an imported run's file may have
    anything for."""
    state = measured_of(MATMUL.state)
    found = [_hostile(row) for row in rows(state, MATMUL.builds, {"c2": [HARDWARE]})]
    timelines = [
        replace(each, kernel=HOSTILE, spans=tuple(replace(span, label=HOSTILE) for span in each.spans))
        for each in timelines_of(MATMUL, "c2")
    ]
    drawn = draw(name, Subject(found, HOSTILE + "c2", H200, lambda: timelines, HOSTILE))
    shown = plain_figure(drawn.figure)
    assert any("&lt;a href" in text for text in texts(shown))
    assert not [text for text in texts(shown) if "<" in _OURS.sub("", text)]


def _hostile(row: Row) -> Row:
    names = {name: HOSTILE + getattr(row, name) for name in ("candidate", "kernel", "workload") if getattr(row, name)}
    subject = HOSTILE + row.subject if row.source in ("judge", "timer") and row.subject != "candidate" else row.subject
    metric = row.metric + HOSTILE if row.metric.startswith("warp_instructions_") else row.metric
    return replace(row, **names, subject=subject, metric=metric)


def test_a_plot_is_one_of_many_candidates_in_little_time() -> None:
    """The roofline of 500 candidates took two minutes."""
    state = MATMUL.state
    all_ = rows(state, MATMUL.builds)
    head, mine = [r for r in all_ if not r.candidate], [r for r in all_ if r.candidate == "c1"]
    many = [*head, *(replace(row, candidate=f"k{n}") for n in range(60) for row in mine)]
    of_one = Subject([*head, *mine], "c1", H200)
    started = time.process_time()
    for name in ("roofline", "mix"):
        PLOTS[name].pick(of_one)
    once = time.process_time() - started
    for name in ("roofline", "mix"):
        PLOTS[name].pick(Subject(many, "k1", H200))
    assert time.process_time() - started - once < 5 * 60 * once


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("name", PLOTS)
def test_plots_can_be_read_on_light_and_dark_pages(name: str, page: str) -> None:
    figure = plot(name, MATMUL, "c2", measured_of(MATMUL.state)).figure
    assert figure.layout.template.layout.paper_bgcolor == "rgba(0,0,0,0)"
    marks = colours(figure.to_plotly_json()["data"])
    assert all(contrast(mark, PAGES[page]) >= 3 for mark in marks)
    axes = [axis for axis in figure.to_plotly_json()["layout"] if axis.startswith(("xaxis", "yaxis"))]
    assert axes and figure.layout.title.text.startswith("<b>")


def measured_of(state: RunState) -> RunState:
    timing = measured(SOFTMAX.state).trials["c1"].timing
    return replace(state, trials={**state.trials, "c2": replace(state.trials["c2"], timing=timing)})


@pytest.fixture
def run(tmp_path: Path) -> Iterator[NotebookRun]:
    with Session.open(tmp_path) as session:
        yield NotebookRun(session.attach(kept("matmul", tmp_path)))


def test_a_plot_in_a_notebook_is_a_figure_with_its_table(
    run: NotebookRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plotly.io.renderers, "default", "plotly_mimetype")  # JupyterLab's
    found = run.plot("memory", "c2")
    assert "application/vnd.plotly.v1+json" in found._repr_mimebundle_()
    assert "matmul c2" in found.figure.layout.title.text
    table = list(csv.DictReader(io.StringIO(found.save(tmp_path / "memory.csv").read_text())))
    assert [row["nbytes"] for row in table] == [str(getattr(record, "nbytes", "")) for record in found.records]
    for _ in range(2):  # what cutegen wrote it may write again
        assert "Plotly.newPlot" in found.save(tmp_path / "memory.html").read_text()
        found.save(tmp_path / "memory.csv")
    for name in ("mine.csv", "mine.html", "mine.png"):
        (tmp_path / name).write_text("mine")
        with pytest.raises(InputError, match="cutegen did not write it"):
            found.save(tmp_path / name)
    with pytest.raises(InputError, match=r"Name a file \.html, \.csv, \.png"):
        found.save(tmp_path / "memory.txt")
    with pytest.raises(InputError, match="no candidate c9"):
        run.plot("memory", "c9")


def test_an_image_without_kaleido_says_what_to_do(
    run: NotebookRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = run.plot("memory", "c2")

    def missing(*_: object, **__: object) -> None:
        raise ValueError("Image export requires kaleido\nmore")

    monkeypatch.setattr(type(found.figure), "write_image", missing)
    with pytest.raises(SetupError, match=r"Image export requires kaleido.*use the camera"):
        found.save(tmp_path / "memory.png")


def test_a_long_timeline_joins_what_is_too_fine_to_be_seen_and_says_so() -> None:
    runs = [Span(0, "run", at, at + 1, "", 0) for at in range(0, 6000, 2)]
    spans = (*runs, Span(0, "wait", 6000, 9000, "bar.sync", 3))
    figure = timeline.draw([Timeline("k", (0, 0, 0), 1, 9000, spans, False)], "a run c1")
    bars = {trace.name: trace for trace in figure.data}
    assert list(bars["executes"].base) == [0] and list(bars["executes"].x) == [5999]
    assert list(bars["waits"].x) == [3000] and "line 3" in bars["waits"].customdata[0]
    assert "spans less than 6 instructions apart are drawn as one" in figure.layout.title.text
