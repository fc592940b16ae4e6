"""A provider that needs no key and no network: it recognises the reference, writes a template's kernel, and changes one
parameter at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cutegen_lab.core.candidate import Config, Proposal, Scalar
from cutegen_lab.core.errors import InputError, NotCovered, ProviderExhausted
from cutegen_lab.core.hashing import canonical_json
from cutegen_lab.core.pins import broken_pins
from cutegen_lab.core.protocols import Attempt, Cancel, Forecast, GenerateRequest, Say
from cutegen_lab.core.verdict import Diagnostic
from cutegen_lab.templates.template import Template

WORTHWHILE = 0.01  # minimum fraction of the time that a refinement must be predicted to save
_SAME = 0.0005  # a smaller difference (fraction of the time) is reported as equal time


@dataclass(frozen=True)
class _Move:
    """A config that differs from the parent's in one parameter, and the reason for the change."""

    title: str
    config: Config
    reason: str


def first_config(text: str) -> Config | None:
    """The config of a text such as ``vec=1,threads_per_row=32``; None for an empty text. Raises InputError."""
    found: dict[str, Scalar] = {}
    for part in filter(None, text.split(",")):
        name, equals, value = (each.strip() for each in part.partition("="))
        if not (name and equals and value):
            raise InputError(f"{part!r} is not parameter=value", "Write templates:vec=1,threads_per_row=32.")
        found[name] = int(value) if value.lstrip("-").isdigit() else value
    return found or None


class TemplatesProvider:
    """A :class:`~cutegen_lab.core.protocols.Provider`.

    ``template`` (default: the one that serves the problem) writes the kernels. The first has its default config, with
    the parameters of ``first``. Every refinement changes one parameter of its parent and never repeats a config of this
    run. With a ``forecast``, the refinement is the neighbouring config that is predicted fastest; if none is predicted
    to be faster than the parent, there is no refinement unless the analyst wants one.

    Raises ProviderError with the operator that the templates do not cover, and ProviderExhausted if every neighbouring
    config was tried, or none is predicted to be faster.
    """

    name = "templates"

    def __init__(
        self, first: Config | None = None, template: Template | None = None, forecast: Forecast | None = None
    ) -> None:  # fmt: skip
        self._first, self._given, self._forecast = first, template, forecast
        self._read: dict[str, Template] = {}

    @property
    def foreseeable(self) -> bool:
        """Whether proposals are free and deterministic."""
        return self._forecast is None

    def propose(self, request: GenerateRequest, say: Say, cancel: Cancel) -> Proposal:
        template = self._recognise(request, say)
        tried = {canonical_json(_config(a, template)) for a in request.history if _is_ours(a, template)}
        if not tried or request.parent is None or not _is_ours(request.parent, template):
            return self._start(request, template, tried)
        config = _config(request.parent, template)
        moves = [
            move for move in _moves(template, config, request.parent) if canonical_json(dict(move.config)) not in tried
        ]
        if not moves:
            raise ProviderExhausted("every neighbouring config was tried")
        if request.notes:
            moves = _that_keep_pins(moves, template, request)
        if self._forecast is None:
            return _by_formula(request.parent, template, config, moves)
        return self._by_forecast(request, template, config, moves, say, cancel)

    def _start(self, request: GenerateRequest, template: Template, tried: set[str]) -> Proposal:
        main = request.problem.workload.inputs[0]
        if unknown := [name for name in self._first or () if name not in template.domains]:
            known = ", ".join(template.domains)
            raise NotCovered(f"the {template.name} template has no parameter {unknown[0]}; it has {known}")
        config = template.settled({**template.default_config(), **(self._first or {})})
        if not template.feasible(config):
            why = template.why_not(config)
            raise NotCovered(f"no config of the {template.name} template serves {main}: {why}")
        if canonical_json(dict(config)) in tried:
            raise ProviderExhausted(_nothing_more(request.parent))
        title = f"{template.name}: " + ", ".join(f"{k} {v}" for k, v in config.items())
        what = "as asked" if self._first else f"a sound default for {main}"
        article = "an" if template.name[0] in "aeiou" else "a"
        reason = f"The reference is {article} {template.name}; {what}."
        return Proposal(template.write(config), title, reason, "", config)

    def _by_forecast(
        self, request: GenerateRequest, template: Template, config: Config, moves: Sequence[_Move], say: Say,
        cancel: Cancel,
    ) -> Proposal:  # fmt: skip
        """The move whose config is predicted fastest. Raises ProviderExhausted if none is worthwhile or wanted."""
        parent, forecast = request.parent, self._forecast
        assert parent is not None and forecast is not None
        timing = parent.trial.timing if parent.trial else None
        known = timing.time_us if timing and timing.kind == "predicted" else None
        kernels = [(template.write(move.config), move.config) for move in moves]
        if known is None:
            kernels.append((template.write(config), config))
        times = forecast(request, kernels, say, cancel)
        before = times.pop() if known is None else known
        runs = [(us, number) for number, us in enumerate(times) if us is not None]
        if not runs or before is None:  # without predictions, the first move is taken
            return _proposal(moves[0], template, "not known: it could not be predicted")
        best_us, number = min(runs)
        change, gains = best_us / before - 1, best_us < before * (1 - WORTHWHILE)
        who = parent.candidate.id
        if not gains and not request.wanted:
            raise ProviderExhausted(
                f"{who} is at the floor of its template: none of {len(moves)} neighbouring configs is predicted to be "
                f"{WORTHWHILE:.0%} faster than its {before:.3g} µs (the best, {moves[number].title}: "
                f"{best_us:.3g} µs)"
            )
        how = (
            f"{abs(change):.1%} {'more' if change > 0 else 'less'} time than"
            if abs(change) >= _SAME
            else "as much time as"
        )
        effect = f"{how} {who}: {best_us:.3g} µs predicted"
        return _proposal(moves[number], template, effect if gains else f"{effect}; no neighbour is predicted to gain")

    def _recognise(self, request: GenerateRequest, say: Say) -> Template:
        if self._given is not None:
            return self._given
        key = request.problem.key
        if key not in self._read:
            # Imported here because it imports torch: only when a problem is first read.
            from cutegen_lab.templates.recognise import template_for

            say("reading the reference through torch.export")
            self._read[key] = template_for(request.problem, request.arch)
        return self._read[key]


def _nothing_more(parent: Attempt | None) -> str:
    if parent is None:
        return "the templates' default was tried and did not pass"
    return (
        f"templates refine only their own kernels, and {parent.candidate.id} is the {parent.candidate.provider}'s: "
        "branch from one of theirs, or edit this one again"
    )


def _is_ours(attempt: Attempt, template: Template) -> bool:
    """Whether ``attempt`` was written from ``template``. A spec's steps may be cut differently."""
    mine = attempt.candidate.provider == TemplatesProvider.name
    return mine and set(template.domains) <= set(attempt.candidate.config)


def _config(attempt: Attempt, template: Template) -> dict[str, Scalar]:
    return {k: v for k, v in attempt.candidate.config.items() if k in template.domains}


def _moves(template: Template, config: Config, parent: Attempt) -> Iterator[_Move]:
    """For each parameter and direction, the move to the nearest feasible value of its domain. Moves that relieve the
    profile's limiter come first."""
    bounds = _at_their_bounds(template, config)
    knobs = sorted(template.knobs.items(), key=lambda item: not _relieves(item[0], parent))
    for (knob, direction), reason in knobs:
        for value in _beyond(template.domains[knob], config[knob], direction):
            moved = template.settled({**config, **bounds, knob: value})
            if template.feasible(moved) and moved != config:
                changed = [f"{name} {config[name]} → {moved[name]}" for name in config if moved[name] != config[name]]
                yield _Move(", ".join(changed), moved, reason)
                break


def _that_keep_pins(moves: Sequence[_Move], template: Template, request: GenerateRequest) -> list[_Move]:
    """The moves whose texts keep the request's pins. Raises ProviderExhausted if there are none."""
    candidates = {attempt.candidate.id: attempt.candidate for attempt in request.history}

    def broken(move: _Move) -> list[Diagnostic]:
        proposal = Proposal(template.write(move.config), move.title, config=move.config)
        return broken_pins(request.notes, candidates, proposal)

    found = [(move, broken(move)) for move in moves]
    kept = [move for move, reasons in found if not reasons]
    if not kept:
        pins = ", ".join(f"{note.id} ({note.quote if note.name else note.what})" for note in request.notes if note.pin)
        raise ProviderExhausted(f"every neighbouring config that was not tried breaks a pin: {pins}")
    return kept


def _beyond(values: Sequence[Scalar], here: Scalar, direction: int) -> Sequence[Scalar]:
    """The values of a domain beyond ``here`` in ``direction``, nearest first. ``here`` may lie between two of them,
    since an analyst may give the first config."""
    before = list(values[: values.index(here)]) if here in values else [v for v in values if _less(v, here)]
    after = [value for value in values if value != here and value not in before]
    return after if direction > 0 else before[::-1]


def _less(left: Scalar, right: Scalar) -> bool:
    return not isinstance(left, str) and not isinstance(right, str) and left < right


def _at_their_bounds(template: Template, config: Config) -> Config:
    """The largest domain value of each parameter that is as large as currently fits, so that the parameter grows when a
    move makes room."""
    largest = {name: values[-1] for name, values in template.domains.items() if values[-1] != config[name]}
    return {name: value for name, value in largest.items() if template.settled({**config, name: value}) == config}


def _by_formula(parent: Attempt, template: Template, config: Config, moves: Sequence[_Move]) -> Proposal:
    """The first move that the template's formula does not predict to be slower, otherwise the first move."""
    expected = template.estimate_us(config)
    chosen = min(moves, key=lambda move: _slower(expected, template.estimate_us(move.config)))
    return _proposal(chosen, template, f"at least {WORTHWHILE:.0%} less time than {parent.candidate.id}")


def _proposal(move: _Move, template: Template, effect: str) -> Proposal:
    return Proposal(template.write(move.config), move.title, move.reason, effect, move.config)


def _slower(before_us: float | None, after_us: float | None) -> bool:
    """Whether a config change is predicted to lengthen the time by more than the fraction ``WORTHWHILE``. Such moves
    are proposed last."""
    return before_us is not None and after_us is not None and after_us > before_us * (1 + WORTHWHILE)


_RELIEF: Mapping[str, tuple[tuple[str, int], ...]] = {
    "latency": (("threads_per_row", -1), ("loads", 1), ("vec", 1)),
    "issue": (("vec", 1), ("rows_per_block", 1)),
    "tail": (("rows_per_block", -1), ("loads", -1), ("threads", -1)),
    "launch": (("rows_per_block", 1), ("loads", 1)),
}


def _relieves(knob: tuple[str, int], parent: Attempt) -> bool:
    limiter = parent.trial.profile.limiter if parent.trial and parent.trial.profile else ""
    name, direction = knob  # in a pipeline, names begin with their step's name
    return any(
        direction == way and name.endswith(relieving)
        for word, relief in _RELIEF.items()
        if word in limiter
        for relieving, way in relief
    )
