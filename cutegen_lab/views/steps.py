"""Status and duration of steps, from the times of a run's events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cutegen_lab.core.run import (
    Answered,
    Checked,
    Compiled,
    CompileFailed,
    Generated,
    GenerateFailed,
    Profiled,
    Resumed,
    Step,
    StepFailed,
    StepStarted,
    Stopped,
    StoredEvent,
    Timed,
)
from cutegen_lab.views.hints import COMMAND_LINE, Spelling, with_hint
from cutegen_lab.views.model import StepName, StepStatus, StepView
from cutegen_lab.views.units import microseconds, plural

STEPS: tuple[StepName, ...] = ("generate", "compile", "check", "time", "profile", "review")

_DECISIONS = ("approve", "approve_unproven", "reject", "edit", "retry")  # answers about the candidate under review


@dataclass
class Attempt:
    """Steps of one candidate; for a repeated step, its last pass."""

    steps: dict[StepName, StepView] = field(default_factory=dict)
    compiled: Compiled | None = None  # for the evidence, before the trial exists

    def start(self, step: StepName, at: float) -> None:
        """Starts a step, and discards the steps after it."""
        for later in STEPS[STEPS.index(step) :]:
            self.steps.pop(later, None)
        if step in ("generate", "compile"):
            self.compiled = None
        self.steps[step] = StepView(step=step, status="running", started_at=at)

    def end(self, step: StepName, at: float, status: StepStatus, detail: str = "") -> None:
        begun = self.steps.get(step)
        started = begun.started_at if begun else None
        took = max(0.0, at - started) if started is not None else None
        self.steps[step] = StepView(step=step, status=status, seconds=took, detail=detail)

    def views(self) -> list[StepView]:
        """All six steps in order. A step before one that ran is "skipped"; the rest are "pending"."""
        reached = max((STEPS.index(name) for name in self.steps), default=-1)
        return [
            self.steps.get(name) or StepView(step=name, status="skipped" if index < reached else "pending")
            for index, name in enumerate(STEPS)
        ]


@dataclass
class Timeline:
    """Attempts of a run by candidate id, and the one in progress (``open_attempt``)."""

    attempts: dict[str, Attempt]
    open_attempt: Attempt


def read_timeline(events: Sequence[StoredEvent], front: Spelling = COMMAND_LINE) -> Timeline:
    """Folds event times into attempts. Events without a matching start (older stores) have no duration."""
    attempts: dict[str, Attempt] = {}
    current = Attempt()
    for stored in events:
        event, at = stored.event, stored.at
        if isinstance(event, StepStarted):
            name = _name(event.step)
            if name is None:
                continue
            if name == "generate":
                current = Attempt()
            elif event.candidate_id:
                current = attempts.setdefault(event.candidate_id, Attempt())  # an edited text has no generation step
            current.start(name, at)
        elif isinstance(event, Generated):
            current.end("generate", at, "done", event.candidate.proposal.title)
            attempts[event.candidate.id] = current
        elif isinstance(event, GenerateFailed):
            current.end("generate", at, "skipped" if event.exhausted else "failed", _with_hint(event, front))
        elif isinstance(event, Answered):
            answer = event.answer
            if answer.kind == "stop":
                _interrupt(current, event, at, front)
            reviewed = attempts.get(answer.candidate_id or "", current)
            if answer.kind in _DECISIONS and any(reviewed is attempt for attempt in attempts.values()):
                reviewed.end("review", at, "done", answer.kind.replace("_", " "))
        elif isinstance(event, (StepFailed, Resumed, Stopped)):
            _interrupt(current, event, at, front)
        else:
            current = attempts.get(getattr(event, "candidate_id", ""), current)
            _finish(current, event, at)
    return Timeline(attempts, current)


def _name(step: Step) -> StepName | None:
    return next((name for name in STEPS if name == step.value), None)


def _finish(attempt: Attempt, event: object, at: float) -> None:
    if isinstance(event, Compiled):
        attempt.compiled = event
        attempt.end("compile", at, "done", plural(event.resources.kernels, "kernel"))
    elif isinstance(event, CompileFailed):
        attempt.end("compile", at, "failed", event.verdict.value.replace("_", " "))
    elif isinstance(event, Checked):
        passed = event.result.verdict.passed
        detail = plural(len(event.result.checks), "check") if passed else event.result.verdict.value.replace("_", " ")
        attempt.end("check", at, "done" if passed else "failed", detail)
    elif isinstance(event, Timed):
        timing = event.timing
        if timing is not None:
            attempt.end("time", at, "done", f"{timing.kind} {microseconds(timing.time_us)}")
        else:
            attempt.end("time", at, "failed", event.fault.message if event.fault else "no time")
    elif isinstance(event, Profiled):
        if event.profile is not None:
            attempt.end("profile", at, "done", event.profile.limiter)
        else:
            attempt.end("profile", at, "skipped")


def _with_hint(event: GenerateFailed | StepFailed, front: Spelling) -> str:
    return with_hint(event.reason, event.hint, front)


def _interrupt(
    attempt: Attempt, event: StepFailed | Resumed | Stopped | Answered, at: float, front: Spelling
) -> None:  # fmt: skip
    """Ends running steps: failed with their reason, pending again after a resume, skipped after a stop."""
    running = [step.step for step in attempt.steps.values() if step.status == "running"]
    if isinstance(event, StepFailed):
        if (failed := _name(event.step)) is not None:
            attempt.end(failed, at, "failed", _with_hint(event, front))
        return
    for name in running:
        if isinstance(event, Resumed):
            if name != "review":  # a review keeps waiting, whichever process drives the run
                del attempt.steps[name]
        else:
            attempt.end(name, at, "skipped", "stopped")
