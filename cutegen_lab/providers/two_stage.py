"""The strategy "two-stage": a model proposes structure and the parameters that may vary, a search sets their values.

After "A Two-Stage GPU Kernel Tuner" (arXiv 2601.12698): kernels become templates with explicit parameters, which are
then searched. Here both stages are turns of one run, and what the search finds is judged like any candidate.
"""

from __future__ import annotations

import json
from dataclasses import replace

from cutegen_lab.core.candidate import Config, Proposal
from cutegen_lab.core.errors import Cancelled, CutegenError, InputError
from cutegen_lab.core.pins import broken_pins
from cutegen_lab.core.protocols import Attempt, Cancel, Forecast, GenerateRequest, Provider, Say
from cutegen_lab.core.syntax import with_launch_defaults
from cutegen_lab.tuning.search import Search
from cutegen_lab.tuning.space import Space, brief, key, read_tunables

SEARCH = "search"  # provider of what a search found
WORTHWHILE = 0.01  # minimum fraction of the time that the found values must be predicted to save
_BATCH = 4  # configs predicted at a time
_SHOWN = 4  # fastest configs that a model is told


class TwoStageProvider:
    """A :class:`~cutegen_lab.core.protocols.Provider`: asks ``inner``, a model, for kernels.

    The configs of a kernel's TUNABLE are searched by predicted time, at most ``evaluations`` of them, once for each
    text. The first kernel is searched when it has passed, before ``inner`` is asked to refine it: if values are
    predicted to be faster, the text with these as its defaults is the proposal. Later kernels of ``inner`` are searched
    before they are judged, so that a change of structure is not judged with poor values. An analyst's reason for a
    rejection goes to ``inner`` immediately. Raises what ``inner`` and ``forecast`` raise.
    """

    def __init__(self, inner: Provider, forecast: Forecast, evaluations: int = 16) -> None:
        self._inner, self._forecast, self._evaluations = inner, forecast, evaluations
        self._found: dict[str, str] = {}  # text without values -> what its search found
        self.name = inner.name

    @property
    def streamed(self) -> int:
        """Tokens received of the current answer of ``inner``."""
        return int(getattr(self._inner, "streamed", 0))

    def propose(self, request: GenerateRequest, say: Say, cancel: Cancel) -> Proposal:
        if (searched := self._values(request, say, cancel)) is not None:
            return searched
        asked = replace(request, searched=True, search_result=self._result(request))
        proposal = self._inner.propose(asked, say, cancel)
        passed = any(each.trial is not None and each.trial.verdict.passed for each in request.history)
        return self._tuned(proposal, request, say, cancel) if passed else proposal

    def _values(self, request: GenerateRequest, say: Say, cancel: Cancel) -> Proposal | None:
        """The parent with the values that a search found; None if there is nothing to search or to gain."""
        parent = request.parent
        if request.kind != "refine" or request.feedback or parent is None:
            return None
        candidate = parent.candidate
        space = _space(candidate.proposal, request)
        if space is None or self._was_searched(candidate.proposal, space, request):
            return None
        timing = parent.trial.timing if parent.trial else None
        known_us = timing.time_us if timing is not None and timing.kind == "predicted" else None
        search = self._search(candidate.proposal, space, request, say, cancel, known_us)
        before, best = search.times_us.get(key(space.default)), search.best
        if before is None or best is None or best[1] > before * (1 - WORTHWHILE):
            return None
        values, best_us = best
        changed = [f"{name} {space.default[name]} → {value}" for name, value in values.items()
                   if value != space.default[name]]  # fmt: skip
        return Proposal(
            source=with_launch_defaults(candidate.source, values), title=", ".join(changed),
            reason=f"The fastest of {len(search.times_us)} configs by predicted time; TUNABLE has {space.total}.",
            predicted_effect=f"{1 - best_us / before:.1%} less time than {candidate.id}: {best_us:.3g} µs predicted",
            config={name: values.get(name, value) for name, value in candidate.config.items()}, provider=SEARCH,
        )  # fmt: skip

    def _tuned(self, proposal: Proposal, request: GenerateRequest, say: Say, cancel: Cancel) -> Proposal:
        """``proposal`` with the values that a search found as its defaults; itself if there is nothing to search, or no
        time can be predicted: an answer is never lost for that."""
        space = _space(proposal, request)
        if space is None or self._was_searched(proposal, space, request):
            return proposal
        try:
            best = self._search(proposal, space, request, say, cancel).best
        except Cancelled:
            raise
        except CutegenError as error:
            say(f"its values are not searched: {error.message}")
            return proposal
        if best is None or best[0] == space.default:
            return proposal
        reason = f"{proposal.reason} (A search set {brief(best[0])}.)".strip()
        return replace(proposal, source=with_launch_defaults(proposal.source, best[0]), reason=reason)

    def _was_searched(self, proposal: Proposal, space: Space, request: GenerateRequest) -> bool:
        """Whether this text was searched, by this provider or, before the run was resumed, by another."""
        text = _without_values(proposal, space)
        before = (
            each.candidate.proposal
            for each in request.history
            if each.candidate.provider == SEARCH or _was_refined(each, request)
        )
        return len(space.configs) < 2 or text in self._found or any(_without_values(p, space) == text for p in before)

    def _result(self, request: GenerateRequest) -> str:
        """What the search of the parent's text found; "" if it was not searched."""
        proposal = request.parent.candidate.proposal if request.parent else None
        space = _space(proposal, request) if proposal else None
        return self._found.get(_without_values(proposal, space), "") if proposal and space else ""

    def _search(
        self, proposal: Proposal, space: Space, request: GenerateRequest, say: Say, cancel: Cancel,
        default_us: float | None = None,
    ) -> Search:  # fmt: skip
        """A search over ``space``. ``default_us``: the predicted time of its default, if that is known."""
        search = Search(space)
        if default_us is not None:
            search.tell(space.default, default_us)
        tried = 0
        while configs := search.ask(min(_BATCH, self._evaluations - tried)):
            kernels = [(proposal.source, {**proposal.config, **config}) for config in configs]
            for config, time_us in zip(configs, self._forecast(request, kernels, say, cancel), strict=True):
                search.tell(config, time_us)
            tried += len(configs)
            best = search.best
            say(f"searched {tried} of {len(space.configs)} configs" + (f": {best[1]:.3g} µs predicted" if best else ""))
        self._found[_without_values(proposal, space)] = _in_words(search, space)
        return search


def _in_words(search: Search, space: Space) -> str:
    """The fastest configs of a search and the slowest, with their predicted times."""
    times = sorted((time_us, name) for name, time_us in search.times_us.items() if time_us is not None)
    if not times:
        return ""
    shown = [f"{brief(json.loads(name))}: {time_us:.3g} µs" for time_us, name in times[:_SHOWN]]
    slowest = f"; the slowest, {brief(json.loads(times[-1][1]))}: {times[-1][0]:.3g} µs" if len(times) > _SHOWN else ""
    return f"{len(search.times_us)} of {space.total} configs were predicted: {', '.join(shown)}{slowest}"


def _space(proposal: Proposal, request: GenerateRequest) -> Space | None:
    """The configs of a proposal that keep the analyst's pins; None if its text has none that can be read."""
    if proposal.spec:
        return None
    try:
        found = read_tunables(proposal.source)
    except InputError:  # the judge says so, if it matters
        return None
    own = {name: value for name, value in proposal.config.items() if name in found.domains}
    known = {attempt.candidate.id: attempt.candidate for attempt in request.history}

    def keeps_pins(config: Config) -> bool:
        if not request.notes:
            return True
        text = with_launch_defaults(proposal.source, config)
        return not broken_pins(request.notes, known, Proposal(text, "", config={**proposal.config, **config}))

    try:
        return Space.build(found.domains, {**found.default, **own}, keeps_pins)
    except InputError:
        return None


def _without_values(proposal: Proposal, space: Space) -> str:
    """The text with the first value of each domain as default: equal for texts that differ in values only."""
    return with_launch_defaults(proposal.source, {name: each[0] for name, each in space.domains.items()})


def _was_refined(parent: Attempt, request: GenerateRequest) -> bool:
    """Whether a model already refined ``parent``: a search before it had found nothing."""
    return any(
        each.candidate.parent_id == parent.candidate.id and each.candidate.provider != SEARCH
        for each in request.history
    )
