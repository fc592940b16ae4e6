"""Comments and pins in the life of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutegen_lab.core.candidate import Candidate, Proposal
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.growth import can_retry
from cutegen_lab.core.hints import Advice, Hint
from cutegen_lab.core.run import (
    Answer,
    Answered,
    Event,
    Generated,
    GenerateFailed,
    NoteLifted,
    RunSettings,
    RunState,
    Step,
    StepStarted,
    Stopped,
)
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.loop import AskReview, Compile, Finish, Generate, advance, fold, next_step
from cutegen_lab.loop.driver import Driver, ThreadedDriver
from cutegen_lab.loop.notes import note_event
from cutegen_lab.stores.sqlite import SqliteStore
from tests.loop.events import compile_failed, passing
from tests.loop.scripted import ScriptedProvider, Waiting, driving, services, started

KERNEL = "def launch(x, *, stages=3):\n    return x\n"
OTHER = KERNEL.replace("3", "4")
APPROVE = Answered(Answer("approve"))


def with_text(events: list[Event], source: str) -> list[Event]:
    """A passing candidate's events, with this text."""
    first = events[0]
    assert isinstance(first, Generated)
    candidate = Candidate(first.candidate.id, first.candidate.parent_id, "scripted", Proposal(source, "a step"))
    return [Generated(candidate), *events[1:]]


def noting(state: RunState, *told: tuple[str, str, str]) -> RunState:
    for verb, argument, words in told:
        state = advance(state, note_event(state, verb, argument, words))  # type: ignore[arg-type]
    return state


def reviewed(**settings: bool) -> RunState:
    return fold([started(settings=RunSettings(**settings)), *with_text(passing("c1"), KERNEL)])  # type: ignore[arg-type]


def refused(**settings: bool) -> RunState:
    """c1 was approved with a pin on its stages, and c2 has others; the gate has seen it."""
    state = noting(reviewed(**settings), ("pin", "stages", "keep the pipeline"))
    state = advance(advance(state, APPROVE), with_text(passing("c2", "c1"), OTHER)[0])
    failed = compile_failed("c2")
    return advance(state, type(failed)(**{**vars(failed), "verdict": Verdict.PIN_BROKEN}))


def test_they_stay_with_the_run_and_go_to_the_provider() -> None:
    state = noting(reviewed(), ("comment", "c1:2", "why?"), ("pin", "stages", "keep the pipeline"))
    assert [(note.id, note.pin, note.quote) for note in state.notes.values()] == [
        ("n1", False, "    return x"), ("n2", True, "stages = 3"),
    ]  # fmt: skip
    assert state.step is Step.REVIEW
    effect = next_step(advance(state, APPROVE))
    assert isinstance(effect, Generate) and effect.request.notes == tuple(state.notes.values())
    state = noting(state, ("lift", "n1", ""), ("comment", "1", "again"))
    assert list(state.notes) == ["n2", "n3"], "an id is used once"


def test_what_is_wrong_with_one_is_said() -> None:
    state = reviewed()
    for told, says in (
        (("comment", "c9:1", "x"), "no candidate c9. Candidates: c1"),
        (("comment", "1", "  "), "the comment is empty"),
        (("pin", "7", ""), "c1 has no text at lines 7 to 7"),
        (("lift", "n1", ""), "no comment or pin 'n1'. Comments and pins: none"),
    ):
        with pytest.raises(InputError, match=says):
            noting(state, told)
    with pytest.raises(InputError, match=r"there is no candidate\. Candidates: none yet"):
        noting(fold([started()]), ("pin", "stages", ""))


def test_a_candidate_that_breaks_a_pin_waits_for_the_analyst() -> None:
    state = refused()
    assert (state.step, state.current_id) == (Step.REVIEW, "c2") and "lift the pin" in state.problem_note
    assert next_step(state) == AskReview("c2", None)
    for kind in ("approve", "approve_unproven"):
        with pytest.raises(InputError):
            advance(state, Answered(Answer(kind)))  # type: ignore[arg-type]
    again = advance(state, Answered(Answer("reject", text="no")))
    effect = next_step(again)
    assert isinstance(effect, Generate) and effect.request.parent and effect.request.parent.candidate.id == "c1"
    assert len(effect.request.notes) == 1


def test_lifting_the_pin_has_it_judged() -> None:
    state = refused()
    two = noting(state, ("pin", "c1:2", ""), ("pin", "c1:launch", ""))
    assert advance(two, NoteLifted("n1")).step is Step.REVIEW, "another pin is broken still"
    state = advance(advance(two, NoteLifted("n3")), NoteLifted("n1"))
    assert next_step(state) == Compile("c2") and "c2" not in state.trials and not state.problem_note
    for event in passing("c2", "c1")[1:]:
        state = advance(state, event)
    assert advance(state, APPROVE).accepted == ("c1", "c2")


def test_lifting_changes_no_other_candidates_state() -> None:
    answered = advance(refused(), Answered(Answer("reject", text="no")))
    assert advance(answered, NoteLifted("n1")).step is Step.GENERATE
    passed = noting(reviewed(), ("pin", "stages", ""))
    assert advance(passed, NoteLifted("n1")).step is Step.REVIEW


def test_unattended_a_broken_pin_is_a_failure_to_fix() -> None:
    state = refused(auto=True)
    effect = next_step(state)
    assert isinstance(effect, Generate) and effect.request.kind == "fix"


def test_an_edit_that_breaks_a_pin_is_refused_at_once() -> None:
    state = noting(reviewed(), ("pin", "stages", "keep the pipeline"))
    with pytest.raises(InputError, match=r"breaks pin n1 .“keep the pipeline”.: `stages` of c1 must not change"):
        advance(state, Answered(Answer("edit", text=OTHER)))
    assert advance(state, Answered(Answer("edit", text=KERNEL + "# more\n"))).current_id == "c2"


def test_a_finished_run_takes_comments_and_pins_and_stays_finished() -> None:
    done = advance(reviewed(), Stopped("enough"))
    state = noting(done, ("pin", "stages", ""), ("comment", "1", "for later"))
    assert isinstance(next_step(state), Finish) and list(state.notes) == ["n1", "n2"]
    assert list(advance(state, NoteLifted("n1")).notes) == ["n2"]


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    return SqliteStore(tmp_path / "lab.db")


def begun(store: SqliteStore, provider: ScriptedProvider, kind: type[Driver] = Driver) -> Driver:
    event = started()
    store.append("r1", event, fold([event]))
    return driving(services(store, provider), kind)


def test_a_driver_refuses_what_breaks_a_pin_before_it_is_compiled(store: SqliteStore) -> None:
    driver = begun(store, ScriptedProvider([KERNEL, OTHER, KERNEL + "# three\n"]))
    driver.work()
    driver.note("pin", "stages", "keep the pipeline")
    driver.answer(Answer("approve"))
    state = driver.work()
    trial = state.trials["c2"]
    assert trial.verdict is Verdict.PIN_BROKEN and "c2" not in state.compiled
    assert trial.reason.startswith("it breaks pin n1") and trial.diagnostics[0].line == 1
    assert fold(stored.event for stored in store.events("r1")) == state, "it comes back from the store"
    driver.answer(Answer("reject", text="as pinned, please"))
    assert driver.work().trials["c3"].verdict.passed
    assert "c2" in driver.state.trials


def test_a_comment_does_not_disturb_the_step_at_work(store: SqliteStore) -> None:
    driver = begun(store, ScriptedProvider([KERNEL, "slow 0.3\ntime 9"]), ThreadedDriver)
    assert isinstance(driver, ThreadedDriver)
    waiting = Waiting()
    driver.subscribe(waiting)
    driver.start()
    driver.wait(10)
    driver.answer(Answer("approve"))
    waiting.until(lambda n: n.event and n.event.event == StepStarted(Step.COMPILE, "c2"))
    driver.note("comment", "c1:2", "said meanwhile")
    state = driver.wait(10)
    driver.close()
    assert state.trials["c2"].verdict.passed and state.notes["n1"].text == "said meanwhile"
    kinds = [stored.event.type for stored in store.events("r1")]
    assert [k for k in kinds if k == "compiled"] == ["compiled", "compiled"], "no step was done twice"


@pytest.mark.parametrize(("auto", "step"), [(False, Step.REVIEW), (True, Step.DONE)])
def test_a_pin_that_leaves_the_provider_nothing_can_be_lifted_and_asked_again(auto: bool, step: Step) -> None:
    settings = RunSettings(provider="templates", auto=auto)
    state = fold([started(settings=settings), *with_text(passing("c1"), KERNEL)])
    state = noting(state, ("pin", "stages", "keep the pipeline"))
    state = advance(advance(state, APPROVE), GenerateFailed("every config breaks a pin: n1", exhausted=True))
    assert state.step is step and state.problem_note == "every config breaks a pin: n1"
    if not auto:
        assert state.problem_hint == Hint(Advice.LIFT_PIN) and can_retry(state)
        state = advance(advance(state, NoteLifted("n1")), Answered(Answer("retry")))
        assert isinstance(next_step(state), Generate)
