"""Comments and pins through the handle: they outlive the process, travel in an archive, and show in every front end."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cutegen_lab.cli.review import review
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.run import Step
from cutegen_lab.notebook.run import NotebookRun
from cutegen_lab.session import Session
from cutegen_lab.views.html import RunPage, fragment, report
from cutegen_lab.views.text import evidence_table
from tests.loop.scripted import PROBLEM, ScriptedCompiler, ScriptedDevice, ScriptedJudge, ScriptedProvider
from tests.loop.test_notes import KERNEL, OTHER

HOSTILE = "\x1b]0;owned\x07<img src=x onerror=alert(1)>\u202e"


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[[str], Session]]:
    sessions: list[Session] = []

    def open_one(name: str) -> Session:
        device = ScriptedDevice()
        sessions.append(
            Session.open(
                tmp_path / name,
                compiler=ScriptedCompiler(),  # type: ignore[arg-type]
                judge=ScriptedJudge(),  # type: ignore[arg-type]
                device=lambda kind: device,  # type: ignore[arg-type, return-value]
                provider=lambda settings: ScriptedProvider([KERNEL, OTHER, KERNEL]),
                workloads=lambda problem, device: problem.check_workloads,
            )
        )
        return sessions[-1]

    yield open_one
    for session in sessions:
        session.close()


def test_they_outlive_the_process_and_travel_with_the_run(opened: Callable[[str], Session], tmp_path: Path) -> None:
    first = opened("here")
    run = first.start(PROBLEM)
    run.wait(10)
    run.comment("c1", lines=(1, 2), text="why?")
    run.pin("c1", name="stages", text=HOSTILE)
    run.pin("c1", lines=(2,))
    run.lift("n3")
    first.close()
    again = opened("here").attach(run.run_id)
    assert [(n.id, n.pin, n.first, n.last, n.text) for n in again.state.notes.values()] == [
        ("n1", False, 1, 2, "why?"), ("n2", True, 1, 1, HOSTILE),
    ]  # fmt: skip
    again.approve()
    assert again.wait(10).step is Step.REVIEW and again.view().candidates[-1].verdict == "pin_broken"
    assert "approve_unproven" not in again.view().verbs
    again.stop()
    (sent,) = again.export_as(tmp_path / "run.cutegen")
    there = opened("there").import_run(sent)
    assert there.state.notes == again.state.notes
    with pytest.raises(InputError, match="read from"):
        there.comment("c1", lines=(1,), text="mine")
    with pytest.raises(InputError, match="read from"):
        there.lift("n1")
    assert there.view().verbs == []


def test_the_state_of_each_is_told_beside_every_candidate(opened: Callable[[str], Session]) -> None:
    run = NotebookRun(opened("here").start(PROBLEM))
    run.wait(10)
    run.comment("c1", lines=(1, 2), text=HOSTILE).pin("c1", name="stages", text="keep the pipeline").approve()
    view = run.view()
    seen = {c.id: [(n.id, n.state, n.first, n.last) for n in c.notes] for c in view.candidates}
    assert seen == {
        "c1": [("n2", "kept", 1, 1), ("n1", "open", 1, 2)],
        "c2": [("n2", "broken", 1, 1), ("n1", "open", 2, 2)],
    }
    assert view.status == "review" and view.note == "c2 is not judged: lift the pin that it breaks, or reject it"
    (finding,) = view.candidates[1].diagnostics
    assert (finding.code, finding.line, finding.excerpt) == ("pin", 1, "- stages = 3\n+ stages = 4")
    table = evidence_table(view, "c2")
    assert "pin n2 on `stages` of c1 (stages = 3), broken: keep the pipeline" in table
    assert "comment n1 on lines 1–2 of c1, open: \\x1b]0;owned" in table and "\x1b" not in table
    for page in (fragment(view), report([RunPage(view)])):
        assert "keep the pipeline" in page and "<img" not in page and "\x1b" not in page and "\u202e" not in page
    run.lift("n2")
    assert run.handle.state.trials["c2"].verdict.passed


def test_a_run_at_work_is_not_waited_for(opened: Callable[[str], Session]) -> None:
    """A comment or pin is there at once."""
    run = NotebookRun(opened("here").start(PROBLEM))
    run.wait(10)
    waited: list[object] = []
    run.wait = lambda *given: waited.append(given)  # type: ignore[method-assign, assignment]
    run.comment("c1", lines=(1,), text="x").pin("c1", name="stages")
    assert not waited and len(run.handle.state.notes) == 2
    run.lift("n1")
    assert waited


def test_at_a_terminal(
    opened: Callable[[str], Session], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = opened("here").start(PROBLEM)
    run.wait(10)
    said = ["c", "c1:1-2", "why?", "p", "stagse", "", "p", "stages", "keep it", "l", "n1", "a for ever", "a 1 step"]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(said) + "\n"))
    review(run)
    asked = capsys.readouterr().err
    assert "[c] comment" in asked and "[p] pin" in asked and "Did you mean 'stages'?" in asked
    assert "is no scope of an approval" in asked and run.state.scope is not None
    assert [note.id for note in run.state.notes.values()] == ["n2"] and run.state.accepted == ("c1",)
    assert run.wait(10).current_id == "c2"
    monkeypatch.setattr("sys.stdin", io.StringIO("l\nn2\n"))
    review(run)  # ends with the pin: the candidate is judged then
    assert run.wait(10).trials["c2"].verdict.passed
