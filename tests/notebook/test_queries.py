"""What a view asks of a run's plots: JSON that says what Python's plots do."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cutegen_lab.core.errors import InputError
from cutegen_lab.core.roofline import GPUS
from cutegen_lab.notebook.plots import PLOTS, Subject
from cutegen_lab.notebook.plots.plot_queries import plot_list
from cutegen_lab.notebook.queries import answer
from cutegen_lab.notebook.run import NotebookRun
from cutegen_lab.profiles.rows import rows
from cutegen_lab.session import Session
from cutegen_lab.views.model import Query
from cutegen_lab.views.profile import PlotList, PlotView
from tests.packaging.make_samples import ANSWERS, plots_samples
from tests.profiles.recorded import kept, recorded


@pytest.fixture
def run(tmp_path: Path) -> Iterator[NotebookRun]:
    with Session.open(tmp_path) as session:
        yield NotebookRun(session.attach(kept("matmul", tmp_path)))


def ask(run: NotebookRun, query: str, candidate: str = "c2", text: str = "") -> Any:
    """The answer, after JSON as strict as a browser's."""
    asked = Query.model_validate({"request_id": "1", "query": query, "candidate_id": candidate, "text": text})
    return json.loads(json.dumps(answer(run.handle, asked), allow_nan=False))


def test_plots_are_listed_without_drawing_them(run: NotebookRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(run.handle), "timelines", lambda *_: pytest.fail("a block was executed"))
    listed = PlotList.model_validate(ask(run, "plots"))
    assert [each.name for each in listed.plots] == list(PLOTS)
    assert {each.name for each in listed.plots if each.missing} == {"stalls"}
    assert all(each.help for each in listed.plots)


def test_what_is_missing_is_named_with_what_to_do() -> None:
    state = replace(recorded("matmul").state, trials={}, compiled={})
    for each in plot_list(Subject(rows(state), "c1", GPUS["H200"])).plots:
        assert ": " in each.missing, each.name


@pytest.mark.parametrize("name", ["roofline", "memory", "checks", "times"])
def test_a_plot_is_that_of_the_notebook(run: NotebookRun, name: str) -> None:
    view, plot = PlotView.model_validate(ask(run, "plot", text=name)), run.plot(name, "c2")
    assert view.csv == plot.csv and f"<b>{view.title}</b>" in plot.figure.layout.title.text
    assert view.figure.data == json.loads(plot.figure.to_json())["data"]
    assert [table.count for table in view.tables] == [len(table.rows) for table in view.tables]
    assert sum(table.count for table in view.tables) == len(list(csv.DictReader(io.StringIO(view.csv))))


def test_an_unknown_plot_or_candidate_is_refused(run: NotebookRun) -> None:
    with pytest.raises(InputError, match=r"no plot 'rofline'.*Did you mean 'roofline'"):
        ask(run, "plot", text="rofline")
    for query in ("plots", "plot"):
        with pytest.raises(InputError, match="no candidate c7"):
            ask(run, query, "c7")


def test_the_script_of_plotly_is_text(run: NotebookRun) -> None:
    assert "downloadImage" in ask(run, "plotly")


def test_the_front_ends_samples_are_what_python_says() -> None:
    """Without plotly's template, which changes with its version."""
    for name, text in plots_samples().items():
        kept_text = (ANSWERS / name).read_text(encoding="utf-8")
        assert _plain(kept_text) == _plain(text), "run `python tests/packaging/make_samples.py`"


def _plain(text: str) -> Any:
    found = json.loads(text)
    for each in found.values():
        if isinstance(each, dict):
            del each["figure"]["layout"]["template"]
    return found
