"""The machine as a table: what each event does at each step."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest

from cutegen_lab.core.candidate import Candidate, Proposal
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.gains import floor_us
from cutegen_lab.core.run import (
    Answer,
    Answered,
    Budget,
    Event,
    Generated,
    GenerateFailed,
    Resumed,
    RunSettings,
    RunState,
    Step,
    StepFailed,
    StepStarted,
    Stopped,
)
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.loop import (
    AskReview,
    Check,
    Compile,
    Effect,
    Finish,
    Generate,
    Profile,
    Time,
    advance,
    fold,
    next_step,
)
from cutegen_lab.loop.answers import refuse_new
from tests.loop.events import checked, compile_failed, compiled, generated, passing, profiled, timed
from tests.loop.scripted import started


def run(*events: Event, settings: RunSettings | None = None) -> tuple[RunState, Effect]:
    state = fold([started(settings=settings), *events])
    return state, next_step(state)


APPROVE, STOP = Answered(Answer("approve")), Answered(Answer("stop"))


def test_the_steps_of_a_candidate_that_passes() -> None:
    effects = []
    for upto in range(6):
        state, effect = run(*passing("c1")[:upto])
        effects.append(type(effect))
    assert effects == [Generate, Compile, Check, Time, Profile, AskReview]
    assert state.step is Step.REVIEW
    assert effect == AskReview("c1", None)
    trial = state.trials["c1"]
    assert trial.verdict is Verdict.PASSED and trial.timing and trial.profile and trial.resources
    assert trial.provenance.seeds == (11, 12)
    assert trial.provenance.device == "scripted"


def test_approval_makes_the_incumbent_and_asks_for_a_refinement() -> None:
    state, effect = run(*passing("c1"), APPROVE)
    assert (state.incumbent_id, state.accepted) == ("c1", ("c1",))
    assert isinstance(effect, Generate)
    assert effect.request.kind == "refine"
    assert effect.request.parent and effect.request.parent.candidate.id == "c1"
    assert effect.request.parent.answer == "approved"


@pytest.mark.parametrize("failure", ["compile", "check", "timing"])
def test_a_failure_goes_back_to_the_provider_while_fixes_remain(failure: str) -> None:
    events = {
        "compile": [generated("c1"), compile_failed("c1")],
        "check": [generated("c1"), compiled("c1"), checked("c1", Verdict.WRONG_RESULT)],
        "timing": [generated("c1"), compiled("c1"), checked("c1"), timed("c1", fault=True)],
    }[failure]
    state, effect = run(*events)
    assert isinstance(effect, Generate)
    assert effect.request.kind == "fix"
    assert effect.request.parent and effect.request.parent.trial is state.trials["c1"]
    state, effect = run(*events, settings=RunSettings(budget=Budget(max_fixes=0)))
    assert effect == AskReview("c1")
    assert state.failed_in_a_row == 1
    compiled_at_all = failure != "compile"
    with pytest.raises(InputError, match="approve_unproven" if compiled_at_all else "Retry or edit it, or reject it"):
        advance(state, APPROVE)
    unproven = Answered(Answer("approve_unproven"))
    if not compiled_at_all:
        with pytest.raises(InputError, match="did not compile"):
            refuse_new(state, unproven.answer)
    assert advance(state, unproven).accepted == ("c1",)  # as in runs that were stored before


def test_a_candidate_that_passed_earlier_can_be_approved_instead() -> None:
    retry = Answered(Answer("retry"))
    state, _ = run(*passing("c1"), APPROVE, *passing("c2", "c1"), retry, *passing("c3", "c1"))
    chosen = advance(state, Answered(Answer("approve", "c2")))
    assert (chosen.accepted, chosen.incumbent_id, chosen.ask_parent_id) == (("c1", "c2"), "c2", "c2")
    assert "c3" not in chosen.answers
    failed, _ = run(
        *passing("c1"),
        retry,
        generated("c2", parent=None),
        compile_failed("c2"),
        settings=RunSettings(budget=Budget(max_fixes=0)),
    )
    assert advance(failed, Answered(Answer("approve", "c1"))).accepted == ("c1",)
    for candidate, why in [("c1", "the current kernel already"), ("c9", "no such candidate")]:
        with pytest.raises(InputError, match=why):
            advance(state, Answered(Answer("approve", candidate)))
    with pytest.raises(InputError, match="c3 is under review"):
        advance(state, Answered(Answer("reject", "c2")))


def test_fixes_are_counted_in_a_row() -> None:
    two = RunSettings(budget=Budget(max_fixes=2))
    failing = [e for i in ("c1", "c2", "c3") for e in (generated(i, parent=None), compile_failed(i))]
    assert isinstance(run(*failing[:4], settings=two)[1], Generate)
    assert isinstance(run(*failing, settings=two)[1], AskReview)
    state, _ = run(*failing[:4], *passing("c3"), settings=two)
    assert state.failed_in_a_row == 0


def test_approval_needs_evidence_and_unproven_is_its_own_verb() -> None:
    state, _ = run(generated("c1"), StepFailed(Step.COMPILE, "no compiler"))
    with pytest.raises(InputError, match="approve_unproven"):
        advance(state, APPROVE)
    unproven = advance(state, Answered(Answer("approve_unproven")))
    assert unproven.accepted == ("c1",)
    assert unproven.answers["c1"].kind == "approve_unproven"
    proven, _ = run(*passing("c1"))
    with pytest.raises(InputError, match="Use approve"):
        advance(proven, Answered(Answer("approve_unproven")))


def test_rejection_refines_the_incumbent_or_the_rejected() -> None:
    reject = Answered(Answer("reject", text="too clever"))
    _, effect = run(*passing("c1"), reject)
    assert isinstance(effect, Generate)
    request = effect.request
    assert (request.kind, request.parent and request.parent.candidate.id) == ("refine", "c1")
    assert request.feedback == "too clever"
    assert request.parent and request.parent.answer == "rejected: too clever"
    state, effect = run(*passing("c1"), APPROVE, *passing("c2", "c1"), reject)
    assert isinstance(effect, Generate)
    assert effect.request.parent and effect.request.parent.candidate.id == "c1"
    assert state.incumbent_id == "c1"
    failed = [generated("c1"), compile_failed("c1")]
    _, effect = run(*failed, reject, settings=RunSettings(budget=Budget(max_fixes=0)))
    assert isinstance(effect, Generate) and effect.request.kind == "fix"


def test_what_was_edited_is_reviewed_again_where_nothing_grows_from_the_edit() -> None:
    """Templates cannot go on from the analyst's text: after its rejection the kernel that passed can be approved."""
    reject = Answered(Answer("reject", text="broken parenthesis"))
    events = [*passing("c1"), Answered(Answer("edit", text="def launch(: ...")), compile_failed("c2"), reject]
    templates = RunSettings(provider="templates", budget=Budget(max_fixes=0))
    state, effect = run(*events, settings=templates)
    assert effect == AskReview("c1", None) and state.answers["c2"].text == "broken parenthesis"
    assert run(*events, APPROVE, settings=templates)[0].accepted == ("c1",)
    _, effect = run(*events, settings=RunSettings(provider="openai", budget=Budget(max_fixes=0)))
    assert isinstance(effect, Generate) and effect.request.feedback == "broken parenthesis"


def test_a_rejection_and_its_reason_stay_when_the_analyst_branches() -> None:
    reject, branch = Answered(Answer("reject", text="too clever")), Answered(Answer("branch", target_id="c1"))
    failed = [generated("c1"), compile_failed("c1"), reject, GenerateFailed("no"), branch]
    state, _ = run(*failed, settings=RunSettings(budget=Budget(max_fixes=0)))
    assert state.answers["c1"].text == "too clever" and state.answers["c1"].kind == "reject"


def test_edited_text_is_exactly_what_is_compiled_next() -> None:
    text = "def launch(a, *, n=8): ...\n# \t odd \r\n"
    state, effect = run(*passing("c1"), Answered(Answer("edit", text=text)))
    assert effect == Compile("c2")
    edited = state.candidates["c2"]
    assert edited.source == text
    assert (edited.provider, edited.parent_id) == ("analyst", "c1")
    assert state.answers["c1"].kind == "edit"
    with pytest.raises(InputError, match="empty"):
        run(*passing("c1"), Answered(Answer("edit", text=" \n")))


def test_retry_asks_again_or_does_the_failed_step_again() -> None:
    retry = Answered(Answer("retry"))
    _, effect = run(*passing("c1"), APPROVE, *passing("c2", "c1"), retry)
    assert isinstance(effect, Generate)
    assert (effect.request.kind, effect.request.parent and effect.request.parent.candidate.id) == ("refine", "c1")
    for upto, step, expected in [(1, Step.COMPILE, Compile), (2, Step.CHECK, Check), (3, Step.TIME, Time),
                                 (4, Step.PROFILE, Profile)]:  # fmt: skip
        state, effect = run(*passing("c1")[:upto], StepFailed(step, "lost"))
        assert isinstance(effect, AskReview)
        assert (state.failed_step, state.problem_note) == (step, "lost")
        assert isinstance(run(*passing("c1")[:upto], StepFailed(step, "lost"), retry)[1], expected)
    state, effect = run(*passing("c1"), APPROVE, GenerateFailed("no answer"), retry)
    assert isinstance(effect, Generate)
    assert state.answers["c1"].kind == "approve"


def test_branch_grows_from_an_older_candidate_even_after_the_end() -> None:
    two = RunSettings(budget=Budget(max_steps=2))
    branch = Answered(Answer("branch", target_id="c1"))
    both = [*passing("c1"), APPROVE, *passing("c2", "c1"), APPROVE]
    done, effect = run(*both, settings=two)
    assert isinstance(effect, Finish) and done.outcome == "accepted"
    state, effect = run(*both, branch, settings=two)
    assert isinstance(effect, Generate)
    assert effect.request.parent and effect.request.parent.candidate.id == "c1"
    assert (state.outcome, state.incumbent_id) == ("", "c2")
    with pytest.raises(InputError, match="Candidates: c1, c2"):
        run(*both, Answered(Answer("branch", target_id="c9")), settings=two)
    failing = [generated("c1"), compile_failed("c1"), *passing("c2", "c1"), branch]
    _, effect = run(*failing)
    assert isinstance(effect, Generate) and effect.request.kind == "fix"


@pytest.mark.parametrize("upto", range(6))
def test_stop_ends_at_any_step_and_resume_goes_on_from_there(upto: int) -> None:
    before, effect = run(*passing("c1")[:upto])
    for stop in (STOP, Stopped("enough")):
        state = advance(before, stop)
        assert state.step is Step.DONE
        assert state.outcome == ("nothing_accepted" if before.step is Step.REVIEW else "stopped")
        again = advance(state, Resumed())
        assert next_step(again) == effect
        assert again.step is before.step


def test_a_finished_run_ignores_late_results() -> None:
    state, _ = run(generated("c1"), STOP)
    for late in (compiled("c1"), checked("c1"), STOP, APPROVE, StepFailed(Step.COMPILE, "x"), generated("c2")):
        assert advance(state, late) is state


def test_a_finished_run_takes_one_more_edit_or_branch() -> None:
    state, _ = run(*passing("c1"), STOP)
    again = advance(state, Answered(Answer("edit", "c1", text="def launch(): pass")))
    assert next_step(again) == Compile("c2") and again.outcome == "" and again.stopped_at is None
    with pytest.raises(InputError, match="c1 is under review"):
        advance(state, Answered(Answer("edit", "c7", text="def launch(): pass")))
    branched = advance(state, Answered(Answer("branch", target_id="c1")))
    assert isinstance(next_step(branched), Generate)


@pytest.mark.parametrize(("auto", "step"), [(False, Step.REVIEW), (True, Step.DONE)])
def test_an_analyst_whose_edit_failed_may_edit_on_where_the_provider_has_nothing(auto: bool, step: Step) -> None:
    state, _ = run(*passing("c1"), Answered(Answer("edit", text="def launch(): pass")))
    state = replace(state, settings=replace(state.settings, auto=auto))
    for event in (compiled("c2"), checked("c2", Verdict.WRONG_RESULT), GenerateFailed("not mine", exhausted=True)):
        state = advance(state, event)
    assert state.step is step and state.current_id == "c2" and state.problem_note == "not mine"


def test_text_that_is_not_python_is_no_new_edit() -> None:
    state, _ = run(*passing("c1"))
    with pytest.raises(InputError, match=r"does not parse: .* \(line 2\)"):
        refuse_new(state, Answer("edit", text="x = 1\ndef launch(: ..."))
    refuse_new(state, Answer("edit", text="x = 1\n"))


def test_a_run_ends_after_so_many_candidates_without_gain() -> None:
    asked = RunSettings(budget=Budget(max_steps=20, patience=2))
    reject = Answered(Answer("reject"))
    events = [*passing("c1"), APPROVE, *passing("c2", "c1"), reject, *passing("c3", "c1")]
    state, _ = run(*events, settings=asked)
    assert not state.finished
    ended = advance(state, reject)
    assert ended.finished and ended.problem_note == "budget: none of the last 2 candidates replaced c1"
    assert not advance(state, APPROVE).finished
    older, _ = run(*passing("c1"), Answered(Answer("retry")), *passing("c2", None), settings=asked)
    chosen = advance(older, Answered(Answer("approve", "c1")))
    assert not chosen.finished  # what was made before the approval is not counted
    auto = Answered(Answer("approve", by="auto"))
    asked = RunSettings(budget=Budget(max_steps=20, patience=2, gain=0.01))
    tied = [*passing("c1"), auto, *passing("c2", "c1", 9.95), auto, *passing("c3", "c2", 9.91), auto]
    ended, _ = run(*tied, settings=asked)  # each is faster, by less than 1%
    assert ended.finished and ended.problem_note == "budget: none of the last 2 candidates saved 1% of the time"
    gaining = [*passing("c1"), auto, *passing("c2", "c1", 9.95), auto, *passing("c3", "c2", 9.8), auto]
    assert not run(*gaining, settings=asked)[0].finished
    failing = (generated("c1", parent=None), compile_failed("c1"), generated("c2"), compile_failed("c2"))
    never, _ = run(*failing, settings=asked)
    assert not never.finished  # without an accepted kernel there is no gain to miss


def test_a_run_ends_near_the_floor() -> None:
    state, _ = run(*passing("c1"), settings=RunSettings(budget=Budget(within=0.1)))
    floor = floor_us(state.trials["c1"], state)
    trial = state.trials["c1"]
    assert trial.timing is not None
    for factor, ends in [(1.09, True), (1.11, False)]:
        timed_so = replace(trial, timing=replace(trial.timing, time_us=factor * floor))
        after = advance(replace(state, trials={"c1": timed_so}), APPROVE)
        assert after.finished is ends
        assert ("within 10% of the floor" in after.problem_note) is ends


def test_exhaustion_and_budgets_end_the_run() -> None:
    _, effect = run(*passing("c1"), APPROVE, GenerateFailed("nothing more", exhausted=True))
    assert effect == Finish("accepted", "nothing more")
    _, effect = run(GenerateFailed("cannot read conv2d", exhausted=True))
    assert effect == Finish("nothing_accepted", "cannot read conv2d")
    _, effect = run(*passing("c1"), APPROVE, settings=RunSettings(budget=Budget(max_steps=1)))
    assert isinstance(effect, Finish) and "1 of 1 candidates" in effect.note
    edit = Answered(Answer("edit", text="def launch(): return"))
    edited = (*passing("c1"), edit, *passing("c2", "c1")[1:], APPROVE)
    _, effect = run(*edited, settings=RunSettings(budget=Budget(max_steps=1)))
    assert effect == Finish("accepted", "budget: 1 of 1 candidates used, and 1 more edited by the analyst")
    _, effect = run(*passing("c1"), APPROVE, settings=RunSettings(budget=Budget(max_tokens=15)))
    assert isinstance(effect, Finish) and "15 of 15 tokens" in effect.note


def test_drafts_are_asked_for_before_the_fastest_is_refined() -> None:
    settings = RunSettings(provider="manual", drafts=2)
    _, effect = run(*passing("c1"), APPROVE, settings=settings)
    assert isinstance(effect, Generate) and (effect.request.kind, effect.request.parent) == ("generate", None)
    assert [each.candidate.id for each in effect.request.history] == ["c1"]
    slower = Answered(Answer("reject", "c2", text="slower", by="auto"))
    _, effect = run(*passing("c1"), APPROVE, *passing("c2"), slower, settings=settings)
    assert isinstance(effect, Generate) and effect.request.kind == "refine"
    assert effect.request.parent is not None and effect.request.parent.candidate.id == "c1"


def test_patience_and_failures_leave_drafts_their_turn() -> None:
    auto, slower = Answered(Answer("approve", by="auto")), Answered(Answer("reject", "c2", text="slower", by="auto"))
    impatient = RunSettings(provider="manual", drafts=2, auto=True, budget=Budget(patience=1))
    _, effect = run(*passing("c1"), auto, *passing("c2"), slower, settings=impatient)
    assert isinstance(effect, Generate) and effect.request.kind == "refine"
    failing = RunSettings(provider="manual", drafts=2, auto=True, budget=Budget(max_fixes=0))
    _, effect = run(generated("c1"), compile_failed("c1"), settings=failing)
    assert isinstance(effect, AskReview) and effect.answer is not None and effect.answer.kind == "reject"
    _, effect = run(generated("c1"), compile_failed("c1"), Answered(effect.answer), settings=failing)
    assert isinstance(effect, Generate) and (effect.request.kind, effect.request.parent) == ("generate", None)


def test_an_analyst_who_refines_ends_the_drafts() -> None:
    wish = Answered(Answer("reject", "c2", text="use TMA"))
    events = [*passing("c1"), APPROVE, *passing("c2"), wish, *passing("c3", "c1", 8.0), APPROVE]
    _, effect = run(*events, settings=RunSettings(provider="manual", drafts=3))
    assert isinstance(effect, Generate) and effect.request.kind == "refine"


def test_answers_only_at_review_and_only_to_the_candidate_shown() -> None:
    at_check, _ = run(generated("c1"), compiled("c1"))
    with pytest.raises(InputError, match="run is at check c1"):
        advance(at_check, APPROVE)
    state, _ = run(*passing("c1"), APPROVE, *passing("c2", "c1"))
    with pytest.raises(InputError, match="c2 is under review"):
        advance(state, Answered(Answer("reject", "c1")))
    nothing, _ = run(GenerateFailed("no key"))
    for kind in ("approve", "approve_unproven", "reject", "edit"):
        with pytest.raises(InputError, match="no candidate yet"):
            advance(nothing, Answered(Answer(kind, text="x")))  # type: ignore[arg-type]


def test_events_that_do_not_belong_are_refused() -> None:
    with pytest.raises(InputError, match="cannot begin with resumed"):
        advance(None, Resumed())
    with pytest.raises(InputError, match="without events"):
        fold([])
    state, _ = run(generated("c1"))
    for wrong in (started(), generated("c2"), compiled("c2"), checked("c1"), timed("c1"), profiled("c1")):
        with pytest.raises(InputError):
            advance(state, wrong)
    orphan = Generated(Candidate("c2", "c7", "x", Proposal("s", "t")))
    with pytest.raises(InputError, match="does not fit"):
        advance(run()[0], orphan)


def test_advance_is_pure() -> None:
    state, _ = run(*passing("c1")[:3])
    before = copy.deepcopy(state)
    for event in (checked("c1", Verdict.WRONG_RESULT), timed("c1"), STOP, StepStarted(Step.TIME, "c1")):
        try:
            first, second = advance(state, event), advance(state, event)
        except InputError:
            continue
        assert first == second
    assert state == before


def test_step_started_changes_nothing() -> None:
    state, _ = run(generated("c1"))
    assert advance(state, StepStarted(Step.COMPILE, "c1")) is state


def test_approvals_outlive_later_answers() -> None:
    state, _ = run(*passing("c1"), APPROVE, GenerateFailed("no"), Answered(Answer("branch", target_id="c1")))
    assert state.answers["c1"].kind == "approve"
    assert replace(state, answers={}) != state
