"""The one JSON shape Python and TypeScript meet in (MIME type ``application/vnd.cutegen.run+json``).

``labextension/src/schema.ts`` is generated from :func:`json_schema`; a test fails when they part.
All text is plain: whoever shows it escapes it.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict

from cutegen_lab.core.verbs import Verb

VIEW_SCHEMA_VERSION = 1
MIME_TYPE = "application/vnd.cutegen.run+json"

StepName = Literal["generate", "compile", "check", "time", "profile", "review"]
StepStatus = Literal["pending", "running", "done", "failed", "skipped"]
Tone = Literal["neutral", "good", "bad", "warn"]
Plotted = Annotated[float | None, BeforeValidator(lambda value: value if value and math.isfinite(value) else None)]
"""A point on a logarithmic axis: an infinite error (or a zero one) has no place there, nor in JSON."""


class View(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class StepView(View):
    """One step of one candidate. ``seconds`` is how long it took (so far, while running); ``detail`` one short line."""

    step: StepName
    status: StepStatus
    seconds: float | None = None
    started_at: float | None = None  # Unix seconds, for a running step's clock
    detail: str = ""


class EvidenceRow(View):
    """One line of the evidence card. ``basis`` keeps measured and predicted times apart everywhere."""

    key: str
    label: str
    value: str
    detail: str = ""
    tone: Tone = "neutral"
    basis: Literal["", "measured", "predicted", "bound"] = ""


class DiagnosticView(View):
    severity: Literal["error", "warning", "note"]
    code: str
    message: str
    line: int = 0
    excerpt: str = ""
    suggestion: str = ""


class DiffLine(View):
    """One line of the diff to the parent. ``kind``: same, added, removed, or a gap of unchanged lines left out."""

    kind: Literal["same", "added", "removed", "gap"]
    text: str
    old: int | None = None
    new: int | None = None


class ConfigChange(View):
    """A parameter whose value is not the parent's; an empty text where one of them has none."""

    name: str
    old: str
    new: str


class SpecialisedView(View):
    """What a candidate's fields of these names are for its text without parameters, for its config alone. The diff is
    between such texts; lines are those of this text, 0 where it has none."""

    source: str
    diff: list[DiffLine]
    evidence: list[EvidenceRow]
    diagnostics: list[DiagnosticView]


class CandidateView(View):
    """``source`` is the candidate's own text, which an edit starts from. ``specialised`` is shown rather than it, if
    there is one: None for a text that is not from a template, and until that text is proven to compile to the same."""

    id: str
    parent_id: str | None
    title: str
    reason: str
    predicted_effect: str
    provider: str
    model: str
    source: str
    config: dict[str, int | float | bool | str]
    diff: list[DiffLine]
    steps: list[StepView]
    evidence: list[EvidenceRow]
    diagnostics: list[DiagnosticView]
    verdict: str  # "" until known
    verdict_reason: str
    answer: str  # "", "approved", "approved by auto", "rejected: …", "edited", …
    accepted: bool
    config_changes: list[ConfigChange] = []  # from the parent's
    specialised: SpecialisedView | None = None
    provenance: dict[str, str] = {}  # what the answer depended on: hashes, seeds, tolerances, versions, prompts


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
    name: str
    kind: str
    source: str
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
    """A whole run. ``verbs`` are those the analyst may use now on ``current_id``; none while no kernel is attached
    (``resume`` apart). ``timeline`` is the attempt in work, from its generation on, when it is no candidate yet.
    """

    schema_version: Literal[1] = 1
    run_id: str
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
    verbs: list[Verb]
    log: list[str]
    versions: dict[str, str] = {}
    started_at: float
    updated_at: float


def json_schema() -> dict[str, Any]:
    """JSON Schema of :class:`RunView`, the source of the TypeScript types."""
    return RunView.model_json_schema(mode="serialization")
