"""Renders the prompts in ``prompts/`` for a request. Text from users and models is never interpreted as a template."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from jinja2 import FileSystemLoader, StrictUndefined
from jinja2.sandbox import SandboxedEnvironment

from cutegen_lab.core.candidate import PromptRef
from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.errors import SetupError
from cutegen_lab.core.gains import TIE
from cutegen_lab.core.hashing import sha256
from cutegen_lab.core.idea_results import IdeaResult, change_between
from cutegen_lab.core.ideas import TIME
from cutegen_lab.core.plain_text import one_line
from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.core.protocols import Attempt, GenerateRequest
from cutegen_lab.core.roofline import speed_of_light
from cutegen_lab.providers.asks import asks
from cutegen_lab.providers.cutespec_replies import grammar
from cutegen_lab.providers.evidence import evidence_text, failure_text, history_line
from cutegen_lab.providers.guidance import told
from cutegen_lab.providers.prompt_topics import WorkClass, example_for, work_class
from cutegen_lab.providers.replies import SPEC_BLOCK

_IDEAS = 5  # ideas that are listed
_TRUSTED = 0.8  # fraction of the expected changes that came from which the model is not told about it
_FRONT = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)


@dataclass(frozen=True)
class RenderedPrompt:
    """A prompt ready to send."""

    text: str
    """The text."""
    ref: PromptRef
    """Id, version and hash of the prompt, which a proposal records."""


def render(request: GenerateRequest) -> RenderedPrompt:
    """The prompt for ``request``: ``generate``, ``fix`` or ``refine``; in the spec language, one of these with
    ``_spec``."""
    request = told(request, kind := work_class(request.problem, request.gpu))
    parent, in_spec = request.parent, request.language == "spec"
    values: dict[str, object] = {
        **_problem_values(request),
        **(grammar(request.arch) if in_spec else _guidance(kind, request)),
        "feedback": request.feedback,
        "may_end": request.may_end,
        "searched": request.searched and not in_spec,
        "search_result": request.search_result,
        "history": [history_line(attempt, request.history) for attempt in _others(request)[-8:]],
        **_ideas(request),
        "facts": [one_line(fact) for fact in request.facts],
        "asks": (asked := asks(request)),
        "asks_fence": _fence("\n".join(each.quote for each in asked), None),
    }
    if parent is not None:
        written = parent.candidate.proposal.spec if in_spec else ""
        values["candidate"] = (written or parent.candidate.source).rstrip()
        values["fence"] = _fence(values["reference"], parent)
        values["candidate_id"] = parent.candidate.id
        values["block"] = SPEC_BLOCK if written else "python"
        values["verdict"] = parent.trial.verdict.value if parent.trial else "not judged"
        values["failure" if request.kind == "fix" else "evidence"] = (
            failure_text(parent) if request.kind == "fix" else evidence_text(parent)
        )
    return _render((request.kind if parent is not None else "generate") + ("_spec" if in_spec else ""), values)


def render_reask(prompt: RenderedPrompt, complaint: str) -> RenderedPrompt:
    """Prompt that asks again after an unusable answer."""
    return _render("reask", {"prompt": prompt.text.rstrip(), "complaint": complaint})


def render_refactor(source: str, found: Sequence[str]) -> RenderedPrompt:
    """Prompt that asks for tuning parameters of a kernel, in addition to those ``found``."""
    return _render("refactor", {"candidate": source.rstrip(), "found": list(found), "fence": _fence(source, None)})


@lru_cache(maxsize=1)
def prompts_dir() -> Path:
    """``cutegen_lab/prompts`` of an installed wheel, or the repository's ``prompts/``. Raises SetupError."""
    package = Path(__file__).resolve().parents[1]
    for place in (package / "prompts", package.parent / "prompts"):
        if (place / "generate.md").is_file():
            return place
    raise SetupError("the prompts are missing from this installation", "Install cutegen-lab again.")


def front_matter(name: str) -> dict[str, str]:
    """A prompt's id, version, inputs and what its answer must contain."""
    match = _FRONT.match((prompts_dir() / f"{name}.md").read_text())
    if not match:
        raise SetupError(f"prompts/{name}.md has no front matter", "Install cutegen-lab again.")
    return dict(line.split(": ", 1) for line in match[1].splitlines())


def _render(name: str, values: dict[str, object]) -> RenderedPrompt:
    front = front_matter(name)
    text = _FRONT.sub("", _environment().get_template(f"{name}.md").render(**values)).strip() + "\n"
    return RenderedPrompt(text, PromptRef(front["id"], front["version"], sha256(text)))


@lru_cache(maxsize=1)
def _environment() -> SandboxedEnvironment:
    loader = FileSystemLoader(prompts_dir())
    return SandboxedEnvironment(
        loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )


def _others(request: GenerateRequest) -> list[Attempt]:
    """Earlier candidates besides the one that is to be changed."""
    parent = request.parent.candidate.id if request.parent else None
    return [attempt for attempt in request.history if attempt.candidate.id != parent]


def _ideas(request: GenerateRequest) -> dict[str, object]:
    """Ideas that are open, how far expectations came true, and how many changes of the parent gained nothing."""
    parent = request.parent.candidate.id if request.parent else None
    tried = [each for each in _others(request) if each.candidate.parent_id == parent is not None]
    return {
        "ideas": [
            {"id": each.id, "claim": one_line(each.idea.claim), "note": _note(each)} for each in request.ideas[:_IDEAS]
        ],
        "trust": f"{request.trust:.0%}" if request.trust < _TRUSTED else "",
        "stuck": sum(not _gained(request.parent, each) for each in tried),
    }


def _gained(parent: Attempt | None, attempt: Attempt) -> bool:
    if parent is None or parent.trial is None or attempt.trial is None or not attempt.trial.verdict.passed:
        return False
    change = change_between(TIME, parent.trial, attempt.trial)
    return change is not None and change.fraction <= -TIE


def _note(result: IdeaResult) -> str:
    idea = result.idea
    said = [f"expected: {idea.expects}"] if idea.expects else []
    said += ["much work"] if idea.cost == "large" else []
    said += [f"failed as {', '.join(result.tries)}"] if result.tries else []
    return "; ".join(said)


def _problem_values(request: GenerateRequest) -> dict[str, object]:
    problem = request.problem
    sol = speed_of_light(problem, request.gpu)
    return {
        "problem_name": problem.name,
        "reference": problem.source.strip("\n"),
        "fence": _fence(problem.source, None),
        "gpu": request.gpu.name,
        "arch": request.arch,
        "sol_us": f"{sol.time_us:.3g}" if request.guidance.bounds else "",
        "limiter": sol.limiter,
        "workloads": [
            {"name": w.name, "text": w.describe(), "why": w.why} for w in problem.workloads + problem.check_workloads
        ],
        "integers": [line for spec in problem.workload.inputs if (line := _integers(spec))],
        "deterministic": problem.deterministic,
        "budget": f"{problem.tolerances.budget:g}",
    }


def _integers(spec: TensorSpec) -> str:
    """The values of an integer input, in words; "" for other inputs."""
    if spec.dtype.is_float or spec.dtype is DType.BOOL:
        return ""
    if spec.rule == "sorted":
        return f"`{spec.name}`: from 0 to {spec.below}, not decreasing along the last dimension"
    if spec.rule == "distinct":
        return f"`{spec.name}`: from 0 to {spec.below - 1}, all different"
    if spec.rule or spec.below:
        negative = [n for n in spec.beside if n < 0]
        others = [n for n in spec.beside if n >= 0]
        said = f"`{spec.name}`: indices from 0 to {spec.below - 1} (on `main`; on other workloads of their sizes)"
        said += f", and from {min(negative)} on, which count from the end" if negative else ""
        return said + (f", and {', '.join(map(str, others))}" if others else "")
    signed = "" if spec.dtype is DType.U8 else ", also negative and far larger than any size"
    return f"`{spec.name}`: any {spec.dtype.value}{signed}"


def _guidance(kind: WorkClass, request: GenerateRequest) -> dict[str, object]:
    """What a model is told about a class of work."""
    example, what = example_for(kind, request.problem, request.gpu)
    return {
        "work_class": kind,
        "hint": (prompts_dir() / "classes" / f"{kind.replace(' ', '_').replace('-', '_')}.md").read_text().rstrip(),
        "products": kind in ("matmul", "convolution", "attention"),
        "example": (prompts_dir() / "examples" / f"{example}.py").read_text().rstrip(),
        "example_is": what,
    }


def _fence(reference: object, parent: Attempt | None) -> str:
    """A code fence longer than any sequence of backticks in ``reference`` and in the parent's source."""
    text = str(reference) + (parent.candidate.source if parent else "")
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    return "`" * max(3, longest + 1)
