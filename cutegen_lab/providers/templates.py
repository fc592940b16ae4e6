"""Needs no key and no network: recognises the reference, writes a template's kernel, moves one knob at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cutegen_lab.core.candidate import Config, Proposal, Scalar
from cutegen_lab.core.errors import NotCovered, ProviderExhausted
from cutegen_lab.core.hashing import canonical_json
from cutegen_lab.core.protocols import Attempt, Cancel, GenerateRequest, Say
from cutegen_lab.templates.template import Template

WORTHWHILE = 0.01  # of the time: what a refinement promises at least


@dataclass(frozen=True)
class _Move:
    """One parameter to another value, and why."""

    knob: str
    old: Scalar
    new: Scalar
    reason: str


class TemplatesProvider:
    """A :class:`~cutegen_lab.core.protocols.Provider`.

    Starts from ``first``, or a sound default, of ``template``, or of the one that serves the problem; every refinement
    changes one parameter of the candidate it grows from and never repeats a config of this run. Raises ProviderError
    naming the operator the templates do not know, and ProviderExhausted when every neighbour was tried.
    """

    name = "templates"
    foreseeable = True  # the same request, the same proposal, at no cost

    def __init__(self, first: Config | None = None, template: Template | None = None) -> None:
        self._first, self._given = first, template
        self._read: dict[str, Template] = {}

    def propose(self, request: GenerateRequest, say: Say, cancel: Cancel) -> Proposal:
        template, problem = self._recognise(request, say), request.problem
        tried = {canonical_json(_config(a, template)) for a in request.history if _is_ours(a, template)}
        if not tried or request.parent is None or not _is_ours(request.parent, template):
            config = self._first or template.default_config()
            if not template.feasible(config):
                raise NotCovered(
                    f"no config of the {template.name} template serves {problem.workload.inputs[0]}: "
                    f"{template.why_not(config)}"
                )
            if canonical_json(dict(config)) in tried:
                raise ProviderExhausted(_nothing_more(request.parent))
            title = f"{template.name}: " + ", ".join(f"{k} {v}" for k, v in config.items())
            what = "as asked" if self._first else f"a sound default for {problem.workload.inputs[0]}"
            reason = f"The reference is a {template.name}; {what}."
            return Proposal(template.write(config), title, reason, "", config)
        config = _config(request.parent, template)
        moves = [(move, {**config, move.knob: move.new}) for move in _moves(template, config, request.parent)]
        expected = template.estimate_us(config)
        for move, moved in sorted(moves, key=lambda pair: _slower(expected, template.estimate_us(pair[1]))):
            if canonical_json(moved) not in tried:
                return Proposal(
                    source=template.write(moved),
                    title=f"{move.knob} {move.old} → {move.new}",
                    reason=move.reason,
                    predicted_effect=f"at least {WORTHWHILE:.0%} less time than {request.parent.candidate.id}",
                    config=moved,
                )
        raise ProviderExhausted("every neighbouring config was tried")

    def _recognise(self, request: GenerateRequest, say: Say) -> Template:
        if self._given is not None:
            return self._given
        key = request.problem.key
        if key not in self._read:
            # torch is imported by the reader alone, when a problem is first read.
            from cutegen_lab.templates.recognise import template_for

            say("reading the reference through torch.export")
            self._read[key] = template_for(request.problem, request.arch)
        return self._read[key]


def _nothing_more(parent: Attempt | None) -> str:
    if parent is None:
        return "the templates' default was tried and did not pass"
    return (
        f"templates refine their own text only, and {parent.candidate.id} is the {parent.candidate.provider}'s: "
        "branch from one of theirs, or edit on"
    )


def _is_ours(attempt: Attempt, template: Template) -> bool:
    """Was it written from this template? A spec's steps may be cut differently."""
    mine = attempt.candidate.provider == TemplatesProvider.name
    return mine and set(template.domains) <= set(attempt.candidate.config)


def _config(attempt: Attempt, template: Template) -> dict[str, Scalar]:
    return {k: v for k, v in attempt.candidate.config.items() if k in template.domains}


def _moves(template: Template, config: Config, parent: Attempt) -> Iterator[_Move]:
    """The nearest feasible value along each parameter's domain; what the profile complains about comes first."""
    knobs = sorted(template.knobs.items(), key=lambda item: not _relieves(item[0], parent))
    for (knob, direction), reason in knobs:
        values = list(template.domains[knob])
        position = values.index(config[knob])
        onward = values[position + 1 :] if direction > 0 else values[:position][::-1]
        value = next((v for v in onward if template.feasible({**config, knob: v})), None)
        if value is not None:
            yield _Move(knob, config[knob], value, reason)


def _slower(before_us: float | None, after_us: float | None) -> bool:
    """Is a move expected to cost more than ``WORTHWHILE`` of the time? Such are proposed last."""
    return before_us is not None and after_us is not None and after_us > before_us * (1 + WORTHWHILE)


_RELIEF: Mapping[str, tuple[tuple[str, int], ...]] = {
    "latency": (("threads_per_row", -1), ("loads", 1), ("vec", 1)),
    "issue": (("vec", 1), ("rows_per_block", 1)),
    "tail": (("rows_per_block", -1), ("loads", -1), ("threads", -1)),
    "launch": (("rows_per_block", 1), ("loads", 1)),
}


def _relieves(knob: tuple[str, int], parent: Attempt) -> bool:
    limiter = parent.trial.profile.limiter if parent.trial and parent.trial.profile else ""
    name, direction = knob  # in a pipeline the name stands behind its step's
    return any(
        direction == way and name.endswith(relieving)
        for word, relief in _RELIEF.items()
        if word in limiter
        for relieving, way in relief
    )
