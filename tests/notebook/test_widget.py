"""The widget's Python half: what the front end may send, and what comes back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from cutegen_lab.core.errors import SetupError
from cutegen_lab.core.run import RunSettings
from cutegen_lab.exports import FORMATS
from cutegen_lab.notebook import widget as module
from cutegen_lab.notebook.run import NotebookRun
from cutegen_lab.notebook.widget import WIDGET_MIME, RefineWidget
from cutegen_lab.problems import read_text
from cutegen_lab.session import Session
from tests.notebook.test_magics import CELL

pytestmark = pytest.mark.kernel


@pytest.fixture(scope="module")
def run(shell: InteractiveShell) -> NotebookRun:
    shell.run_cell_magic("cutegen", "--name live --wait --max-steps 2 --device emulator --out live", CELL)
    started = shell.user_ns["live"]
    assert isinstance(started, NotebookRun)
    return started


@pytest.fixture
def widget(run: NotebookRun, monkeypatch: pytest.MonkeyPatch) -> RefineWidget:
    made = RefineWidget(run)
    made.replies = []
    monkeypatch.setattr(made, "send", lambda content, buffers=None: made.replies.append(content))
    return made


def sent(widget: RefineWidget, content: Any) -> dict[str, Any]:
    widget._answer(widget, content, [])
    return widget.replies[-1]


def test_the_view_is_synced_and_the_bundle_is_live_with_a_snapshot(widget: RefineWidget, run: NotebookRun) -> None:
    assert widget.view["run_id"] == run.run_id
    bundle = widget.bundle()
    assert bundle[WIDGET_MIME]["model_id"] == widget.model_id
    assert "text/html" in bundle and "text/plain" in bundle
    assert repr(widget) == f"RefineWidget({run.run_id!r})"


@pytest.mark.parametrize(
    "content",
    [
        "approve", None, {"verb": "approve"}, {"request_id": "1", "verb": "launch_missiles"},
        {"request_id": "1", "verb": "edit", "text": "x" * 500_000}, {"request_id": "1", "verb": "stop", "extra": 1},
    ],
)  # fmt: skip
def test_what_is_no_command_is_refused(widget: RefineWidget, content: Any) -> None:
    reply = sent(widget, content)
    assert reply["ok"] is False and reply["error"].startswith("not a command")


def test_a_verb_the_run_does_not_take_is_explained(widget: RefineWidget) -> None:
    reply = sent(widget, {"request_id": "7", "verb": "branch", "target_id": "c99"})
    assert reply["request_id"] == "7" and reply["ok"] is False and "c99" in reply["error"]


def test_comments_and_pins_from_the_front_end(widget: RefineWidget, run: NotebookRun) -> None:
    for verb, place, words in (("comment", "c1:1-2", "why?"), ("pin", "c1:vec", "")):
        assert sent(widget, {"request_id": "n", "verb": verb, "target_id": place, "text": words})["ok"]
    shown = run.view().candidates[0].notes
    assert [(note.what, note.state) for note in shown] == [("`vec` of c1", "kept"), ("lines 1–2 of c1", "open")]
    refused = sent(widget, {"request_id": "n", "verb": "pin", "target_id": "c1:9999"})
    assert not refused["ok"] and "c1 has no text at lines 9999 to 9999" in refused["error"]
    for note in shown:
        assert sent(widget, {"request_id": "n", "verb": "lift", "target_id": note.id})["ok"]


def asked(widget: RefineWidget, **content: Any) -> dict[str, Any]:
    """The answer to a query, which another thread finds."""
    before, deadline = len(widget.replies), time.monotonic() + 60
    widget._answer(widget, {"request_id": "q", "candidate_id": "c1", **content}, [])
    while len(widget.replies) == before and time.monotonic() < deadline:
        time.sleep(0.02)
    return widget.replies[-1]


def test_machine_code_is_looked_up_line_by_line(widget: RefineWidget, run: NotebookRun) -> None:
    reply = asked(widget, query="machine_code", general=True)
    assert reply["ok"] and reply["request_id"] == "q"
    ptx, lines = reply["data"]["ptx"], run.view().candidates[0].source.splitlines()
    stores = {line["line"] for line in ptx if line["text"].strip().startswith("st.global")}
    assert len(stores) == 1 and "copy" in lines[stores.pop() - 1]
    assert reply["data"]["sass"] or "nvdisasm" in reply["data"]["sass_note"]
    failed = asked(widget, query="machine_code", candidate_id="c9")
    assert not failed["ok"] and "c9" in failed["error"]


def test_plots_are_looked_up_as_the_notebook_draws_them(widget: RefineWidget, run: NotebookRun) -> None:
    listed = asked(widget, query="plots")
    assert listed["ok"] and "memory" in [each["name"] for each in listed["data"]["plots"] if not each["missing"]]
    reply = asked(widget, query="plot", text="memory")
    assert reply["ok"] and reply["data"]["csv"] == run.plot("memory", "c1").csv
    failed = asked(widget, query="plot", text="memory", candidate_id="c9")
    assert not failed["ok"] and "has no candidate c9" in failed["error"]


def test_layouts_are_listed_with_lines_of_the_shown_text_and_drawn_one_by_one(
    widget: RefineWidget, run: NotebookRun
) -> None:
    listed = asked(widget, query="layouts", general=True)
    assert listed["ok"], listed["error"]
    made, source = listed["data"]["layouts"], run.view().candidates[0].source.splitlines()
    assert made and made[0]["text"] == source[made[0]["lines"][0] - 1].strip()[:100]
    run.handle.specialise()
    shown = run.view().candidates[0].specialised
    assert shown is not None
    of_the_shown = asked(widget, query="layouts")["data"]["layouts"]
    assert [one["layout"] for one in of_the_shown] == [one["layout"] for one in made]
    texts = shown.source.splitlines()
    assert all(one["text"] == texts[one["lines"][0] - 1].strip()[:100] for one in of_the_shown if one["lines"])
    drawn = asked(widget, query="layout", text="0")["data"]
    assert drawn["number"] == 0 and drawn["svg"].startswith("<svg ") and made[0]["layout"] in drawn["title"]
    assert drawn["tables"][0]["rows"]
    for number in ("999", "-1", "x", "9" * 9000):
        failed = asked(widget, query="layout", text=number)
        assert not failed["ok"] and "there is no layout" in failed["error"]


def test_a_draft_is_checked_as_it_is_written(widget: RefineWidget) -> None:
    reply = asked(widget, query="check", text="import os\n")
    assert reply["ok"] and {(each["line"], each["code"]) for each in reply["data"]} >= {(1, "G04-import")}
    assert asked(widget, query="check", text="")["data"] != asked(widget, query="check", text="x = (")["data"]


def test_a_candidate_is_exported_into_the_folder_of_the_notebook(widget: RefineWidget, run: NotebookRun) -> None:
    listed = asked(widget, query="export", text="")
    assert listed["ok"] and [each["name"] for each in listed["data"]["formats"]] == list(FORMATS)
    assert listed["data"]["paths"] == []
    written = asked(widget, query="export", text="torch-op", general=True)
    assert written["data"]["paths"] == [f"{run.run_id}-c1.py"]
    assert "torch.library.custom_op" in Path(f"{run.run_id}-c1.py").read_text()
    for content in ({"text": "weel"}, {"text": "wheel", "candidate_id": "c9"}):
        failed = asked(widget, query="export", **content)
        assert not failed["ok"] and ("wheel" in failed["error"] or "c9" in failed["error"])


@pytest.mark.parametrize("content", [{"query": "environment"}, {"query": "check", "text": 3}])
def test_what_is_no_query_is_refused(widget: RefineWidget, content: Any) -> None:
    reply = sent(widget, {"request_id": "9", "candidate_id": "c1", **content})
    assert reply["ok"] is False and reply["error"].startswith("not a query")


def test_approve_from_the_front_end_moves_the_run(widget: RefineWidget, run: NotebookRun) -> None:
    assert sent(widget, {"request_id": "8", "verb": "approve"}) == {
        "request_id": "8", "ok": True, "error": "", "data": None,
    }  # fmt: skip
    run.wait()
    deadline = time.monotonic() + 60  # texts for one config are made meanwhile
    while "c2" not in [c["id"] for c in widget.view["candidates"]] and time.monotonic() < deadline:
        time.sleep(0.05)
    assert widget.view["incumbent_id"] == "c1"
    assert "c2" in [c["id"] for c in widget.view["candidates"]]


def test_a_missing_bundle_says_how_to_build_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(module, "STATIC", tmp_path)
    with pytest.raises(SetupError, match="make labextension"):
        module.bundle_path("widget.js")


def test_a_run_that_is_driven_elsewhere_is_followed(tmp_path: Path) -> None:
    problem = read_text(CELL, name="elsewhere")
    with Session.open(tmp_path) as driving, Session.open(tmp_path) as watching:  # as two notebooks
        handle = driving.start(problem, RunSettings(device="emulator"))
        shown = RefineWidget(NotebookRun(watching.attach(handle.run_id)))
        try:
            assert shown.view["status"] != "interrupted" and shown.view["note"].startswith("driven by process ")
            handle.wait(60)
            until(lambda: shown.view["status"] == "review" and shown.view["current_id"] == "c1")
            handle.stop()
            until(lambda: shown.view["status"] == "done")
        finally:
            shown.close()


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_it_stops_looking_when_the_session_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = list[str]()
    monkeypatch.setattr(module._log, "exception", lambda *said: failures.append(said[0]))
    problem = read_text(CELL, name="ends")
    with Session.open(tmp_path) as driving:
        handle = driving.start(problem, RunSettings(device="emulator"))
        with Session.open(tmp_path) as watching:
            shown = RefineWidget(NotebookRun(watching.attach(handle.run_id)))
        (thread,) = (t for t in threading.enumerate() if t.name == f"cutegen-view-{handle.run_id}")
        until(lambda: not thread.is_alive())
        shown.close()
        assert not failures
