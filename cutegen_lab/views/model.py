"""The JSON shape of a run, shared by Python and TypeScript (MIME type ``application/vnd.cutegen.run+json``).

``labextension/src/schema.ts`` is generated from :func:`json_schema`; a test compares them. All text is plain and must
be escaped when it is shown.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from cutegen_lab.core.verbs import VERBS, Verb

VIEW_SCHEMA_VERSION = 1
MIME_TYPE = "application/vnd.cutegen.run+json"

StepName = Literal["generate", "compile", "check", "time", "profile", "review"]
StepStatus = Literal["pending", "running", "done", "failed", "skipped"]
Tone = Literal["neutral", "good", "bad", "warn"]
NoteState = Literal["open", "gone", "kept", "broken"]
Plotted = Annotated[float | None, BeforeValidator(lambda value: value if value and math.isfinite(value) else None)]
"""A value for a logarithmic axis; None for zero and infinity, which the axis (and JSON) cannot hold."""
Finite = Annotated[float | None, BeforeValidator(lambda value: value if math.isfinite(value) else None)]
"""A number that JSON can hold."""


class View(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class StepView(View):
    """One step of one candidate. ``seconds``: its duration, so far if it is running. ``detail``: one short line."""

    step: StepName
    status: StepStatus
    seconds: float | None = None
    started_at: float | None = None  # Unix seconds; a running step's duration is computed from it
    detail: str = ""


class EvidenceRow(View):
    """One row of the evidence card. ``basis`` says whether a time is measured or predicted."""

    key: str
    label: str
    value: str
    detail: str = ""
    tone: Tone = "neutral"
    basis: Literal["", "measured", "predicted", "bound"] = ""


class MetricView(View):
    """A number by which candidates are compared, and its text. ``value`` is None where it is not finite."""

    key: str
    label: str
    value: Finite
    text: str
    basis: Literal["", "measured", "predicted"] = ""
    better: Literal["less", "more"] = "less"


class ComparedMetric(View):
    """A metric of two candidates; ``before`` or ``after`` is empty if that candidate has none. ``change``: from the
    first to the second."""

    key: str
    label: str
    before: str
    after: str
    change: str = ""
    tone: Tone = "neutral"


class IntervalView(View):
    """Both ends of an interval."""

    low: float
    high: float


class TermView(View):
    """A term of a predicted time in microseconds; ``part``: whether it is a part of the last term before it that is not
    itself a part."""

    name: str
    us: float
    part: bool = False


class DiagnosticView(View):
    severity: Literal["error", "warning", "note"]
    code: str
    message: str
    line: int = 0
    excerpt: str = ""
    suggestion: str = ""


class DiffLine(View):
    """One line of the diff to the parent. ``kind``: same, added, removed, or gap (unchanged lines left out)."""

    kind: Literal["same", "added", "removed", "gap"]
    text: str
    old: int | None = None
    new: int | None = None


class ConfigValue(View):
    """A parameter and its value. A list of them keeps the order of the config, which a saved notebook would sort."""

    name: str
    value: int | float | bool | str


class ConfigChange(View):
    """A parameter whose value is not the parent's; ``old`` or ``new`` is empty if that candidate lacks the
    parameter."""

    name: str
    old: str
    new: str


class HeatColumn(View):
    """What each line of a text costs in one resource. ``unit``: unit of the values by line and of ``total``, which
    includes code that belongs to no line."""

    label: str
    unit: str
    total: float
    lines: dict[int, float]


class ListingLine(View):
    """A line of PTX or SASS. ``line``: line of the candidate's text as it is shown, 0 for none. ``stall``: cycles until
    the warp may issue the next instruction; None where that is not known."""

    text: str
    line: int = 0
    stall: int | None = None


class MachineCodeView(View):
    """PTX and SASS of a candidate for the workload ``workload``. ``sass_note``: why there is no SASS, empty if there
    is."""

    candidate_id: str
    workload: str
    ptx: list[ListingLine]
    sass: list[ListingLine]
    sass_note: str = ""


class NoteView(View):
    """A comment or pin as one candidate shows it. ``first``, ``last``: its lines in the candidate's own text, 0 where
    it has none there. ``state``: "kept" or "broken" for a pin; "open" for a comment, "gone" if its lines are gone."""

    id: str
    candidate_id: str  # candidate on which it was made
    pin: bool
    text: str
    what: str  # "lines 10–14 of c2"
    quote: str
    first: int
    last: int
    state: NoteState


class SpecialisedView(View):
    """Values of a candidate's fields of the same names for its text for its config alone, which has no parameters. The
    diff is between such texts; line numbers are those of this text, 0 if it has no such line. ``same_lines``: maps
    lines of the candidate's own text to lines of this text that compile to the same instructions."""

    source: str
    diff: list[DiffLine]
    evidence: list[EvidenceRow]
    diagnostics: list[DiagnosticView]
    heat: list[HeatColumn] = []
    same_lines: dict[int, int] = {}


class ComparisonView(View):
    """Two candidates compared. ``ptx_note``: why their PTX is not compared, empty if it is."""

    before_id: str
    after_id: str
    metrics: list[ComparedMetric]
    config_changes: list[ConfigChange]
    diff: list[DiffLine]
    ptx_diff: list[DiffLine] = []
    ptx_note: str = ""


class CandidateView(View):
    """``source`` is the candidate's own text, which an edit starts from. ``specialised``, if not None, is shown instead
    of it: None for a text that is not from a template, and until the specialised text is proven to compile to the same
    machine code."""

    id: str
    parent_id: str | None
    title: str
    reason: str
    predicted_effect: str
    provider: str
    model: str
    source: str
    config: list[ConfigValue]
    diff: list[DiffLine]
    steps: list[StepView]
    evidence: list[EvidenceRow]
    metrics: list[MetricView] = []
    counters: list[MetricView] = []  # counters of its profile
    baselines: dict[str, float] = {}  # µs, by name
    baseline_intervals: dict[str, IntervalView] = {}  # 95%, of the time divided by the baseline's, by name
    terms: list[TermView] = []  # terms of the predicted time
    diagnostics: list[DiagnosticView]
    notes: list[NoteView] = []  # comments and pins, pins first
    heat: list[HeatColumn] = []  # by resource; the one that limits the kernel comes first
    verdict: str  # "" until known
    verdict_reason: str
    answer: str  # "", "approved", "approved by auto", "rejected: …", "edited", …
    accepted: bool
    predicted_odds: int | None = None  # of ten predicted gains like its over the current kernel, how many come true
    config_changes: list[ConfigChange] = []  # changes from the parent's config
    specialised: SpecialisedView | None = None
    provenance: dict[str, str] = {}  # hashes, seeds, tolerances, versions, prompts


class TrendPoint(View):
    """One candidate in the trend plots. Errors are relative to float64; times in microseconds."""

    candidate_id: str
    verdict: str
    error: Plotted = None
    torch_error: Plotted = None
    time_us: Plotted = None
    basis: Literal["", "measured", "predicted"] = ""
    sol_gap: Plotted = None


class WorkloadView(View):
    name: str
    text: str
    why: str


class ProblemView(View):
    """``code``: hash of the source without comments and layout; "" in views of older versions."""

    name: str
    kind: str
    source: str
    code: str = ""
    workloads: list[WorkloadView]
    check_workloads: list[WorkloadView]


class SettingsView(View):
    provider: str
    model: str
    arch: str
    gpu: str
    device: str
    auto: bool
    max_steps: int


class SolView(View):
    time_us: float
    limiter: str
    compulsory_bytes: int
    flops: int
    gpu: str


class RunView(View):
    """A whole run. ``verbs``: those the analyst may use now on ``current_id``; none if no process drives the run,
    except ``resume``. ``timeline``: steps of the attempt in progress from its generation on, until it is a
    candidate. ``incumbent_id``: the candidate accepted last. ``best_id``: the fastest that passed and was not
    rejected, by measured times if there are any. ``title``: what the analyst calls the run; "" if nothing, or if no
    server's store was asked."""

    schema_version: Literal[1] = 1
    run_id: str
    title: str = ""
    status: Literal["running", "review", "done", "interrupted"]
    step: str
    outcome: str
    note: str
    problem: ProblemView
    settings: SettingsView
    sol: SolView
    candidates: list[CandidateView]
    trend: list[TrendPoint]
    timeline: list[StepView] = []
    current_id: str | None
    incumbent_id: str | None
    best_id: str | None = None
    verbs: list[Verb]
    scope: ScopeView | None = None
    cost: CostView | None = None  # None if no model was asked
    ideas: list[IdeaView] = []  # those not carried out yet first, the most promising of them first
    approvable: list[str] = []  # candidates that "approve" may name
    branch_points: list[str] = []  # candidates that "branch" may name
    log: list[str]
    versions: dict[str, str] = {}
    started_at: float
    updated_at: float


class IdeaView(View):
    """An idea of a model. ``status``: "open", "held", "refuted" or "tried"; ``expected`` and ``came``: changes of a
    metric, in words, or ""; ``tries``: candidates that tried it."""

    id: str
    claim: str
    by: str
    status: Literal["open", "held", "refuted", "tried"]
    expected: str
    came: str
    cost: Literal["small", "large"]
    tries: list[str]


class CostView(View):
    """Tokens of all answers so far, and dollars where a price is given. ``streamed``: approximate number of tokens of
    the answer that is being written."""

    prompt: int
    completion: int
    usd: float | None = None
    max_tokens: int | None = None
    max_usd: float | None = None
    streamed: int = 0


class ScopeView(View):
    """Scope of the last approval. ``used``: number of candidates that it has approved. ``ended``: why the analyst is
    asked again."""

    text: str
    used: int
    ended: str = ""


class Command(BaseModel):
    """What the front end may send. Anything else is refused. ``target_id``: the candidate to branch from, the place of
    a new comment or pin (``c2:10-14``), or the comment or pin to lift; ``text``: the words of the answer, comment or
    pin, or the scope of an approval (``3 steps``)."""

    model_config = ConfigDict(extra="forbid")

    request_id: str = Field(max_length=200)
    verb: Verb
    candidate_id: str | None = None
    target_id: str | None = None
    text: str = Field(default="", max_length=400_000)


class FormatView(View):
    """An export format."""

    name: str
    suffix: str
    help: str
    needs: str


class ExportView(View):
    """The export formats, and the files that were written."""

    formats: list[FormatView]
    paths: list[str]


class Query(BaseModel):
    """What the front end may ask for. ``machine_code``: PTX and SASS of the candidate (``general``: with the lines of
    its text with parameters). ``plots``: the list of its plots. ``plot``: the plot named ``text``. ``plotly``: the
    script that draws plots. ``layouts``: its layouts (``general`` as above). ``layout``: the picture of the layout with
    the number ``text``. ``check``: what the gate and the lint rules say of the draft ``text``. ``export``: writes the
    candidate in the format ``text`` (an empty ``text`` writes nothing) and lists the formats."""

    model_config = ConfigDict(extra="forbid")

    request_id: str = Field(max_length=200)
    query: Literal["machine_code", "plots", "plot", "plotly", "layouts", "layout", "check", "export"]
    candidate_id: str = Field(max_length=200)
    general: bool = False
    text: str = Field(default="", max_length=400_000)


def json_schema() -> dict[str, Any]:
    """JSON Schema of :class:`RunView`, :class:`Command`, :class:`Query` and its answers, and of what the server says
    of all runs: the source of the TypeScript types, with the table of verbs."""
    from cutegen_lab.views.layouts import LayoutPicture, LayoutsView
    from cutegen_lab.views.listing import Changes, RunList, TutorialView
    from cutegen_lab.views.profile import PlotList, PlotView

    schema = RunView.model_json_schema(mode="serialization")
    answers = (MachineCodeView, PlotList, PlotView, LayoutsView, LayoutPicture, ExportView)
    for each in (*answers, RunList, Changes, TutorialView):
        answer = each.model_json_schema(mode="serialization", ref_template="#/$defs/{model}")
        schema["$defs"] |= {**answer.pop("$defs", {}), each.__name__: answer}
    schema["$defs"] |= {each.__name__: each.model_json_schema() for each in (Command, Query)}
    table = {verb: {"button": spec.button, "help": spec.help} for verb, spec in VERBS.items()}
    return {**schema, "verbs": table}
