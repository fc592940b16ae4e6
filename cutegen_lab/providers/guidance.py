"""What of a run's evidence a model is told (:class:`~cutegen_lab.core.run.Guidance`)."""

from __future__ import annotations

from dataclasses import replace

from cutegen_lab.core.predicted import AT_THE_FLOOR, COPY, as_counters
from cutegen_lab.core.protocols import Attempt, GenerateRequest
from cutegen_lab.core.run import Guidance
from cutegen_lab.core.trial import Profile, Trial
from cutegen_lab.providers.prompt_topics import WorkClass

STRUCTURED = frozenset({"matmul", "convolution", "attention"})
"""Classes of work whose first kernels differ so much in structure that advice from a profile comes too early."""
SETTLED = 2  # kernels that must pass before the profile of one of these classes is shown


def told(request: GenerateRequest, kind: WorkClass) -> GenerateRequest:
    """``request`` without the evidence that its guidance withholds for problems of the class ``kind``."""
    hides_profiles = not _shows_profiles(request, kind)
    if request.guidance.bounds and not hides_profiles:
        return request

    def shown(attempt: Attempt) -> Attempt:
        trial = attempt.trial
        return attempt if trial is None else replace(attempt, trial=_shown(trial, request.guidance, hides_profiles))

    return replace(
        request, parent=request.parent and shown(request.parent), history=tuple(map(shown, request.history))
    )  # fmt: skip


def _shows_profiles(request: GenerateRequest, kind: WorkClass) -> bool:
    if request.guidance.profiling != "settled" or kind not in STRUCTURED:
        return request.guidance.profiling != "never"
    return sum(each.trial is not None and each.trial.verdict.passed for each in request.history) >= SETTLED


def _shown(trial: Trial, guidance: Guidance, hides_profile: bool) -> Trial:
    profile = None if hides_profile else trial.profile
    if guidance.bounds:
        return replace(trial, profile=profile)
    return replace(trial, profile=profile and _without_floor(profile), sol=None)


def _without_floor(profile: Profile) -> Profile:
    """``profile`` without the predicted time of a copy, from which the attainable time follows, and without saying that
    the kernel is at the floor."""
    hidden = as_counters({COPY: 0.0})
    limiter = "memory" if AT_THE_FLOOR in profile.limiter else profile.limiter
    counters = {name: n for name, n in profile.counters.items() if name not in hidden}
    return replace(profile, counters=counters, limiter=limiter)
