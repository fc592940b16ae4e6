"""Performs one step through the protocols: takes an effect, returns the event with its result."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from cutegen_lab.core.artifact import Artifact, CompileFailure
from cutegen_lab.core.candidate import Candidate, Proposal
from cutegen_lab.core.errors import ProviderError, ProviderExhausted
from cutegen_lab.core.protocols import Cancel, Provider, Say
from cutegen_lab.core.roofline import target_gpu
from cutegen_lab.core.run import (
    Checked,
    Compiled,
    CompileFailed,
    Event,
    Generated,
    GenerateFailed,
    IdeasGiven,
    Profiled,
    RunSettings,
    RunState,
    Step,
    StepFailed,
    Timed,
)
from cutegen_lab.core.trial import Profile as ProfileResult
from cutegen_lab.core.trial import Provenance, Resources, Timing
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.loop.answers import next_id
from cutegen_lab.loop.budget import nothing_to_gain
from cutegen_lab.loop.effects import Check, Compile, Generate, Profile, Time
from cutegen_lab.loop.notes import broken_by
from cutegen_lab.loop.services import Services
from cutegen_lab.loop.speculative_build import SpeculativeBuild

Work = Generate | Compile | Check | Time | Profile


class Steps:
    """The work of each step of one run. Raises what the services raise; the driver turns that into a
    :class:`StepFailed`."""

    def __init__(self, services: Services, provider: Provider, settings: RunSettings) -> None:
        """Raises SetupError, InputError if a service that ``settings`` need is not available."""
        self._provider, self._store = provider, services.store
        self._compiler, self._judge = services.compiler(), services.judge()
        self._device, self._gpu = services.device(settings.device), target_gpu(settings.arch, settings.gpu)
        self._workloads, self._versions = services.workloads, services.versions
        self._profiles: dict[str, ProfileResult | None] = {}
        self._ahead = SpeculativeBuild(provider, self._built)

    def perform(self, effect: Work, state: RunState, say: Say, cancel: Cancel) -> Sequence[Event]:
        """The events of a step, in order; the last is its result."""
        if isinstance(effect, Generate):
            return self._generate(effect, state, say, cancel)
        return [self._evaluate(effect, state, say, cancel)]

    def _evaluate(
        self, effect: Compile | Check | Time | Profile, state: RunState, say: Say, cancel: Cancel
    ) -> Event:  # fmt: skip
        match effect:
            case Compile(candidate_id):
                return self._compile(state.candidates[candidate_id], state, say, cancel)
            case Check(candidate_id, sha):
                return self._check(candidate_id, sha, state, say, cancel)
            case Time(candidate_id, sha):
                return self._time(candidate_id, sha, state, say, cancel)
            case Profile(candidate_id, sha):
                return self._profile(candidate_id, sha, state, say, cancel)

    def _generate(self, effect: Generate, state: RunState, say: Say, cancel: Cancel) -> Sequence[Event]:
        recorded = state.settings.provider.startswith("replay:")  # a recording is always played to its end
        if state.settings.auto and not recorded and (reason := nothing_to_gain(state)):
            return [GenerateFailed(reason, exhausted=True)]
        try:
            proposal = self._provider.propose(effect.request, say, cancel)
        except ProviderExhausted as error:
            return [GenerateFailed(error.message, exhausted=True, usage=error.usage)]
        except ProviderError as error:
            return [GenerateFailed(error.reason, hint=error.hint, usage=error.usage)]
        author = proposal.provider or self._provider.name
        ideas = [IdeasGiven(proposal.ideas, proposal.model or author)] if proposal.ideas else []
        candidate = Candidate(next_id(state), state.ask_parent_id, author, replace(proposal, ideas=()))
        return [*ideas, Generated(candidate)]

    def _compile(self, candidate: Candidate, state: RunState, say: Say, cancel: Cancel) -> Event:
        started = time.monotonic()
        self._ahead.wait(candidate.proposal, cancel)
        result = _pins_broken(candidate, state) or self._built(candidate.proposal, state, cancel, say)
        provenance = self._provenance(candidate, state, result)
        if isinstance(result, CompileFailure):
            return CompileFailed(candidate.id, result.verdict, result.reason, provenance, result.diagnostics)
        main = state.problem.workload.name
        return Compiled(
            candidate_id=candidate.id,
            artifact_sha256=self._store.put_artifact(result),
            resources=resources(result, main),
            provenance=provenance,
            notes=result.builds[main].notes,
            seconds=time.monotonic() - started,
        )

    def _built(
        self, proposal: Proposal, state: RunState, cancel: Cancel, say: Say = lambda line: None
    ) -> Artifact | CompileFailure:
        workloads = state.problem.built_for(self._workloads(state.problem, self._device))
        return _refused(proposal) or self._compiler.compile(
            proposal.source, proposal.config, workloads, state.settings.arch, say, cancel
        )

    def _check(self, candidate_id: str, sha: str, state: RunState, say: Say, cancel: Cancel) -> Event:
        if self._device.kind == "cuda":  # the emulator needs the cores for the check
            self._ahead.begin(state)
        result = self._judge.check(state.problem, self._store.get_artifact(sha), self._device, say, cancel)
        if result.verdict in (Verdict.DEVICE_ERROR, Verdict.CANCELLED):
            return StepFailed(Step.CHECK, f"{result.verdict.value}: {result.reason}")
        return Checked(candidate_id, self._device.name, result)

    def _time(self, candidate_id: str, sha: str, state: RunState, say: Say, cancel: Cancel) -> Event:
        outcome, self._profiles[candidate_id] = self._timed(sha, state, say, cancel)
        if isinstance(outcome, Fault):
            if outcome.verdict in (Verdict.DEVICE_ERROR, Verdict.CANCELLED):
                return StepFailed(Step.TIME, f"{outcome.verdict.value}: {outcome}")
            return Timed(candidate_id, None, outcome)
        return Timed(candidate_id, outcome)

    def _profile(self, candidate_id: str, sha: str, state: RunState, say: Say, cancel: Cancel) -> Event:
        # The judge profiles while it times; only a run that was resumed between the two steps has to time again.
        if candidate_id not in self._profiles:
            self._profiles[candidate_id] = self._timed(sha, state, say, cancel)[1]
        return Profiled(candidate_id, self._profiles[candidate_id])

    def _timed(
        self, sha: str, state: RunState, say: Say, cancel: Cancel
    ) -> tuple[Timing | Fault, ProfileResult | None]:
        best = state.compiled.get(state.incumbent_id) if state.incumbent_id else None
        return self._judge.time(
            state.problem, self._store.get_artifact(sha), self._device, self._gpu, say, cancel,
            incumbent=self._store.get_artifact(best.artifact_sha256) if best else None,
        )  # fmt: skip

    def _provenance(self, candidate: Candidate, state: RunState, result: Artifact | CompileFailure) -> Provenance:
        problem = state.problem
        built = result if isinstance(result, Artifact) else None
        versions = dict(self._versions)
        if built:
            versions["nvidia-cutlass-dsl"] = built.dsl_version
        return Provenance(
            problem_key=problem.key,
            source_sha256=candidate.source_sha256,
            config=dict(candidate.config),
            arch=state.settings.arch,
            device=self._device.name,
            seeds=(),
            tolerances=dict(vars(problem.tolerances)),
            versions=versions,
            isolation=result.isolation,
            artifact_sha256=built.sha256 if built else "",
        )


def _pins_broken(candidate: Candidate, state: RunState) -> CompileFailure | None:
    """The failure of a candidate that breaks a pin; None if it keeps every pin."""
    found = broken_by(state, candidate.proposal)
    return CompileFailure(Verdict.PIN_BROKEN, f"it breaks {found[0].message}", tuple(found)) if found else None


def _refused(proposal: Proposal) -> CompileFailure | None:
    """The failure of a spec that did not become a kernel; None if there is something to compile."""
    if not proposal.refused:
        return None
    reason = f"the spec cannot be compiled: {proposal.refused[0]}"
    return CompileFailure(Verdict.COMPILE_ERROR, reason, proposal.refused)


def resources(artifact: Artifact, workload: str) -> Resources:
    """Resources of the build for ``workload``: of each the maximum over its kernels."""
    build = artifact.builds[workload]
    return Resources(
        registers=max(k.registers for k in build.kernels),
        spill_bytes=max(k.spill_store_bytes + k.spill_load_bytes for k in build.kernels),
        static_smem_bytes=max(k.static_smem_bytes for k in build.kernels),
        dynamic_smem_bytes=max((launch.dynamic_smem_bytes for launch in build.plan.launches), default=0),
        kernels=len(build.kernels),
    )
