"""The strategy "two-stage": a model proposes structure and the parameters that may vary, a search sets their values.

After "A Two-Stage GPU Kernel Tuner" (arXiv 2601.12698): kernels become templates with explicit parameters, which are
then searched. Here both stages are turns of one run, and what the search finds is judged like any candidate.
"""

from __future__ import annotations

from dataclasses import replace

from cutegen_lab.core.candidate import Config, Proposal
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.pins import broken_pins
from cutegen_lab.core.protocols import Attempt, Cancel, Forecast, GenerateRequest, Provider, Say
from cutegen_lab.core.syntax import with_launch_defaults
from cutegen_lab.tuning.search import Search
from cutegen_lab.tuning.space import Space, key, read_tunables

SEARCH = "search"  # provider of what a search found
WORTHWHILE = 0.01  # minimum fraction of the time that the found values must be predicted to save
_BATCH = 4  # configs predicted at a time


class TwoStageProvider:
    """A :class:`~cutegen_lab.core.protocols.Provider`: asks ``inner``, a model, for kernels.

    Once a kernel with a TUNABLE has passed, and before ``inner`` is asked to refine it, its configs are searched by
    predicted time, at most ``evaluations`` of them, once for each text. If one is predicted to be faster, the text with
    these values as its defaults is the proposal, so that later edits by the model keep them. An analyst's reason for a
    rejection goes to ``inner`` immediately. Raises what ``inner`` and ``forecast`` raise.
    """

    def __init__(self, inner: Provider, forecast: Forecast, evaluations: int = 16) -> None:
        self._inner, self._forecast, self._evaluations = inner, forecast, evaluations
        self._searched: set[str] = set()
        self.name = inner.name

    @property
    def streamed(self) -> int:
        """Tokens received of the current answer of ``inner``."""
        return int(getattr(self._inner, "streamed", 0))

    def propose(self, request: GenerateRequest, say: Say, cancel: Cancel) -> Proposal:
        return self._values(request, say, cancel) or self._inner.propose(replace(request, searched=True), say, cancel)

    def _values(self, request: GenerateRequest, say: Say, cancel: Cancel) -> Proposal | None:
        """The parent with the values that a search found; None if there is nothing to search or to gain."""
        parent = request.parent
        if request.kind != "refine" or request.feedback or parent is None or parent.candidate.proposal.spec:
            return None
        try:
            space = _space(parent, request)
        except InputError:  # no TUNABLE, or none that can be read: the judge has said so, if it matters
            return None
        text = _without_values(parent, space)
        known = {_without_values(each, space) for each in request.history if _was_searched(each)}
        if text in self._searched | known or len(space.configs) < 2 or self._was_refined(parent, request):
            return None
        found = self._found(parent, space, request, say, cancel)
        self._searched.add(text)
        return found

    def _was_refined(self, parent: Attempt, request: GenerateRequest) -> bool:
        """Whether ``inner`` already refined ``parent``: a search before it had found nothing."""
        return any(
            each.candidate.parent_id == parent.candidate.id and each.candidate.provider == self.name
            for each in request.history
        )

    def _found(
        self, parent: Attempt, space: Space, request: GenerateRequest, say: Say, cancel: Cancel
    ) -> Proposal | None:  # fmt: skip
        candidate, search = parent.candidate, Search(space)
        timing = parent.trial.timing if parent.trial else None
        if timing is not None and timing.kind == "predicted":
            search.tell(space.default, timing.time_us)
        tried = 0
        while configs := search.ask(min(_BATCH, self._evaluations - tried)):
            kernels = [(candidate.source, {**candidate.config, **config}) for config in configs]
            for config, time_us in zip(configs, self._forecast(request, kernels, say, cancel), strict=True):
                search.tell(config, time_us)
            tried += len(configs)
            best = search.best
            say(f"searched {tried} of {len(space.configs)} configs" + (f": {best[1]:.3g} µs predicted" if best else ""))
        before, best = search.times_us.get(key(space.default)), search.best
        if before is None or best is None or best[1] > before * (1 - WORTHWHILE):
            return None
        values, best_us = best
        changed = [f"{name} {space.default[name]} → {value}" for name, value in values.items()
                   if value != space.default[name]]  # fmt: skip
        return Proposal(
            source=with_launch_defaults(candidate.source, values), title=", ".join(changed),
            reason=f"The fastest of {tried} configs by predicted time; TUNABLE has {space.total}.",
            predicted_effect=f"{1 - best_us / before:.1%} less time than {candidate.id}: {best_us:.3g} µs predicted",
            config={name: values.get(name, value) for name, value in candidate.config.items()}, provider=SEARCH,
        )  # fmt: skip


def _space(parent: Attempt, request: GenerateRequest) -> Space:
    """The parent's configs that keep the analyst's pins. Raises InputError if its text has none."""
    candidate, found = parent.candidate, read_tunables(parent.candidate.source)
    own = {name: value for name, value in candidate.config.items() if name in found.domains}
    known = {attempt.candidate.id: attempt.candidate for attempt in request.history}

    def keeps_pins(config: Config) -> bool:
        if not request.notes:
            return True
        proposal = Proposal(with_launch_defaults(candidate.source, config), "", config={**candidate.config, **config})
        return not broken_pins(request.notes, known, proposal)

    return Space.build(found.domains, {**found.default, **own}, keeps_pins)


def _without_values(attempt: Attempt, space: Space) -> str:
    """The text with the first value of each domain as default: equal for texts that differ in values only."""
    return with_launch_defaults(attempt.candidate.source, {name: each[0] for name, each in space.domains.items()})


def _was_searched(attempt: Attempt) -> bool:
    return attempt.candidate.provider == SEARCH
