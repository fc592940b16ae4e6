"""A search in a real shell: it returns at once, is cancelled, resumed and replayed, and its figure shows its trace."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from cutegen_lab.core.errors import InputError
from cutegen_lab.notebook.plots import Plot
from cutegen_lab.notebook.search import PLOTLY_MIME, NotebookSearch, figure_bundle, summary_bundle
from cutegen_lab.notebook.search_figure import headline, search_figure, search_records
from cutegen_lab.tuning import Patience
from cutegen_lab.tuning.trace import Point, Trace

pytestmark = pytest.mark.kernel

CELL = "def reference(x):  # x: f32[4, 256]\n    return x * 2\n"
OPTIONS = "--name doubled --device emulator"
DOMAINS = {"vec": (1, 2, 4), "kind": ("<b>a</b>", "b"), "one": (7,)}
SLOW, FAST, BAD = ({"vec": v, "kind": k, "one": 7} for v, k in ((4, "b"), (1, "<b>a</b>"), (2, "b")))
POINTS = (
    Point(SLOW, 20.0, first_us=20.0, predicted_us=25.0),
    Point(BAD, None, "wrong_result", "y[3] is <script>4</script>"),
    Point(FAST, 10.0, first_us=10.0, predicted_us=9.0),
)


def trace(kind: str = "measured", points: tuple[Point, ...] = POINTS) -> Trace:
    return Trace("a kernel", kind, "a card", DOMAINS, SLOW, points, ruled_out=2)  # type: ignore[arg-type]


def test_a_time_that_is_a_mean_says_so() -> None:
    assert "best 10 µs by" in headline(trace())
    assert "best 10 µs (geometric mean of 3 workloads) by" in headline(replace(trace(), workloads=3))


def test_the_trace_knows_best_and_medians() -> None:
    assert trace().best_so_far() == [20.0, 20.0, 10.0] and trace().best == POINTS[2]
    assert list(trace().medians("vec").items()) == [(1, 10.0), (4, 20.0)]
    assert trace(points=()).best is None and trace(points=(POINTS[1],)).best_so_far() == [None]


def test_the_figure_shows_every_evaluation_and_what_each_parameter_did() -> None:
    figure = search_figure(trace(), "softmax")
    by = {t.name: t for t in figure.data if t.name}
    assert list(by["ran"].x) == [1, 3] and list(by["ran"].y) == [20.0, 10.0]
    assert list(by["failed"].x) == [2] and by["failed"].marker.symbol != by["ran"].marker.symbol
    assert list(by["the default"].x) == [1] and list(by["best so far"].y) == [20.0, 20.0, 10.0]
    predicted = by["predicted (across), measured (up)"]
    assert list(predicted.x) == [25.0, 9.0] and list(predicted.y) == [20.0, 10.0]
    (lines,) = (t for t in figure.data if t.type == "parcoords")
    assert [d.label for d in lines.dimensions] == ["vec", "kind", "measured µs"]
    assert list(lines.dimensions[0]["values"]) == [2, 0] and lines.dimensions[2]["values"] == pytest.approx(
        [math.log10(20.0), 1.0]
    )
    assert lines.dimensions[2]["ticktext"][0] == "10" and lines.dimensions[2]["ticktext"][-1] == "20"
    medians = [dict(zip(t.x, t.y, strict=True)) for t in figure.data if t.name == "median"]
    assert medians == [{"1": 10.0, "4": 20.0}, {"&lt;b&gt;a&lt;/b&gt;": 10.0, "b": 20.0}]


def test_a_parameter_explains_what_it_changes_and_the_most_important_comes_first() -> None:
    noise = (1.01, 0.99, 1.0, 1.02)
    points = tuple(
        Point({"vec": vec, "kind": kind, "one": 7}, 10.0 * factor * noise[at % 4])
        for at, (vec, kind, factor) in enumerate(
            (vec, kind, 3.0 if kind == "b" else 1.0) for vec in DOMAINS["vec"] for kind in DOMAINS["kind"] * 2
        )
    )
    explained = trace(points=points).importance()
    assert list(explained) == ["kind", "vec"] and explained["kind"] > 0.99 and explained["vec"] == 0.0
    titles = [a.text for a in search_figure(trace(points=points)).layout.annotations]
    assert titles[-2:] == ["kind · explains 100%", "vec · explains 0%"]
    assert trace().importance() == {}, "one config a value says nothing"


def test_text_of_others_is_escaped_and_predictions_are_named_so() -> None:
    text = str(search_figure(trace("predicted"), "<i>mine</i>").to_dict())
    assert "&lt;script&gt;4" in text and not any(bad in text for bad in ("<script>", "<b>a</b>", "<i>"))
    assert "nothing was measured" in text and "predicted time by evaluation" in text
    assert "measured" in headline(trace()) and "best 10 µs by vec=1" in headline(trace())


def test_the_table_of_a_figure_has_every_evaluation_with_its_config() -> None:
    drawn = Plot("search", search_figure(trace()), search_records(trace()))
    assert drawn.table[1] == {
        "record": "Evaluated", "number": 2, "config.vec": 2, "config.kind": "b", "config.one": 7, "time_us": None,
        "best_so_far_us": 20.0, "predicted_us": None, "failure": "wrong_result", "reason": "y[3] is <script>4</script>",
    }  # fmt: skip
    assert drawn.csv.splitlines()[3] == "Evaluated,3,1,<b>a</b>,7,10.0,10.0,9.0,,"
    points = tuple(Point({"vec": vec, "kind": "b", "one": 7}, 10.0 * vec + at) for vec in (1, 4) for at in (0, 1))
    *_, last = Plot("search", None, search_records(trace(points=points))).table
    assert last["record"] == "Importance" and last["parameter"] == "vec" and last["explained"] > 0.9


@pytest.mark.parametrize("points", [(), (POINTS[1],), POINTS[:1]])
def test_a_search_that_has_hardly_begun_has_a_figure(points: tuple[Point, ...]) -> None:
    assert len(search_figure(trace(points=points)).data) >= 4


def test_cancel_keeps_what_is_known_and_resume_goes_on(shell: InteractiveShell, tmp_path: Path) -> None:
    shell.run_cell_magic("cutegen_tune", f"{OPTIONS} --budget 30", CELL)
    search = shell.user_ns["search"]
    assert isinstance(search, NotebookSearch) and search.status == "running"
    while len(search.trace.points) < 2 and search.status == "running":
        time.sleep(0.02)
    search.cancel().wait(30)
    assert search.status == "cancelled" and 2 <= len(search.trace.points) < 30
    assert search.found.leading is not None and "goes on from here" in summary_bundle(search)["text/plain"]
    with pytest.raises(InputError, match="no config passed"):
        _ = search.best
    known = len(search.trace.points)
    search.resume(budget=known + 2).wait(60)
    stats = search.found.stats
    assert search.status == "done" and stats.from_cache == known
    assert stats.evaluated == 2 or (known >= Patience().least and stats.stopped.startswith("nothing more"))
    assert search.best == search.found.ranked[0][0] and "predicted" in search.export(tmp_path / "k.py").read_text()
    found = search.found
    assert len(repr(found)) < 400 and "configs predicted; verdict: passed" in repr(found) and "\n" not in repr(found)
    assert "; when measured, nine of ten such kernels take" in repr(found)
    assert "<caption>predicted times by workload</caption>" in found._repr_html_() and "best: " in found._repr_html_()
    assert len(repr(found.tunable)) < 120 and len(repr(search.trace)) < 300 and "best " in repr(search.trace)
    assert summary_bundle(search)["text/plain"].splitlines()[-1].startswith("the best config ")
    words = summary_bundle(search)["text/html"]
    assert "<br>the best config " in words
    assert "<caption>predicted times by workload</caption>" in words and "nothing was measured" in words
    shown = figure_bundle(search)
    ran = next(t for t in shown[PLOTLY_MIME]["data"] if t.get("name") == "ran")
    assert len(ran["x"]) == known + stats.evaluated
    drawn = search.plot()
    assert [row["time_us"] for row in drawn.table if row["record"] == "Evaluated" and not row["failure"]] == ran["y"]
    assert drawn.df["time_us"].min() == drawn.table[known + stats.evaluated - 1]["best_so_far_us"]
    saved = drawn.save(tmp_path / "search.csv").read_text()
    assert saved == drawn.csv == search.plot().save(tmp_path / "search.csv").read_text()
    assert "replayed on" in search.plot_replay().figure.layout.title.text


def test_a_live_figure_follows_its_search_and_loads_at_once(shell: InteractiveShell) -> None:
    """anywidget 0.11 drops a widget whose module takes over two seconds to load, as plotly's own does."""
    shell.run_cell_magic("cutegen_tune", f"{OPTIONS} --budget 30 --seed 5", CELL)
    search = shell.user_ns["search"]
    shown = search.show()
    drawn = shown._figure
    evaluations: list[int] = []
    drawn.observe(lambda change: evaluations.append(_evaluated(change["new"])), "figure")
    while not evaluations and search.status == "running":
        time.sleep(0.02)
    search.cancel().wait(30)
    shown.wait()
    assert evaluations and evaluations[-1] > 0
    assert len(drawn._esm) < 4000 and "react" in drawn._plotly


def _evaluated(figure: dict[str, Any]) -> int:
    return next(len(part["x"]) for part in figure["data"] if part.get("name") == "best so far")


@pytest.mark.usefixtures("without_displays")
def test_nothing_to_replay_and_a_bad_budget_are_one_line(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    other = CELL.replace("* 2", "* 3")
    capsys.readouterr()  # of a search that has just ended
    for options, says in (
        (f"{OPTIONS} --replay", "holds no evaluation"),
        (f"{OPTIONS} --budget 0", "allows no config"),
        (f"{OPTIONS} --max-seconds -1", "--max-seconds -1 allows no time"),
        (f"{OPTIONS} --max-seconds nan", "--max-seconds nan allows no time"),
    ):
        assert not shell.run_cell(f"%%cutegen_tune {options}\n{other}").success
        error = capsys.readouterr().out
        assert says in error and error.count("\n") == 1


PLAIN = """
import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

@cute.kernel
def double(mX: cute.Tensor, mY: cute.Tensor):
    lane, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    for column in range(lane, mX.shape[1], 512):
        mY[row, column] = mX[row, column] * 2.0

@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    double(x, y).launch(grid=[x.shape[0], 1, 1], block=[512, 1, 1], stream=stream)
"""


def test_a_kernel_without_tunable_is_made_a_template_in_the_background(shell: InteractiveShell, tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(PLAIN)
    options = f"{OPTIONS} --kernel {tmp_path / 'plain.py'} --refactor --budget 2 --out made --wait"
    shell.run_cell_magic("cutegen_tune", options, CELL)
    made = shell.user_ns["made"]
    assert made.status == "done" and "block=[threads, 1, 1]" in made.template
    assert "threads: 512 on line 15 in 2 places" in summary_bundle(made)["text/html"]


def test_a_session_that_closes_ends_its_searches(tmp_path: Path) -> None:
    from cutegen_lab.problems import read_text
    from cutegen_lab.session import Session
    from cutegen_lab.session.searching import Searching
    from cutegen_lab.session.tune import TuneSettings, from_template

    problem = read_text(CELL, name="closing")
    with Session.open(tmp_path) as session:
        tunable = from_template(problem, "sm_90a")
        searching = Searching(session.services, problem, tunable, TuneSettings(device="emulator")).start()
        assert searching.status == "running"
        with pytest.raises(InputError, match="is running"):
            searching.start()
    assert searching.status == "cancelled"
