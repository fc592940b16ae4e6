"""A run: a tree of candidates for one problem under one budget, told as append-only events.

The events are the truth. :mod:`cutegen_lab.loop` folds them into a :class:`RunState`; the store keeps them; the
widget, the report and the command line read the state. Every event is plain frozen data with a ``type`` tag.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from cutegen_lab.core.candidate import Candidate
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.roofline import SpeedOfLight
from cutegen_lab.core.trial import CheckResult, Profile, Provenance, Resources, Timing, Trial
from cutegen_lab.core.verdict import Diagnostic, Fault, Verdict

Language = Literal["dsl", "spec"]
"""What a model writes: CuTe modules, or texts of the compact language that templates write the modules for."""


class Step(str, Enum):
    """The loop's steps, in order, and where a run rests."""

    GENERATE = "generate"
    COMPILE = "compile"
    CHECK = "check"
    TIME = "time"
    PROFILE = "profile"
    REVIEW = "review"
    DONE = "done"


@dataclass(frozen=True)
class Budget:
    """When a run ends by itself. ``max_steps`` counts candidates; ``max_fixes`` consecutive failed ones."""

    max_steps: int = 8
    max_fixes: int = 5
    max_seconds: float | None = None
    max_tokens: int | None = None


@dataclass(frozen=True)
class RunSettings:
    """Everything an analyst chose for a run. ``auto`` approves by itself whatever passes and is faster.

    ``gpu`` is whose speed of light is the bound ("": the first that runs ``arch``). ``language`` is what a model is
    asked to write.
    """

    provider: str = "templates"
    model: str = ""
    arch: str = "sm_90a"
    gpu: str = ""
    device: str = "auto"
    auto: bool = False
    budget: Budget = Budget()
    language: Language = "dsl"
    profile_after: int = 0  # profiling is withheld until this many candidates passed (CuTeGen's delayed profiling)


AnswerKind = Literal["approve", "approve_unproven", "reject", "edit", "retry", "branch", "stop"]


@dataclass(frozen=True)
class Answer:
    """The analyst's word on a candidate. ``text`` is the edited source (edit) or the reason (reject);
    ``target_id`` the candidate to grow from (branch)."""

    kind: AnswerKind
    candidate_id: str | None = None
    text: str = ""
    target_id: str | None = None
    by: Literal["analyst", "auto"] = "analyst"


# --- events ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunStarted:
    run_id: str
    problem: Problem
    settings: RunSettings
    sol: SpeedOfLight
    versions: Mapping[str, str] = field(default_factory=dict)
    type: Literal["run_started"] = "run_started"


@dataclass(frozen=True)
class StepStarted:
    step: Step
    candidate_id: str | None = None
    type: Literal["step_started"] = "step_started"


@dataclass(frozen=True)
class Generated:
    candidate: Candidate
    type: Literal["generated"] = "generated"


@dataclass(frozen=True)
class GenerateFailed:
    """``exhausted``: the provider has nothing more to propose, which is a normal end."""

    reason: str
    exhausted: bool = False
    type: Literal["generate_failed"] = "generate_failed"


@dataclass(frozen=True)
class Compiled:
    candidate_id: str
    artifact_sha256: str
    resources: Resources
    provenance: Provenance
    notes: tuple[Diagnostic, ...] = ()
    seconds: float = 0.0
    type: Literal["compiled"] = "compiled"


@dataclass(frozen=True)
class CompileFailed:
    candidate_id: str
    verdict: Verdict
    reason: str
    provenance: Provenance
    diagnostics: tuple[Diagnostic, ...] = ()
    type: Literal["compile_failed"] = "compile_failed"


@dataclass(frozen=True)
class Checked:
    candidate_id: str
    device: str
    result: CheckResult
    type: Literal["checked"] = "checked"


@dataclass(frozen=True)
class Timed:
    candidate_id: str
    timing: Timing | None
    fault: Fault | None = None
    type: Literal["timed"] = "timed"


@dataclass(frozen=True)
class Profiled:
    candidate_id: str
    profile: Profile | None
    type: Literal["profiled"] = "profiled"


@dataclass(frozen=True)
class Answered:
    answer: Answer
    type: Literal["answered"] = "answered"


@dataclass(frozen=True)
class StepFailed:
    """Our own failure at a step (a broken cage, a lost device): the run rests at review and can be retried."""

    step: Step
    reason: str
    type: Literal["step_failed"] = "step_failed"


@dataclass(frozen=True)
class Resumed:
    """A new process took the run up; unfinished work starts again."""

    type: Literal["resumed"] = "resumed"


@dataclass(frozen=True)
class Stopped:
    reason: str
    type: Literal["stopped"] = "stopped"


Event = (
    RunStarted | StepStarted | Generated | GenerateFailed | Compiled | CompileFailed | Checked | Timed | Profiled
    | Answered | StepFailed | Resumed | Stopped
)  # fmt: skip


# --- state ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunState:
    """What the events so far add up to.

    ``step`` is where the run is; ``current_id`` the candidate being worked on; ``incumbent_id`` the accepted candidate
    the next refinement starts from; ``accepted`` every approved candidate, oldest first. ``outcome`` is set once done.
    """

    run_id: str
    problem: Problem
    settings: RunSettings
    sol: SpeedOfLight
    step: Step
    candidates: Mapping[str, Candidate] = field(default_factory=dict)
    trials: Mapping[str, Trial] = field(default_factory=dict)
    answers: Mapping[str, Answer] = field(default_factory=dict)
    current_id: str | None = None
    incumbent_id: str | None = None
    accepted: tuple[str, ...] = ()
    feedback: str = ""  # the last rejection's reason, for the next proposal
    failed_in_a_row: int = 0
    problem_note: str = ""  # why the run rests or ended, where that is not obvious
    ask: Literal["generate", "fix", "refine"] = "generate"  # what the provider is, or was last, asked for
    ask_parent_id: str | None = None  # and from which candidate
    base_id: str | None = None  # what the next refinement grows from: the incumbent, or what was branched from
    compiled: Mapping[str, Compiled] = field(default_factory=dict)  # build evidence, also before there is a verdict
    failed_step: Step | None = None  # the step our own failure stopped, while the run rests because of it
    stumbles: int = 0  # our own failures in a row
    stopped_at: Step | None = None  # where an analyst stopped the run: resuming goes on from there
    outcome: Literal["", "accepted", "nothing_accepted", "failed"] = ""

    @property
    def current(self) -> Candidate | None:
        return self.candidates.get(self.current_id) if self.current_id else None

    @property
    def finished(self) -> bool:
        return self.step is Step.DONE


@dataclass(frozen=True)
class StoredEvent:
    """An event as the store keeps it: its place in the run (from 1) and when it was written (Unix seconds)."""

    seq: int
    at: float
    event: Event


@dataclass(frozen=True)
class RunSummary:
    """One line of a run list."""

    run_id: str
    name: str
    created_at: float
    updated_at: float
    step: Step
    outcome: str
    candidates: int
    accepted: int
    problem_key: str
