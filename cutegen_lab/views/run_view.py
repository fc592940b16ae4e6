"""Builds a :class:`~cutegen_lab.views.model.RunView` from a run's state and events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Literal

from cutegen_lab.core.approval import approvable, approvable_unproven
from cutegen_lab.core.candidate import Candidate
from cutegen_lab.core.cost import tokens
from cutegen_lab.core.gains import predicted_odds, scope_end
from cutegen_lab.core.growth import can_grow, can_retry
from cutegen_lab.core.hashing import sha256
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.core.roofline import GPUS
from cutegen_lab.core.run import RunStarted, RunState, Step, StoredEvent
from cutegen_lab.core.standing import best_id
from cutegen_lab.core.syntax import code_of, parse
from cutegen_lab.core.trial import Trial
from cutegen_lab.core.verbs import Verb, in_words
from cutegen_lab.views.diff import source_diff
from cutegen_lab.views.evidence import diagnostics, evidence_rows, provenance
from cutegen_lab.views.heat import heat
from cutegen_lab.views.hints import COMMAND_LINE, Spelling, note_of
from cutegen_lab.views.ideas import idea_views
from cutegen_lab.views.metrics import baseline_intervals, baselines, counters, metrics, terms
from cutegen_lab.views.model import (
    CandidateView,
    ConfigValue,
    CostView,
    ProblemView,
    RunView,
    ScopeView,
    SettingsView,
    SolView,
    StepView,
    TrendPoint,
    WorkloadView,
)
from cutegen_lab.views.notes import note_views
from cutegen_lab.views.specialised import SpecialisedText, config_changes, specialised_view
from cutegen_lab.views.steps import Attempt, Timeline, read_timeline

LOG_LINES = 200
Status = Literal["running", "review", "done", "interrupted"]


def build_view(
    state: RunState, events: Sequence[StoredEvent], log: Sequence[str] = (), attached: bool = True, elsewhere: str = "",
    front: Spelling = COMMAND_LINE, specialised: Mapping[str, SpecialisedText] | None = None, streamed: int = 0,
) -> RunView:  # fmt: skip
    """The complete view of a run.

    ``events``: the run's events, oldest first, for their times. ``log``: the last progress lines of a live run.
    ``attached``: whether this process drives the run; otherwise an unfinished run is "interrupted" and ``resume`` is
    the only verb. ``elsewhere``: name of another process that drives it, with the same effect on verbs. ``front``: how
    the front end spells options. ``specialised``: by candidate, its text for its config alone, if it has one.
    ``streamed``: tokens of the answer that the provider is writing.
    """
    driven = attached or bool(elsewhere)
    note = note_of(state, front)
    if elsewhere:
        note = "; ".join(filter(None, (f"driven by process {elsewhere}", note)))
    scope = _scope(state)
    if scope is not None and scope.ended:
        note = "; ".join(filter(None, (f"the scope “{scope.text}” has ended: {scope.ended}", note)))
    timeline = read_timeline(events, front)
    current = state.current
    return RunView(
        run_id=state.run_id,
        status=_status(state, driven),
        step=state.step.value,
        outcome=state.outcome,
        note=note,
        problem=_problem(state.problem),
        settings=_settings(state),
        sol=SolView(
            time_us=state.sol.time_us,
            limiter=state.sol.limiter,
            compulsory_bytes=state.sol.compulsory_bytes,
            flops=state.sol.flops,
            gpu=state.sol.gpu,
        ),
        candidates=[_candidate(c, state, timeline, driven, specialised or {}) for c in state.candidates.values()],
        trend=[_trend(c, state.trials.get(c.id), state) for c in state.candidates.values()],
        timeline=_steps(timeline.open_attempt, driven),
        current_id=current.id if current else None,
        incumbent_id=state.incumbent_id,
        best_id=best_id(state),
        verbs=allowed_verbs(state, attached),
        scope=scope,
        cost=_cost(state, streamed),
        ideas=idea_views(state),
        approvable=approvable(state),
        branch_points=branch_points(state),
        log=list(log)[-LOG_LINES:],
        versions=_versions(events),
        started_at=events[0].at if events else 0.0,
        updated_at=events[-1].at if events else 0.0,
    )


def allowed_verbs(state: RunState, attached: bool = True) -> list[Verb]:
    """Verbs the analyst may use now. "approve" needs a candidate with a passed verdict and compile and check
    evidence (:func:`approvable`); "approve_unproven" needs one under review that did not fail to compile."""
    if state.imported:
        return []
    if not attached and not state.finished:
        return ["resume"]
    return [*_answers(state), *_note_verbs(state)]


def _note_verbs(state: RunState) -> list[Verb]:
    lift: list[Verb] = ["lift"] if state.notes else []
    return ["comment", "pin", *lift] if state.candidates else []


def _answers(state: RunState) -> list[Verb]:
    retry: list[Verb] = ["retry"] if can_retry(state) else []
    branch: list[Verb] = ["branch"] if branch_points(state) else []
    if state.finished:
        again: list[Verb] = ["resume"] if state.stopped_at is not None else []
        return [*again, "edit", *branch] if state.candidates else again
    if state.step is not Step.REVIEW:
        return ["stop"]
    current = state.current
    if current is None:
        return [*retry, "stop"]
    approve: list[Verb] = ["approve"] if approvable(state) else []
    if state.failed_step is Step.GENERATE:  # the shown candidate was answered: the failure belongs to the next one
        return [*approve, *retry, "edit", *branch, "stop"]
    if approvable_unproven(state):
        approve.append("approve_unproven")
    if branch_points(state) == [current.id]:  # a rejection has the same effect
        branch = []
    return [*approve, "reject", "edit", *retry, *branch, "stop"]


def branch_points(state: RunState) -> list[str]:
    """Candidates that the provider can branch from."""
    return [each for each in state.candidates if can_grow(state, each)]


def _cost(state: RunState, streamed: int) -> CostView | None:
    used, settings = tokens(state), state.settings
    if not used.total and not streamed:
        return None
    return CostView(
        prompt=used.prompt, completion=used.completion, usd=settings.price.usd(used) if settings.price else None,
        max_tokens=settings.budget.max_tokens, max_usd=settings.budget.max_usd, streamed=streamed,
    )  # fmt: skip


def _scope(state: RunState) -> ScopeView | None:
    if state.scope is None:
        return None
    return ScopeView(text=str(state.scope), used=state.scope_used, ended=scope_end(state))


def _status(state: RunState, attached: bool) -> Status:
    if state.finished:
        return "done"
    if not attached:
        return "interrupted"
    return "review" if state.step is Step.REVIEW else "running"


def _candidate(
    candidate: Candidate,
    state: RunState,
    timeline: Timeline,
    attached: bool,
    texts: Mapping[str, SpecialisedText],
) -> CandidateView:
    proposal = candidate.proposal
    trial = state.trials.get(candidate.id)
    attempt = timeline.attempts.get(candidate.id, Attempt())
    parent = state.candidates.get(candidate.parent_id or "")
    compiled = attempt.compiled or state.compiled.get(candidate.id)
    record = trial.provenance if trial else compiled.provenance if compiled else None
    return CandidateView(
        id=candidate.id,
        parent_id=candidate.parent_id,
        title=proposal.title,
        reason=proposal.reason,
        predicted_effect=proposal.predicted_effect,
        provider=candidate.provider,
        model=proposal.model,
        source=candidate.source,
        config=[ConfigValue(name=name, value=value) for name, value in candidate.config.items()],
        diff=source_diff(parent.source if parent else None, candidate.source),
        steps=_steps(attempt, attached),
        evidence=evidence_rows(candidate, trial, compiled.resources if compiled else None, state),
        metrics=metrics(trial, compiled.resources if compiled else None, GPUS.get(state.sol.gpu)),
        counters=counters(trial),
        baselines=baselines(trial),
        baseline_intervals=baseline_intervals(trial),
        terms=terms(trial),
        diagnostics=diagnostics(trial.diagnostics if trial else compiled.notes if compiled else ()),
        notes=note_views(candidate, state),
        heat=heat(trial.profile if trial else None),
        verdict=trial.verdict.value if trial else "",
        verdict_reason=trial.reason if trial else "",
        answer=in_words(state.answers.get(candidate.id)),
        accepted=candidate.id in state.accepted,
        predicted_odds=predicted_odds(candidate.id, state),
        config_changes=config_changes(parent.config if parent else None, candidate.config),
        specialised=specialised_view(candidate, state, texts),
        provenance=provenance(candidate, record),
    )


def _steps(attempt: Attempt, attached: bool) -> list[StepView]:
    """Views of the six steps. Without a driving process a running step is shown as pending."""
    views = attempt.views()
    if attached:
        return views
    return [
        StepView(step=v.step, status="pending", detail="interrupted") if v.status == "running" else v for v in views
    ]


def _trend(candidate: Candidate, trial: Trial | None, state: RunState) -> TrendPoint:
    worst = trial.check.worst() if trial and trial.check else None
    timing = trial.timing if trial else None
    return TrendPoint(
        candidate_id=candidate.id,
        verdict=trial.verdict.value if trial else "",
        error=worst.norm if worst else None,
        torch_error=worst.torch_norm if worst else None,
        time_us=timing.time_us if timing else None,
        basis=timing.kind if timing else "",
        sol_gap=state.sol.gap(timing.time_us) if timing else None,
    )


def _problem(problem: Problem) -> ProblemView:
    return ProblemView(
        name=problem.name,
        kind=problem.kind,
        source=problem.source,
        code=_code_of(problem.source),
        workloads=[_workload(w) for w in problem.workloads],
        check_workloads=[_workload(w) for w in problem.check_workloads],
    )


@lru_cache(maxsize=64)
def _code_of(source: str) -> str:
    """Equal for texts that differ in comments and layout only."""
    try:
        return sha256(code_of(parse(source)))
    except SyntaxError:  # of a run in a file from elsewhere
        return sha256(source)


def _workload(workload: Workload) -> WorkloadView:
    return WorkloadView(name=workload.name, text=workload.describe(), why=workload.why)


def _settings(state: RunState) -> SettingsView:
    settings = state.settings
    judged_on = [trial.device for trial in state.trials.values() if trial.check]
    return SettingsView(
        provider=settings.provider,
        model=settings.model,
        arch=settings.arch,
        gpu=state.sol.gpu,
        device=judged_on[-1] if judged_on and settings.device == "auto" else settings.device,
        auto=settings.auto,
        max_steps=settings.budget.max_steps,
    )


def _versions(events: Sequence[StoredEvent]) -> dict[str, str]:
    for stored in events:
        if isinstance(stored.event, RunStarted):
            return dict(sorted(stored.event.versions.items()))
    return {}
