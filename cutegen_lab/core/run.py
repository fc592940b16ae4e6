"""A run: a tree of candidates for one problem under one budget, recorded as append-only events.

:mod:`cutegen_lab.loop` folds the events into a :class:`RunState`; the store keeps them; the widget, the report and the
command line read the state. Every event is frozen plain data with a ``type`` tag.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, get_args

from cutegen_lab.core.candidate import Candidate, TokenUsage
from cutegen_lab.core.cost import Price, dollars
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.hints import Advice, Hint
from cutegen_lab.core.ideas import Idea
from cutegen_lab.core.notes import Note
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.roofline import SpeedOfLight
from cutegen_lab.core.scopes import Scope
from cutegen_lab.core.trial import CheckResult, Profile, Provenance, Resources, Timing, Trial
from cutegen_lab.core.verbs import Answer as Answer
from cutegen_lab.core.verdict import Diagnostic, Fault, Verdict

Language = Literal["dsl", "spec"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
"""What a model writes: CuTe modules, or specs, from which the templates make the modules."""
Strategy = Literal["cutegen", "two-stage", "auto"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
"""How a model's kernel evolves: by one change of the model's a step (CuTeGen, arXiv 2604.01489), or also by a search
over its TUNABLE whenever a kernel has passed (after arXiv 2601.12698); or ("auto") templates while they serve, then
both."""
Profiling = Literal["settled", "always", "never"]
PROFILINGS: tuple[Profiling, ...] = get_args(Profiling)
"""When a model is shown a kernel's profile: "settled": of matrix products, convolutions and attention only once two
kernels have passed, since advice from counters helps little before the structure settles (CuTeGen, arXiv 2604.01489);
of other work always."""
PROFILING_HELP = (
    "when a model sees a kernel's profile: settled (of products, convolutions and attention once two kernels have "
    "passed, otherwise always), always, never"
)
STRATEGY_HELP = (
    "how a model's kernel evolves: cutegen (its own changes, the default), two-stage (also a search over the TUNABLE "
    "of each that passed), auto (templates while they serve, then two-stage)"
)
PROVIDERS = ("templates", "openai", "manual", "manual:DIR", "replay:FILE", "templates:CONFIG")
"""How :attr:`RunSettings.provider` may be written."""


class Step(str, Enum):
    """The loop's steps in order; DONE is the end of a run."""

    GENERATE = "generate"
    COMPILE = "compile"
    CHECK = "check"
    TIME = "time"
    PROFILE = "profile"
    REVIEW = "review"
    DONE = "done"


@dataclass(frozen=True)
class Budget:
    """Limits at which a run ends by itself."""

    max_steps: int = 8
    """Maximum number of candidates."""
    max_fixes: int = 5
    """Maximum number of consecutive candidates that fail."""
    max_seconds: float | None = None
    """Maximum duration of the run in seconds; None for no limit."""
    max_tokens: int | None = None
    """Maximum number of tokens of all answers; None for no limit."""
    max_usd: float | None = None
    """Maximum cost of all answers in dollars, at :attr:`RunSettings.price`; None for no limit."""
    patience: int | None = None
    """Number of consecutive candidates without a gain after which the run ends; None for no limit."""
    gain: float = 0.0
    """Fraction of the accepted kernel's time that a candidate must save to count as a gain; 0: whatever is accepted."""
    within: float | None = None
    """Distance of the accepted kernel from the floor, as a fraction of it, at which the run ends; None for no limit."""


@dataclass(frozen=True)
class Guidance:
    """What a model is told besides the problem, the candidate and its verdict."""

    bounds: bool = True
    """Whether it is told the speed of light, the attainable time, and how much time can be saved at most."""
    profiling: Profiling = "settled"
    """When it sees a kernel's profile, as in :data:`PROFILINGS`."""
    memory: bool = True
    """Whether it is told which changes were faster in other runs of this store, and which were not."""


@dataclass(frozen=True)
class RunSettings:
    """Everything the analyst chose for a run."""

    provider: str = "templates"
    """Who proposes kernels, as in :data:`PROVIDERS`; after "templates:" come parameters of the first kernel."""
    model: str = ""
    """Model name for the provider; empty for its default."""
    arch: str = "sm_90a"
    """Target architecture ("sm_90a")."""
    gpu: str = ""
    """GPU whose speed of light is the bound; empty for the first that runs ``arch``."""
    device: str = "auto"
    """Where kernels run: "auto", "cuda", "cuda:N" or "emulator"."""
    auto: bool = False
    """Whether candidates that pass and are faster are approved without asking."""
    budget: Budget = Budget()
    """Limits of the run."""
    language: Language = "dsl"
    """What a model is asked to write."""
    strategy: Strategy = "cutegen"
    """How a model's kernel evolves, as in :data:`STRATEGIES`."""
    price: Price | None = None
    """Price of the provider's answers; None if it is not known."""
    drafts: int = 1
    """Number of first kernels that are asked for, each to work differently, before the fastest is refined."""
    guidance: Guidance = Guidance()
    """What a model is told besides the problem, the candidate and its verdict."""

    def __post_init__(self) -> None:
        """Raises InputError for a cap in dollars without a price of tokens, and for several drafts of templates."""
        need_price(self.budget.max_usd, self.price)
        if self.drafts > 1 and self.provider.partition(":")[0] == "templates":
            raise InputError("templates have one first kernel", "Several first kernels are for models.")


def need_price(max_usd: float | None, price: Price | None) -> None:
    """Raises InputError for a cap of ``max_usd`` dollars without a ``price`` of tokens."""
    if max_usd is not None and price is None:
        raise InputError(f"a cap of {dollars(max_usd)} needs a price", Hint(Advice.GIVE_PRICE))


# --- events ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunStarted:
    """A run began."""

    run_id: str
    """Id of the run in its store."""
    problem: Problem
    """Problem to solve."""
    settings: RunSettings
    """Choices of the analyst."""
    sol: SpeedOfLight
    """Lower bound on the time."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions of packages and drivers, by name."""
    type: Literal["run_started"] = "run_started"
    """Tag of the event in the store."""


@dataclass(frozen=True)
class StepStarted:
    """A step began."""

    step: Step
    """The step."""
    candidate_id: str | None = None
    """Candidate it is about; None for generate."""
    type: Literal["step_started"] = "step_started"
    """Tag of the event in the store."""


@dataclass(frozen=True)
class Generated:
    """The provider proposed a candidate."""

    candidate: Candidate
    """The candidate, with its id and parent."""
    type: Literal["generated"] = "generated"
    """Tag of the event in the store."""


@dataclass(frozen=True)
class GenerateFailed:
    """The provider proposed nothing."""

    reason: str
    """Why, in one line."""
    exhausted: bool = False
    """Whether the provider has nothing more to propose, which is a normal end."""
    hint: Hint | None = None
    """What to do about it, if ``reason`` does not say so."""
    usage: TokenUsage = field(default_factory=TokenUsage)
    """Tokens that were spent on it nevertheless."""
    type: Literal["generate_failed"] = "generate_failed"
    """Tag of the event in the store."""


@dataclass(frozen=True)
class Compiled:
    """A candidate compiled."""

    candidate_id: str
    """The candidate."""
    artifact_sha256: str
    """Hash under which the store has the artifact."""
    resources: Resources
    """Registers, shared memory and spills of the build."""
    provenance: Provenance
    """Everything the build depended on."""
    notes: tuple[Diagnostic, ...] = ()
    """Lint warnings and ptxas notes."""
    seconds: float = 0.0
    """Seconds that compiling took."""
    type: Literal["compiled"] = "compiled"
    """Tag of the event in the store."""


@dataclass(frozen=True)
class CompileFailed:
    """A candidate did not compile."""

    candidate_id: str
    """The candidate."""
    verdict: Verdict
    """Its verdict."""
    reason: str
    """Why, in one line."""
    provenance: Provenance
    """Everything the attempt depended on."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """Messages with lines of the candidate's text."""
    type: Literal["compile_failed"] = "compile_failed"
    """Tag of the event in the store."""


@dataclass(frozen=True)
class Checked:
    """A candidate's outputs were checked."""

    candidate_id: str
    """The candidate."""
    device: str
    """Device it ran on."""
    result: CheckResult
    """Verdict and every check."""
    type: Literal["checked"] = "checked"
    """Tag of the event in the store."""


@dataclass(frozen=True)
class Timed:
    """A candidate was timed, or failed while it was."""

    candidate_id: str
    """The candidate."""
    timing: Timing | None
    """Its time; None after a fault."""
    fault: Fault | None = None
    """What stopped it; None where there is a time."""
    type: Literal["timed"] = "timed"
    """Tag of the event in the store."""


@dataclass(frozen=True)
class Profiled:
    """A candidate was profiled."""

    candidate_id: str
    """The candidate."""
    profile: Profile | None
    """Its counters; None where the device has no profiler."""
    type: Literal["profiled"] = "profiled"
    """Tag of the event in the store."""


@dataclass(frozen=True)
class Answered:
    """The analyst (or auto) answered."""

    answer: Answer
    """The answer."""
    type: Literal["answered"] = "answered"
    """Tag of the event in the store."""


@dataclass(frozen=True)
class StepFailed:
    """A step failed, but not because of the candidate (a broken cage, a lost device): the run waits for review and can
    be retried."""

    step: Step
    """The step."""
    reason: str
    """Why, in one line."""
    hint: Hint | None = None
    """What to do about it, if ``reason`` does not say so."""
    type: Literal["step_failed"] = "step_failed"
    """Tag of the event in the store."""


@dataclass(frozen=True)
class Resumed:
    """A new process took over the run; unfinished work starts again."""

    type: Literal["resumed"] = "resumed"
    """Tag of the event in the store."""


@dataclass(frozen=True)
class Stopped:
    """The run was stopped."""

    reason: str
    """Why, in one line."""
    type: Literal["stopped"] = "stopped"
    """Tag of the event in the store."""


@dataclass(frozen=True)
class Imported:
    """The run was read from a file: the events before this one, verdicts included, were not verified here."""

    source: str
    """Name of the file."""
    sha256: str
    """Hash of its contents."""
    type: Literal["imported"] = "imported"
    """Tag of the event in the store."""


@dataclass(frozen=True)
class Noted:
    """The analyst commented on a candidate, or pinned something in it."""

    note: Note
    """The comment or pin."""
    type: Literal["noted"] = "noted"
    """Tag of the event in the store."""


@dataclass(frozen=True)
class NoteLifted:
    """The analyst took a comment away, or lifted a pin."""

    note_id: str
    """The comment or pin."""
    type: Literal["note_lifted"] = "note_lifted"
    """Tag of the event in the store."""


@dataclass(frozen=True)
class IdeasGiven:
    """A model or the analyst had ideas, apart from the code that may try them."""

    ideas: tuple[Idea, ...]
    """The ideas."""
    by: str
    """Model or provider, or "analyst"."""
    type: Literal["ideas_given"] = "ideas_given"
    """Tag of the event in the store."""


@dataclass(frozen=True)
class GivenIdea:
    """An idea of a run."""

    idea: Idea
    """The idea."""
    by: str
    """Who had it, as in :class:`IdeasGiven`."""


Event = (
    RunStarted | StepStarted | Generated | GenerateFailed | Compiled | CompileFailed | Checked | Timed | Profiled
    | Answered | StepFailed | Resumed | Stopped | Imported | Noted | NoteLifted | IdeasGiven
)  # fmt: skip


# --- state ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunState:
    """State of a run: the fold of its events so far."""

    run_id: str
    """Id of the run in its store."""
    problem: Problem
    """Problem to solve."""
    settings: RunSettings
    """Choices of the analyst."""
    sol: SpeedOfLight
    """Lower bound on the time."""
    step: Step
    """Step the run is at."""
    candidates: Mapping[str, Candidate] = field(default_factory=dict)
    """Every candidate by id, oldest first."""
    trials: Mapping[str, Trial] = field(default_factory=dict)
    """Finished trials by candidate id."""
    answers: Mapping[str, Answer] = field(default_factory=dict)
    """Latest answer by candidate id."""
    current_id: str | None = None
    """Candidate being worked on."""
    incumbent_id: str | None = None
    """Accepted candidate that the next one must beat."""
    gained_at: int = 0
    """Number of candidates when the accepted kernel last gained (:attr:`Budget.gain`), or the analyst chose it."""
    accepted: tuple[str, ...] = ()
    """Ids of all approved candidates, oldest first."""
    notes: Mapping[str, Note] = field(default_factory=dict)
    """Comments and pins by id, oldest first, without those taken away."""
    ideas: Mapping[str, GivenIdea] = field(default_factory=dict)
    """Ideas by id, oldest first."""
    wasted: TokenUsage = field(default_factory=TokenUsage)
    """Tokens of answers that became no candidate."""
    scope: Scope | None = None
    """Scope of the last approval, while it holds."""
    scope_used: int = 0
    """Number of candidates that the scope has approved."""
    notes_made: int = 0
    """Number of comments and pins so far, also of those taken away."""
    feedback: str = ""
    """Reason of the last rejection, for the next proposal."""
    failed_in_a_row: int = 0
    """Consecutive candidates that failed."""
    problem_note: str = ""
    """Why the run waits or ended, if that is not obvious."""
    problem_hint: Hint | None = None
    """What to do about it, if ``problem_note`` does not say so."""
    ask: Literal["generate", "fix", "refine"] = "generate"
    """What the provider is being asked for, or was last."""
    wanted: bool = False
    """Whether the analyst asked for this proposal."""
    ask_parent_id: str | None = None
    """Candidate that the proposal is to start from."""
    base_id: str | None = None
    """Candidate the next refinement starts from: the incumbent, or the one branched from."""
    compiled: Mapping[str, Compiled] = field(default_factory=dict)
    """Build results by candidate id, also before there is a verdict."""
    failed_step: Step | None = None
    """Step that failed, but not because of the candidate, while the run waits for that reason."""
    stumbles: int = 0
    """Number of consecutive failures that were not because of a candidate."""
    stopped_at: Step | None = None
    """Step at which the analyst stopped the run, where it continues when resumed."""
    outcome: Literal["", "accepted", "nothing_accepted", "stopped", "failed"] = ""
    """How the run ended; "" while it is under way."""
    imported: str = ""
    """Name of the file that the run was read from; such a run can only be viewed."""

    @property
    def current(self) -> Candidate | None:
        """The candidate being worked on; None before there is one."""
        return self.candidates.get(self.current_id) if self.current_id else None

    @property
    def finished(self) -> bool:
        """Whether the run is done."""
        return self.step is Step.DONE


@dataclass(frozen=True)
class StoredEvent:
    """An event as the store keeps it."""

    seq: int
    """Position in the run, from 1."""
    at: float
    """When it was written, in Unix seconds."""
    event: Event
    """The event."""


MOST_TITLE = 200  # maximum number of characters of a run's title


@dataclass(frozen=True)
class RunSummary:
    """One line of a list of runs."""

    run_id: str
    """Id of the run."""
    name: str
    """Name of its problem."""
    created_at: float
    """When it began, in Unix seconds."""
    updated_at: float
    """When its last event was written, in Unix seconds."""
    step: Step
    """Step it is at."""
    outcome: str
    """How it ended; "" while it is under way."""
    candidates: int
    """Number of candidates."""
    accepted: int
    """Number of approved candidates."""
    problem_key: str
    """Hash of its problem."""
    title: str = ""
    """What the analyst calls it; "" for the name of its problem."""
    trashed_at: float | None = None
    """When it was put in the trash, in Unix seconds; None if it is not there."""
    gpu: str = ""
    """GPU whose speed of light is the bound."""
    device: str = ""
    """Device of its last trial; before the first trial, the device in its settings."""
    best_id: str = ""
    """Its fastest candidate that passed; "" before there is one."""
    best_us: float | None = None
    """Time of that candidate in microseconds."""
    best_kind: str = ""
    """"measured" or "predicted"."""
    speedup: float | None = None
    """Speedup of that candidate over :attr:`over`; None if there is nothing to compare it with."""
    over: str = ""
    """What :attr:`speedup` is relative to: a PyTorch baseline, or the first candidate that passed."""
