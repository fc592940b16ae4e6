"""The verbs over scripted parts: what scripts, notebooks and the command line stand on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from cutegen_lab.core.candidate import Proposal
from cutegen_lab.core.errors import InputError, ProviderError, SetupError, StoreError
from cutegen_lab.core.hints import Advice, Hint
from cutegen_lab.core.run import Budget, RunSettings, Step
from cutegen_lab.loop.machine import fold
from cutegen_lab.loop.notices import Notice
from cutegen_lab.session import Session
from cutegen_lab.views.hints import NOTEBOOK
from cutegen_lab.views.model import RunView
from tests.loop.scripted import PROBLEM, ScriptedCompiler, ScriptedDevice, ScriptedJudge, ScriptedProvider, Waiting

AUTO = RunSettings(auto=True, budget=Budget(max_steps=3))
Opener = Callable[..., Session]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opener]:
    sessions: list[Session] = []

    def open_one(sources: Sequence[str] = ("time 10", "time 9"), delay: str = "", **parts: object) -> Session:
        device = ScriptedDevice()
        session = Session.open(
            tmp_path / "lab",
            compiler=parts.get("compiler") or ScriptedCompiler(),  # type: ignore[arg-type]
            judge=ScriptedJudge(),  # type: ignore[arg-type]
            device=lambda kind: device,  # type: ignore[arg-type, return-value]
            provider=lambda settings: ScriptedProvider(sources, delay=delay),
            workloads=lambda problem, device: problem.check_workloads,
        )
        sessions.append(session)
        return session

    yield open_one
    for session in sessions:
        session.close()


def test_importing_the_session_loads_nothing_heavy() -> None:
    script = (
        "import sys, cutegen_lab, cutegen_lab.session, cutegen_lab.cli\n"
        "print([m for m in ('torch', 'cutlass', 'numpy', 'pydantic', 'openai', 'rich') if m in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    assert told.stdout.strip() == "[]"


def test_the_analysts_way_through_a_run(opened: Opener) -> None:
    session = opened(["time 10", "time 12", "time 8"])
    run = session.start(PROBLEM)
    assert run.run_id.startswith("soft-max-") and len(run.run_id) == len("soft-max-") + 4
    state = run.wait(10)
    assert (state.step, state.current_id) == (Step.REVIEW, "c1")
    assert run.view().verbs[0] == "approve"
    run.approve()
    assert run.wait(10).current_id == "c2"
    run.reject("slower")
    assert run.wait(10).current_id == "c3"
    run.edit("time: 5\n# mine")
    state = run.wait(10)
    assert state.candidates["c4"].source == "time: 5\n# mine"
    run.approve()
    state = run.wait(10)
    assert (state.outcome, state.accepted) == ("accepted", ("c1", "c4"))
    run.branch("c3", "again")
    assert run.wait(10).outcome == "accepted"  # the script has ended
    assert run.view().status == "done"


def test_the_events_of_a_run_are_read_and_folded_once(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    session, folded, read = opened(), [], []
    store = session.services.store
    for module in ("cutegen_lab.session.driven_run", "cutegen_lab.loop.history"):
        monkeypatch.setattr(f"{module}.fold", lambda events: folded.append(1) or fold(events))
    events = store.events
    monkeypatch.setattr(store, "events", lambda run_id: read.append(1) or events(run_id))
    run = session.start(PROBLEM)
    assert run.wait(10).step is Step.REVIEW and run.view().current_id == "c1"
    assert (len(folded), len(read)) == (1, 0)
    run.close()
    run.approve()  # takes the lease again: another process may have gone on meanwhile
    assert run.wait(10).current_id == "c2" and run.view().current_id == "c2"
    assert (len(folded), len(read)) == (2, 1)


def test_what_to_do_about_a_failure_is_stored_as_a_code(opened: Opener) -> None:
    class Capped(ScriptedProvider):
        def propose(self, *_: object) -> Proposal:
            raise ProviderError("the token cap is reached", Hint(Advice.MORE_TOKENS))

    run = opened().start(PROBLEM, provider=Capped([]))
    assert run.wait(10).failed_step is Step.GENERATE
    run.close()
    again = opened().attach(run.run_id)
    assert again.state.problem_note == "the token cap is reached"
    assert "the token cap is reached. Raise --max-tokens," in again.view().note
    assert "the token cap is reached. Raise --budget," in again.view(NOTEBOOK).note


def test_blocking_runs_and_the_list(opened: Opener) -> None:
    session = opened()
    run = session.run(PROBLEM, AUTO)
    assert run.state.outcome == "accepted"
    (line,) = session.runs()
    assert (line.run_id, line.step, line.outcome, line.candidates) == (run.run_id, Step.DONE, "accepted", 2)
    assert "accepted" in repr(run)
    session.services.store.trash(run.run_id)
    assert session.runs() == [] and session.attach(run.run_id) is run


def test_accepted_kernels_are_kept_as_files(opened: Opener, tmp_path: Path) -> None:
    session = opened(["time 10\n", "time 9\n"])
    run = session.run(PROBLEM, AUTO)
    kept = sorted(p.name for p in (tmp_path / "lab" / "kernels").iterdir())
    assert kept == [f"{run.run_id}-c1.py", f"{run.run_id}-c2.py"]
    text = run.kernel_path("c2").read_text()
    assert text.endswith("\n\ntime 9\n")
    head = text.removesuffix("\n\ntime 9\n").splitlines()
    assert all(line.startswith("# ") for line in head)
    for fact in (run.run_id, "passed", "9.0 us predicted", "1.00e-03", "nvidia-cutlass-dsl 4.8.1", "sm_90a"):
        assert fact in text, fact
    run.kernel_path("c1").unlink()  # as if the process had died before it was written
    run.close()
    run.branch("c1")
    assert run.kernel_path("c1").exists()


def test_export(opened: Opener, tmp_path: Path) -> None:
    session = opened(["wrong"])
    run = session.start(PROBLEM, RunSettings(budget=Budget(max_fixes=0)))
    run.wait(10)
    with pytest.raises(InputError, match="no accepted kernel"):
        run.export(tmp_path / "k.py")
    assert "wrong_result" in run.export(tmp_path / "deep" / "k.py", "c1").read_text()
    with pytest.raises(InputError, match="no candidate 'c7'"):
        run.export(tmp_path / "k.py", "c7")


def test_a_run_as_one_page(opened: Opener, tmp_path: Path) -> None:
    run = opened().run(PROBLEM, AUTO)
    page = run.export_page(tmp_path / "page.html").read_text()
    assert run.run_id in page and "<script" not in page and "src=" not in page


def test_the_name_of_a_file_says_what_is_written(opened: Opener, tmp_path: Path) -> None:
    run = opened().run(PROBLEM, AUTO)
    assert run.export_as(tmp_path / "k.py")[0].read_text() == run.export(tmp_path / "same.py").read_text()
    assert run.export_as(tmp_path / "p.html")[0].read_text().startswith("<!")
    saved = run.export_as(tmp_path / "a.cutegen-run.json")[0]
    assert RunView.model_validate_json(saved.read_text()) == run.view()
    assert run.export_as(saved) == (saved,), "its own file may be written again"
    (tmp_path / "mine.cutegen-run.json").write_text('{"mine": 1}')
    with pytest.raises(InputError, match="cutegen did not write it"):
        run.export_as(tmp_path / "mine.cutegen-run.json")
    for name in ("k.txt", "k.json", "k.ipynb", "kernel", "k.PY.bak"):
        with pytest.raises(InputError, match=r"Let the file name end in \.py .* \.html .* \.cutegen-run\.json"):
            run.export_as(tmp_path / name)
        assert not (tmp_path / name).exists()


def test_text_that_cannot_be_recorded_changes_nothing(opened: Opener) -> None:
    run = opened().start(PROBLEM)
    before = run.wait(10)
    for verb in (run.edit, run.reject, lambda text: run.branch("c1", text)):
        with pytest.raises(InputError, match=r"cannot be recorded|half of a surrogate pair"):
            verb("time: 5 # \ud800")
    assert run.state == before
    run.edit("time: 5")
    assert run.wait(10).current_id == "c2"


def test_unproven_approval_is_named_on_the_file(opened: Opener) -> None:
    run = opened(["wrong"]).start(PROBLEM, RunSettings(budget=Budget(max_fixes=0)))
    run.wait(10)
    with pytest.raises(InputError, match="approve_unproven"):
        run.approve()
    run.approve_unproven()
    assert "verdict: wrong_result" in run.kernel_path("c1").read_text()


def test_a_run_comes_back_in_a_new_session(opened: Opener) -> None:
    first = opened()
    run = first.start(PROBLEM)
    run.wait(10)
    before = run.view()
    first.close()
    second = opened()
    again = second.attach(run.run_id)
    assert not again.driving
    assert again.view().status == "interrupted" and again.view().verbs == ["resume"]
    assert again.view().candidates == before.candidates
    assert again.wait().step is Step.REVIEW
    again.approve()  # takes the run up first
    assert again.driving
    assert again.wait(10).current_id == "c2"


def test_two_sessions_cannot_drive_one_run(opened: Opener) -> None:
    run = opened().start(PROBLEM)
    run.wait(10)
    other = opened().attach(run.run_id)
    assert other.state == run.state
    with pytest.raises(StoreError, match=f"run {run.run_id} is being driven by process"):
        other.approve()
    run.close()
    other.resume()
    assert other.driving


def test_resume_continues_what_was_stopped(opened: Opener) -> None:
    session = opened(delay="slow 30")
    waiting = Waiting()
    run = session.start(PROBLEM, subscriber=waiting)
    waiting.until(lambda n: getattr(n.event and n.event.event, "step", None) is Step.GENERATE)
    assert run.stop().stopped_at is Step.GENERATE
    assert run.stop().finished
    session.close()
    again = opened().resume(run.run_id)
    assert again.wait(10).current_id == "c1"


def test_a_run_nobody_drives_says_what_to_do(opened: Opener) -> None:
    session = opened(delay="slow 30")
    run = session.start(PROBLEM)
    run.close()
    with pytest.raises(InputError, match=r"this process does not drive it. Call resume\(\) first"):
        run.wait()
    with pytest.raises(StoreError, match="no run 'nothing'"):
        session.attach("nothing")


def test_a_run_is_found_by_its_name_or_the_beginning_of_its_id(opened: Opener) -> None:
    session = opened()
    one = session.run(PROBLEM, RunSettings(auto=True))
    assert session.find(one.run_id) is session.find(one.run_id[:-2]) is session.find(PROBLEM.name) is one
    other = session.run(PROBLEM, RunSettings(auto=True))
    with pytest.raises(InputError, match=f"names 2 runs: {other.run_id}, {one.run_id}"):
        session.find(PROBLEM.name)
    assert session.find(other.run_id) is other
    for unknown in ("nothing", ""):
        with pytest.raises(StoreError, match=f"no run '{unknown}'"):
            session.find(unknown)


def test_bad_settings_leave_no_run_behind(opened: Opener) -> None:
    session = opened()
    with pytest.raises(InputError, match="no speed-of-light figures"):
        session.start(PROBLEM, RunSettings(arch="sm_70", gpu="V100"))
    assert session.runs() == []


def test_subscribers_hear_events_and_lines(opened: Opener) -> None:
    heard: list[Notice] = []
    run = opened().start(PROBLEM, AUTO, subscriber=heard.append)
    run.wait(10)
    assert [n.event.event.type for n in heard if n.event][:3] == ["step_started", "generated", "step_started"]
    assert "proposing 1" in run.log and "proposing 1" in run.view().log
    assert next(n.line for n in heard if n.line) == "proposing 1"


def test_one_failing_subscriber_does_not_silence_the_others(opened: Opener) -> None:
    heard: list[Notice] = []
    run = opened().start(PROBLEM, AUTO, subscriber=lambda notice: 1 / 0)
    unsubscribe = run.subscribe(heard.append)
    run.wait(10)
    assert run.state.outcome == "accepted" and heard
    unsubscribe()


def test_names_of_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with Session.open(tmp_path) as session:
        with pytest.raises(InputError, match=r"unknown provider 'gpt'.*templates, openai, manual"):
            session.start(PROBLEM, RunSettings(provider="gpt"))
        with pytest.raises(InputError, match="replay:FILE"):
            session.start(PROBLEM, RunSettings(provider="replay"))
        with pytest.raises(Exception, match="OPENAI_API_KEY"):
            session.start(PROBLEM, RunSettings(provider="openai"))
        with pytest.raises(InputError, match="unknown device 'tpu'"):
            session.services.device("tpu")
        assert session.services.device("emulator").kind == "emulator"


def test_cuda_asked_for_and_absent(tmp_path: Path) -> None:
    from cutegen_lab.devices.cuda.device import gpu_count

    if gpu_count():
        pytest.skip("this machine has a GPU")
    with Session.open(tmp_path) as session:
        with pytest.raises(SetupError, match="Use the emulator"):
            session.start(PROBLEM, RunSettings(device="cuda", provider="manual"))
        assert session.services.device("auto").kind == "emulator"
        assert session.runs() == []


def test_an_approval_with_a_scope_goes_on_by_itself_and_asks_again(opened: Opener) -> None:
    session = opened(["time 10", "time 9", "time 8", "time 8.5", "time 7"])
    run = session.start(PROBLEM)
    run.wait(10)
    with pytest.raises(InputError, match="'for ever' is no scope"):
        run.approve("for ever")
    run.approve("until slower")
    state = run.wait(10)
    assert (state.step, state.current_id, state.accepted) == (Step.REVIEW, "c4", ("c1", "c2", "c3"))
    view = run.view()
    assert view.scope is not None and (view.scope.text, view.scope.used) == ("until slower", 2)
    assert view.note.startswith("the scope “until slower” has ended: c4 is slower: 8.5 µs predicted")
    assert [c.answer for c in view.candidates[:3]] == [
        "approved, and until slower", *["approved by the scope “until slower”"] * 2
    ]  # fmt: skip
    run.reject("slower")
    assert run.wait(10).current_id == "c5" and run.view().scope is None
