"""Interleaved timing: each round takes one sample of every subject, in random order.

Drift of clocks and temperature then affects all subjects alike, and no subject can depend on which one ran before it.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from cutegen_lab.core.errors import Cancelled
from cutegen_lab.core.protocols import Cancel
from cutegen_lab.core.stopwatch import Mode, ReferenceKind, Samples, Stopwatch
from cutegen_lab.core.verdict import Fault
from cutegen_lab.judge.timing.confidence import relative_half_width

Times = Mapping[str, list[float]]


@dataclass(frozen=True)
class Effort:
    """How long to sample. Cold rounds end when the 95% interval of every median is narrow enough, or at the limits
    below."""

    half_width: float = 0.005
    """Target: half the 95% interval of each cold median, as a fraction of the median."""
    seconds: float = 4.0
    """Maximum duration of the cold rounds, in seconds."""
    patience: float = 1.0
    """Fraction of ``seconds`` after which sampling also ends if the rounds that fit into the rest cannot reach the
    target."""
    min_rounds: int = 16
    """Minimum number of rounds before the target counts as reached."""
    least_rounds: int = 1
    """Minimum number of rounds, however long they take."""
    side_rounds: int = 8
    """Number of rounds with a warm L2, and of rounds of single calls between events."""
    side_seconds: float = 0.5
    """Seconds after which half of ``side_rounds`` are enough."""
    warm_up_seconds: float = 0.3
    """Seconds of uncounted rounds at the start."""
    checks: int = 4
    """Maximum number of timed calls whose outputs are checked."""
    references: tuple[ReferenceKind, ...] = ("eager", "compile")
    """PyTorch baselines to time."""

    @property
    def rounds_to_decide(self) -> int:
        """Minimum number of rounds before ``decided`` of :meth:`InterleavedTimer.converge` is asked."""
        return max(self.min_rounds // 2, 1)


@dataclass
class Rounds:
    """Complete rounds in one mode: the same number of samples of each subject."""

    times_us: dict[str, list[float]] = field(default_factory=dict)
    """Microseconds per call, by subject: one value for each round."""
    clock: str = ""
    """How time was measured."""
    flush: str = ""
    """State of L2 before each call."""
    readings: list[Mapping[str, float]] = field(default_factory=list)
    """GPU sensors, one mapping for each sample."""
    dropped: dict[str, Fault] = field(default_factory=dict)
    """Subjects that failed while they were timed."""


class InterleavedTimer:
    """Takes rounds from ``watch``. The first of ``names`` is the subject under judgement: its fault ends the timing, a
    fault of another only drops that subject.

    ``seed``: its first value seeds the random order within rounds; each further value is the seed of a sample. ``now``:
    clock in seconds.
    """

    def __init__(
        self, watch: Stopwatch, names: Sequence[str], seed: Callable[[], int], cancel: Cancel,
        now: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._watch, self.names, self._seed, self._cancel, self._now = watch, list(names), seed, cancel, now
        self._random = random.Random(seed())  # noqa: S311 - the seed itself is secret

    def converge(
        self, effort: Effort, inspected: Sequence[int] = (), inspect: Callable[[int], Fault | None] = lambda seed: None,
        decided: Callable[[Times], bool] = lambda times: False,
    ) -> Rounds | Fault:  # fmt: skip
        """Cold rounds until every median is precise enough, time is up, or ``decided`` returns True (not before
        :attr:`Effort.rounds_to_decide` rounds).

        ``inspected``: numbers of rounds in which the subject under judgement runs last; ``inspect`` is then called with
        its seed while its outputs are still on the device. Returns the Fault if the subject or ``inspect`` fails.
        Raises Cancelled.
        """
        rounds, started, number = Rounds(), self._now(), 0
        while self._now() - started < effort.warm_up_seconds or number == 0:
            number += 1
            if fault := self._round("cold", rounds, counted=False):
                return fault
        started, number = self._now(), 0
        while number < effort.least_rounds or (
            not self._precise_enough(rounds.times_us, effort)
            and not (number >= effort.rounds_to_decide and decided(rounds.times_us))
            and self._worthwhile(rounds.times_us, effort, self._now() - started)
        ):
            last = number in inspected
            fault = self._round("cold", rounds, inspect=inspect if last else None)
            if fault is None and last:  # the GPU was idle during the check: an uncounted round warms it up
                fault = self._round("cold", rounds, counted=False)
            if fault:
                return fault
            number += 1
        return rounds

    def rounds(self, mode: Mode, count: int, seconds: float = math.inf) -> Rounds | Fault:
        """``count`` rounds after an uncounted one; half the number suffices once ``seconds`` have passed. Raises
        Cancelled."""
        rounds, started = Rounds(), self._now()
        for number in range(-1, count):
            if number >= count / 2 and self._now() - started >= seconds:
                break
            if fault := self._round(mode, rounds, counted=number >= 0):
                return fault
        return rounds

    def each(self, mode: Mode, count: int) -> Rounds | Fault:
        """``count`` samples of each subject, one subject after another (not interleaved). Raises Cancelled."""
        rounds = Rounds()
        for name in list(self.names):
            if self._cancel.is_set():
                raise Cancelled()
            samples = self._watch.sample(name, mode, count, self._seed())
            if isinstance(samples, Fault) and name == self.names[0]:
                return samples
            if isinstance(samples, Fault):
                rounds.dropped[name] = samples
            else:
                rounds.times_us[name], rounds.clock, rounds.flush = list(samples.times_us), samples.clock, samples.flush
        return rounds

    def _round(
        self, mode: Mode, rounds: Rounds, counted: bool = True,
        inspect: Callable[[int], Fault | None] | None = None,
    ) -> Fault | None:  # fmt: skip
        judged, row = self.names[0], dict[str, Samples]()
        order = self._random.sample(self.names, len(self.names))
        if inspect:
            order.append(order.pop(order.index(judged)))
        for name in order:
            if self._cancel.is_set():
                raise Cancelled()
            seed = self._seed()
            samples = self._watch.sample(name, mode, 1, seed)
            if not isinstance(samples, Fault):
                row[name] = samples
                if name == judged and inspect and (fault := inspect(seed)):
                    return fault
            elif name == judged:
                return samples
            else:
                self.names.remove(name)
                rounds.times_us.pop(name, None)
                rounds.dropped[name] = samples
        if counted:
            rounds.clock, rounds.flush = row[judged].clock, row[judged].flush
            for name in self.names:
                rounds.times_us.setdefault(name, []).append(row[name].times_us[0])
                rounds.readings.append(row[name].conditions)
        return None

    def _precise_enough(self, times: Times, effort: Effort) -> bool:
        if not times or len(times[self.names[0]]) < effort.min_rounds:
            return False
        return all(relative_half_width(samples) <= effort.half_width for samples in times.values())

    def _worthwhile(self, times: Times, effort: Effort, elapsed: float) -> bool:
        """Whether time is left and could suffice: intervals narrow with the square root of the number of rounds."""
        if elapsed >= effort.seconds:
            return False
        if elapsed < effort.patience * effort.seconds or len(times[self.names[0]]) < effort.min_rounds:
            return True
        widest = max(relative_half_width(samples) for samples in times.values())
        return elapsed * (widest / effort.half_width) ** 2 < effort.seconds
