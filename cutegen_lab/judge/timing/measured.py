"""Interleaved timing of a candidate with its baselines on a device that has a stopwatch."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

import torch

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.problem import Problem, TensorSpec, Workload
from cutegen_lab.core.protocols import Cancel, Say
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.core.stopwatch import COPY, INCUMBENT, HasStopwatch, Stopwatch, Subject, rotation
from cutegen_lab.core.trial import Timing
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.judge.timing.baselines import REFERENCES, baseline_kinds, fastest_baseline
from cutegen_lab.judge.timing.confidence import comparison, measurement
from cutegen_lab.judge.timing.decisions import (
    CANDIDATE,
    clock_notes,
    comparison_decided,
    is_slower,
    width_notes,
)
from cutegen_lab.judge.timing.gpu_sensors import sensor_ranges, throttle_note
from cutegen_lab.judge.timing.interleaved import Effort, InterleavedTimer, Rounds, Times
from cutegen_lab.problems.tensors import from_bytes, laid_out, storage, to_bytes

FLOOR_MARGIN = 0.95  # fraction of the time of the compulsory bytes at peak bandwidth, which real accesses never reach
CUPTI = "CUPTI's records of kernels"
_KEPT_BYTES = 1 << 30  # bytes of outputs that are kept on the host until they are checked

OutputCheck = Callable[[Sequence[torch.Tensor], Sequence[torch.Tensor], int], Fault | None]
"""(inputs, outputs, seed for the check's own draws) → Fault of the outputs, or None."""


@dataclass(frozen=True)
class Job:
    """What to time."""

    problem: Problem
    """Problem whose main workload is timed."""
    build: Build
    """The candidate's build for it."""
    incumbent: Build | None
    """Build of the accepted kernel; None if there is none."""
    inputs: Sequence[torch.Tensor]
    """Inputs; those of timed calls are rotations of these."""
    gpu: GpuSpec
    """Target GPU, for the minimum possible time (:func:`floor_us`)."""
    check_outputs: OutputCheck
    """Check of outputs against the float64 reference."""

    @property
    def workload(self) -> Workload:
        """The main workload."""
        return self.problem.workload


@dataclass(frozen=True)
class _TimedOutputs:
    """Outputs of one timed call."""

    seed: int
    call: int
    outputs: list[memoryview]


@dataclass(frozen=True)
class _ColdRounds:
    """Rounds with a cold L2, and the timer that took them."""

    timer: InterleavedTimer
    rounds: Rounds


def time_interleaved(
    job: Job, device: HasStopwatch, name: str, effort: Effort, seed: Callable[[], int], say: Say, cancel: Cancel
) -> Timing | Fault:
    """Times a candidate. Returns its Timing, or a Fault: the candidate's, or DEVICE_ERROR if the device or a baseline
    failed. Raises Cancelled."""
    watch = device.stopwatch(job.workload.tensors, to_bytes(job.inputs, job.workload.inputs), cancel)
    if isinstance(watch, Fault):
        return watch
    with closing(watch):
        return _Timer(job, watch, effort, seed, say, cancel).run(name)


class _Timer:
    def __init__(
        self, job: Job, watch: Stopwatch, effort: Effort, seed: Callable[[], int], say: Say, cancel: Cancel
    ) -> None:
        self._job, self._watch, self._effort, self._seed = job, watch, effort, seed
        self._say, self._cancel = say, cancel
        self._random = random.Random(seed())  # noqa: S311 - which calls are checked; the seed itself is secret
        self._calls = 1
        self._notes: list[str] = []
        self._timed_outputs: list[_TimedOutputs] = []

    def run(self, device: str) -> Timing | Fault:
        """Compares the candidate with the accepted kernel first. PyTorch, which takes longer to compile than these
        rounds, is prepared only for a candidate that is faster, or if there is no accepted kernel."""
        names = self._add_kernels()
        if isinstance(names, Fault):
            return names
        checks = self._effort.checks
        found: _ColdRounds | Fault | None = None
        if INCUMBENT in names:
            found = self._cold(names, checks // 2, comparison_decided)
            if isinstance(found, _ColdRounds):
                names, checks = found.timer.names, checks - checks // 2
        if found is None or (isinstance(found, _ColdRounds) and self._deserves_baselines(found.rounds)):
            found = self._cold(self._with_baselines(names), checks, is_slower)
        elif isinstance(found, _ColdRounds):
            self._notes.append("PyTorch was not timed: the candidate is not faster than the accepted kernel")
        if isinstance(found, Fault):
            return found
        timer, cold = found.timer, found.rounds
        side = (Rounds(), Rounds(), Rounds()) if is_slower(cold.times_us) else self._side_rounds(timer)
        if isinstance(side, Fault):
            return side
        self._say("check the outputs of timed calls")
        if fault := self._wrong_output() or self._too_fast(cold):
            return fault
        return self._report(device, cold, *side)

    def _deserves_baselines(self, rounds: Rounds) -> bool:
        """Whether to time PyTorch too: if the candidate is faster than the accepted kernel, or below the floor, where
        PyTorch shows whether the floor holds."""
        times = rounds.times_us
        if INCUMBENT not in times or self._below_floor(rounds):
            return True
        return comparison(INCUMBENT, times[CANDIDATE], times[INCUMBENT]).better

    def _cold(self, names: Sequence[str], checks: int, decided: Callable[[Times], bool]) -> _ColdRounds | Fault:
        """Cold rounds of ``names``; keeps outputs of ``checks`` of the candidate's timed calls."""
        self._say(f"time {self._job.workload.name}, interleaved with {', '.join(names[1:]) or 'nothing'}")
        timer = InterleavedTimer(self._watch, names, self._seed, self._cancel)
        rounds = timer.converge(self._effort, self._rounds_to_check(checks), self._keep, decided)
        if isinstance(rounds, Fault):
            return rounds
        self._drop(rounds)
        return _ColdRounds(timer, rounds)

    def _side_rounds(self, timer: InterleavedTimer) -> tuple[Rounds, Rounds, Rounds] | Fault:
        """Samples with a warm L2, of single calls between events, and from CUPTI: not needed for a candidate that has
        lost."""
        side = (self._effort.side_rounds, self._effort.side_seconds)
        warm, events = timer.rounds("warm", *side), timer.rounds("events", *side)
        if isinstance(warm, Fault):
            return warm
        if isinstance(events, Fault):
            return events
        recorded = timer.each("records", self._effort.side_rounds) if "records" in self._watch.modes else Rounds()
        if isinstance(recorded, Fault):
            if recorded.verdict is not Verdict.DEVICE_ERROR:
                return recorded
            self._notes.append(f"{CUPTI} are not available: {recorded.message}")
            recorded = Rounds()
        return warm, events, recorded

    def _add_kernels(self) -> list[str] | Fault:
        """Loads the candidate, before the device's memory can hold an answer, then the accepted kernel and a copy of
        the compulsory bytes."""
        mine = self._watch.add_build(CANDIDATE, self._job.build)
        if isinstance(mine, Fault):
            return mine
        self._calls = mine.calls
        others = dict[str, Subject | Fault]()
        if self._job.incumbent is not None:
            others[INCUMBENT] = self._watch.add_build(INCUMBENT, self._job.incumbent)
        others[COPY] = self._watch.add_copy(COPY)
        return [CANDIDATE, *self._added(others)]

    def _with_baselines(self, names: Sequence[str]) -> list[str]:
        """``names`` and PyTorch's baselines that can be timed, the copy last."""
        problem, others = self._job.problem, dict[str, Subject | Fault]()
        for kind in baseline_kinds(problem, self._effort.references):
            self._say(f"prepare {REFERENCES[kind]}")
            others[REFERENCES[kind]] = self._watch.add_reference(REFERENCES[kind], problem, kind)
        kernels = [name for name in names if name != COPY]
        return [*kernels, *self._added(others), *(name for name in names if name == COPY)]

    def _added(self, others: Mapping[str, Subject | Fault]) -> list[str]:
        """Names of the subjects that can be timed. Their notes, and the faults of other subjects, are added to the
        timing's notes."""
        for name, added in others.items():
            if isinstance(added, Fault):
                self._notes.append(f"{name} was not timed: {added}")
            else:
                self._notes += [f"{name}: {note}" for note in added.notes]
        return [name for name, added in others.items() if not isinstance(added, Fault)]

    def _rounds_to_check(self, checks: int) -> list[int]:
        size = sum(spec.nbytes for spec in self._job.workload.outputs)
        surely = self._effort.rounds_to_decide
        more = min(_KEPT_BYTES // max(size, 1), checks, surely) - 1
        return [0, *self._random.sample(range(1, surely), max(more, 0))]

    def _keep(self, seed: int) -> Fault | None:
        call = self._random.randrange(self._calls)
        outputs = self._watch.outputs(CANDIDATE, call)
        if isinstance(outputs, Fault):
            return outputs
        self._timed_outputs.append(_TimedOutputs(seed, call, outputs))
        return None

    def _wrong_output(self) -> Fault | None:
        """Fault of the first timed call whose outputs do not match the reference for that call's inputs."""
        job = self._job
        for timed in self._timed_outputs:
            outputs = [from_bytes(b, s) for s, b in zip(job.workload.outputs, timed.outputs, strict=True)]
            inputs = rotated_inputs(job.inputs, job.workload.inputs, timed.seed, timed.call)
            if fault := job.check_outputs(inputs, outputs, timed.seed):
                where = f"timed call {timed.call + 1} of {self._calls}"
                return Fault(fault.verdict, f"{where} was wrong, though checked calls were right: {fault.message}")
        return None

    def _too_fast(self, cold: Rounds) -> Fault | None:
        below = self._below_floor(cold)
        if CANDIDATE not in below:
            return None
        floor, mine = self._floor_us(), min(cold.times_us[CANDIDATE])
        if others := [name for name in below if name not in (CANDIDATE, INCUMBENT)]:
            self._notes.append(f"the floor of {floor:.4g} µs was not applied: {others[0]} is below it too")
            return None
        return Fault(
            Verdict.TOO_FAST,
            f"a sample took {mine:.4g} µs, under the floor of {floor:.4g} µs ({FLOOR_MARGIN:.0%} of what the "
            "compulsory bytes need at peak bandwidth): quarantined, no time is reported",
        )

    def _floor_us(self) -> float:
        return floor_us(self._job, self._watch, self._calls)

    def _below_floor(self, cold: Rounds) -> list[str]:
        """Subjects with a sample under the floor."""
        floor = self._floor_us()
        return [name for name, times in cold.times_us.items() if min(times) < floor]

    def _report(self, device: str, cold: Rounds, warm: Rounds, events: Rounds, recorded: Rounds) -> Timing:
        for other in (warm, events, recorded):
            self._drop(other)
        measured = [
            measurement(name, rounds.clock, rounds.flush, times)
            for rounds in (cold, warm, events, recorded) for name, times in rounds.times_us.items()
        ]  # fmt: skip
        times = cold.times_us
        mine = times[CANDIDATE]
        by = {(m.subject, m.flush): m for m in measured}
        main, warmed = by[CANDIDATE, cold.flush], by.get((CANDIDATE, warm.flush))
        for what, other in (("a single call between events", events), ("a single call by CUPTI's records", recorded)):
            if CANDIDATE in other.times_us:
                both = [name for name in times if name in other.times_us]
                self._notes += clock_notes(what, [(by[name, cold.flush], by[name, other.flush]) for name in both])
        self._notes += width_notes(times, self._effort)
        readings = cold.readings
        if note := throttle_note(readings):
            self._notes.append(note)
        others = [name for name in times if name != CANDIDATE]
        return Timing(
            kind="measured", time_us=main.time_us, device=device, samples=main.samples, iqr_us=main.iqr_us,
            method=f"{cold.clock}; {cold.flush}; interleaved with {', '.join(others) or 'nothing'}",
            baselines={name: by[name, cold.flush].time_us for name in others},
            half_width_us=main.half_width_us, warm_us=warmed.time_us if warmed else None,
            measurements=tuple(measured), comparisons=tuple(comparison(name, mine, times[name]) for name in others),
            rounds_us={name: tuple(taken) for name, taken in times.items()}, baseline=fastest_baseline(times),
            notes=tuple(self._notes),
            conditions={**self._watch.conditions, **sensor_ranges(readings)},
        )  # fmt: skip

    def _drop(self, rounds: Rounds) -> None:
        self._notes += [f"{name} failed while it was timed: {fault}" for name, fault in rounds.dropped.items()]


def floor_us(job: Job, watch: Stopwatch, calls: int) -> float:
    """``FLOOR_MARGIN`` times the minimum possible time of a cold call, in microseconds: the compulsory bytes of inputs
    are read and all outputs written at peak DRAM bandwidth, except outputs that L2 may still hold at the end."""
    read = sum(spec.compulsory_bytes for spec in job.workload.inputs)
    written = sum(spec.nbytes for spec in job.workload.outputs)
    peak = watch.dram_bytes_per_s or job.gpu.dram_bytes_per_s
    return FLOOR_MARGIN * (read + max(written - watch.l2_bytes / calls, 0.0)) / peak * 1e6


def rotated_inputs(
    inputs: Sequence[torch.Tensor], specs: Sequence[TensorSpec], seed: int, call: int
) -> list[torch.Tensor]:
    """The inputs of timed call ``call`` of the sample with ``seed``, rotated as by the stopwatch."""
    return [
        laid_out(torch.roll(storage(t, spec), rotation(seed, call, index, spec.cosize)), spec)
        for index, (t, spec) in enumerate(zip(inputs, specs, strict=True))
    ]
