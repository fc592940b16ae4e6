"""Samples of several subjects taken in turns, each round in an order drawn at random, so that whatever drifts reaches
all alike and none knows who ran before it."""

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
from cutegen_lab.judge.spread import relative_half_width

Times = Mapping[str, list[float]]


@dataclass(frozen=True)
class Effort:
    """How long a timing goes on: until the 95% interval of each cold median is within ``half_width`` of it, or for
    ``seconds`` and ``least_rounds``, whatever those take. After ``patience``, a share of ``seconds``, it ends where as
    many rounds as fit into the rest could not make the intervals that narrow. Warm L2 and single events are taken
    ``side_rounds`` times, or for ``side_seconds`` and half as often. Up to ``checks`` timed calls' outputs are checked.
    ``references`` are the baselines in PyTorch."""

    half_width: float = 0.005
    seconds: float = 4.0
    patience: float = 1.0
    min_rounds: int = 16
    least_rounds: int = 1
    side_rounds: int = 8
    side_seconds: float = 0.5
    warm_up_seconds: float = 0.3
    checks: int = 4
    references: tuple[ReferenceKind, ...] = ("eager", "compile")

    @property
    def rounds_to_decide(self) -> int:
        """Rounds that are taken whatever they show."""
        return max(self.min_rounds // 2, 1)


@dataclass
class Rounds:
    """Complete rounds in one mode: as many samples of every subject. ``dropped`` are subjects that failed meanwhile."""

    times_us: dict[str, list[float]] = field(default_factory=dict)
    clock: str = ""
    flush: str = ""
    readings: list[Mapping[str, float]] = field(default_factory=list)
    dropped: dict[str, Fault] = field(default_factory=dict)


class InterleavedTimer:
    """Asks ``watch`` for one sample a turn. The first of ``names`` is the one being judged: its fault ends the timing,
    another's only drops that subject. The order of rounds follows from the first number of ``seed``, and every sample
    has one of its own; ``now`` is a clock in seconds.
    """

    def __init__(
        self, watch: Stopwatch, names: Sequence[str], seed: Callable[[], int], cancel: Cancel,
        now: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._watch, self.names, self._seed, self._cancel, self._now = watch, list(names), seed, cancel, now
        self._random = random.Random(seed())  # noqa: S311 - the seed itself is secret

    def converge(
        self, effort: Effort, chosen: Sequence[int] = (), look: Callable[[int], Fault | None] = lambda seed: None,
        decided: Callable[[Times], bool] = lambda times: False,
    ) -> Rounds | Fault:  # fmt: skip
        """Cold rounds until every median is sure, or time is up, or what it is for is ``decided`` by half of
        ``min_rounds`` or more. In rounds ``chosen`` the judged subject goes last, and ``look`` is called with its seed
        while its outputs are there. Raises Cancelled."""
        rounds, started, number = Rounds(), self._now(), 0
        while self._now() - started < effort.warm_up_seconds or number == 0:
            number += 1
            if fault := self._round("cold", rounds, counted=False):
                return fault
        started, number = self._now(), 0
        while number < effort.least_rounds or (
            not self._sure(rounds.times_us, effort)
            and not (number >= effort.rounds_to_decide and decided(rounds.times_us))
            and self._worthwhile(rounds.times_us, effort, self._now() - started)
        ):
            last = number in chosen
            fault = self._round("cold", rounds, look=look if last else None)
            if fault is None and last:  # the card rested meanwhile: a round nobody counts wakes it
                fault = self._round("cold", rounds, counted=False)
            if fault:
                return fault
            number += 1
        return rounds

    def rounds(self, mode: Mode, count: int, seconds: float = math.inf) -> Rounds | Fault:
        """``count`` rounds, or half as many where those take ``seconds``, and one before them that does not count.
        Raises Cancelled."""
        rounds, started = Rounds(), self._now()
        for number in range(-1, count):
            if number >= count / 2 and self._now() - started >= seconds:
                break
            if fault := self._round(mode, rounds, counted=number >= 0):
                return fault
        return rounds

    def each(self, mode: Mode, count: int) -> Rounds | Fault:
        """``count`` samples of one subject after another. Raises Cancelled."""
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
        look: Callable[[int], Fault | None] | None = None,
    ) -> Fault | None:  # fmt: skip
        judged, row = self.names[0], dict[str, Samples]()
        order = self._random.sample(self.names, len(self.names))
        if look:
            order.append(order.pop(order.index(judged)))
        for name in order:
            if self._cancel.is_set():
                raise Cancelled()
            seed = self._seed()
            samples = self._watch.sample(name, mode, 1, seed)
            if not isinstance(samples, Fault):
                row[name] = samples
                if name == judged and look and (fault := look(seed)):
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

    def _sure(self, times: Times, effort: Effort) -> bool:
        if not times or len(times[self.names[0]]) < effort.min_rounds:
            return False
        return all(relative_half_width(samples) <= effort.half_width for samples in times.values())

    def _worthwhile(self, times: Times, effort: Effort, elapsed: float) -> bool:
        """Whether there is time for more, and more could be enough: intervals narrow by the root of the rounds."""
        if elapsed >= effort.seconds:
            return False
        if elapsed < effort.patience * effort.seconds or len(times[self.names[0]]) < effort.min_rounds:
            return True
        widest = max(relative_half_width(samples) for samples in times.values())
        return elapsed * (widest / effort.half_width) ** 2 < effort.seconds
