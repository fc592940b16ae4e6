"""Chooses the next config to time: by predicted time first, then by expected improvement.

The time of a config is exp(prior + residual). The prior is the logarithm of its predicted time, or a Gaussian process's
estimate from other configs' predictions; the residual is a second Gaussian process over the timed configs (Kennedy and
O'Hagan 2000 call this co-kriging). Expected improvement is that of Jones, Schonlau and Welch (1998).
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cutegen_lab.core.candidate import Config
from cutegen_lab.tuning.space import Space, key
from cutegen_lab.tuning.surrogate import Floats, Gaussian, squared_distances

_ASTRAY = 0.15  # prior standard deviation of log(time / prediction) between configs
_UNKNOWN = 0.5  # prior standard deviation of log(time) without predictions
_NEAR = 0.5  # distance in the unit cube below which a pending config makes another less informative
_REMEMBERED = 100  # maximum number of ruled-out configs from which others are predicted
_FAILED = math.log(3)  # a config that failed counts as this much slower than the slowest


@dataclass(frozen=True)
class Patience:
    """When a search gives up."""

    gain: float = 0.002
    """Smallest expected gain with which the search continues, as a fraction of the best time."""
    least: int = 8
    """Minimum number of configs timed before it gives up."""


@dataclass
class Search:
    """Asks for configs and records their times in microseconds (None: failed). Deterministic for one seed and order.

    A config whose time is not recorded yet is pending: it is not proposed again, and counts with its expected time.
    """

    space: Space
    """The configs."""
    seed: int = 0
    """Seed of random choices."""
    patience: Patience = Patience()
    """When the search gives up."""
    first: int = 6
    """Number of configs spread over the space before the model is used, if none is predicted."""
    times_us: dict[str, float | None] = field(default_factory=dict)
    """Recorded times in microseconds, by :func:`key`; None for a config that failed."""
    predicted_us: dict[str, float] = field(default_factory=dict)
    """Predicted times in microseconds, by :func:`key`."""
    _pending: dict[str, int] = field(default_factory=dict)
    _out: dict[str, None] = field(default_factory=dict)  # ruled-out configs in order
    _believed: tuple[Floats, Floats, float] | None = None  # invalidated by a new time
    _inferred: tuple[Floats, Floats] | None = None  # invalidated by a new prediction

    def __post_init__(self) -> None:
        self._draw = random.Random(self.seed)  # noqa: S311 - deterministic on purpose
        self._keys = [key(c) for c in self.space.configs]
        self._at = {k: i for i, k in enumerate(self._keys)}
        self._points = np.array([self.space.encode(c) for c in self.space.configs], dtype=np.float64)
        self._jitter = [self._draw.random() for _ in self._keys]

    def predict(self, times_us: Mapping[str, float]) -> None:
        """Adds predicted times by :func:`key`, of any number of configs."""
        self.predicted_us.update({k: t for k, t in times_us.items() if k in self._at and t > 0})
        self._believed = self._inferred = None

    def tell(self, config: Config, time_us: float | None) -> None:
        self._pending.pop(key(config), None)
        if key(config) in self._at:
            self.times_us[key(config)] = time_us
            self._believed = None

    def rule_out(self, config: Config) -> None:
        """Removes a config that cannot be compiled or is not worth timing, without learning about times."""
        self._pending.pop(key(config), None)
        if key(config) in self._at:
            self._out[key(config)] = None

    @property
    def best(self) -> tuple[Config, float] | None:
        timed = [(t, self._at[k]) for k, t in self.times_us.items() if t is not None]
        time_us, index = min(timed, default=(0.0, -1))
        return (self.space.configs[index], time_us) if index >= 0 else None

    @property
    def untried(self) -> int:
        """Number of configs that were neither asked for nor ruled out, and have no time."""
        known = self.times_us.keys() | self._pending.keys() | self._out.keys()
        return sum(name not in known for name in self._keys)

    def ask(self, count: int) -> list[Config]:
        """Up to ``count`` configs to time, the most promising first; none when the search is over."""
        asked: list[Config] = []
        while len(asked) < count and (index := self._next()) is not None:
            self._pending[self._keys[index]] = index
            asked.append(self.space.configs[index])
        return asked

    def _next(self) -> int | None:
        taken = self.times_us.keys() | self._pending.keys() | self._out.keys()
        open_ = [i for i, k in enumerate(self._keys) if k not in taken]
        if not open_:
            return None
        if 0 in open_:
            return 0  # index of the default, which a search has to beat
        if not self.predicted_us and len(taken - self._out.keys()) < self.first:
            return self._farthest(open_, [self._at[k] for k in taken if k in self._at])
        gains = self._gains(open_)
        best = max(range(len(open_)), key=lambda i: (gains[i], self._jitter[open_[i]]))
        if gains[best] < self.patience.gain and len(self.times_us) >= self.patience.least:
            return None
        return open_[best]

    def _farthest(self, open_: Sequence[int], taken: Sequence[int]) -> int:
        """Among a few random configs, the one least like those already chosen that is probably not ruled out."""
        drawn = self._draw.sample(list(open_), min(64, len(open_)))
        apart = squared_distances(self._points[drawn], self._points[list(taken)])
        return drawn[int((apart.min(axis=1) * self._odds(drawn)).argmax())]

    def _gains(self, open_: Sequence[int]) -> Floats:
        """Expected improvement on the best time, as a fraction of it."""
        if self._believed is None:
            self._believed = self._believe()
        every_mean, every_deviation, best = self._believed
        if math.isinf(best):  # nothing has been timed
            return np.exp(-every_mean[open_])
        mean, deviation = every_mean[open_], every_deviation[open_]
        if pending := list(self._pending.values()):
            best = min(best, float(every_mean[pending].min()))
            near = squared_distances(self._points[open_], self._points[pending]).min(axis=1)
            deviation = deviation * np.minimum(1, np.sqrt(near) / _NEAR)
        return _improvement(best - mean, deviation) * self._odds(open_)

    def _odds(self, open_: Sequence[int]) -> Floats | float:
        """Probability that a config is not ruled out, from a third process over −1 (ruled out) and 1 (ran)."""
        out, ran = [self._at[k] for k in self._out][-_REMEMBERED:], [self._at[k] for k in self.times_us]
        if not out or not ran:
            return 1.0
        labels = np.array([-1.0] * len(out) + [1.0] * len(ran))
        centre = float(labels.mean())
        mean, deviation = Gaussian.fit(self._points[out + ran], labels - centre, 1.0).predict(self._points[open_])
        return _normal((mean + centre) / np.maximum(deviation, 0.1))

    def _believe(self) -> tuple[Floats, Floats, float]:
        """Mean and standard deviation of every config's log time, and the best one known."""
        prior, doubt = self._prior()
        known = [self._at[k] for k in self.times_us]
        if not known:
            return prior, doubt, math.inf
        logs = self._logs()
        offset = float(np.median(logs - prior[known]))
        spread = _ASTRAY if self.predicted_us else _UNKNOWN
        model = Gaussian.fit(self._points[known], logs - prior[known] - offset, spread)
        mean, deviation = model.predict(self._points)
        return mean + prior + offset, np.hypot(deviation, doubt), float(logs.min())

    def _logs(self) -> Floats:
        """Log times; a failure counts as slower than every config that ran and than its own prediction."""
        ran = [t for t in self.times_us.values() if t is not None]
        worst = math.log(max(ran, default=max(self.predicted_us.values(), default=1.0))) + _FAILED
        return np.array([worst if t is None else math.log(t) for t in self.times_us.values()])

    def _prior(self) -> tuple[Floats, Floats]:
        """Expected log time of every config, and the standard deviation of those without a prediction."""
        if self._inferred is not None:
            return self._inferred
        count = len(self._keys)
        if not self.predicted_us:
            ran = [math.log(t) for t in self.times_us.values() if t is not None]
            return np.full(count, float(np.mean(ran)) if ran else 0.0), np.zeros(count)
        where = [self._at[k] for k in self.predicted_us]
        logs = np.log(list(self.predicted_us.values()))
        if len(where) == count:
            prior = np.empty(count)
            prior[where] = logs
            self._inferred = prior, np.zeros(count)
            return self._inferred
        centre = float(np.median(logs))
        prior, doubt = Gaussian.fit(self._points[where], logs - centre, _UNKNOWN).predict(self._points)
        prior += centre
        prior[where], doubt[where] = logs, 0.0
        self._inferred = prior, doubt
        return self._inferred


def _improvement(ahead: Floats, deviation: Floats) -> Floats:
    """Mean of max(gain, 0) for a normally distributed gain with mean ``ahead``."""
    z = ahead / deviation
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    gain: Floats = ahead * _normal(z) + deviation * density
    return gain


def _normal(z: Floats) -> Floats:
    """Cumulative distribution function of the standard normal distribution."""
    return np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in z])


@dataclass(frozen=True)
class Step:
    """State of a replayed search."""

    evaluations: int
    """Number of evaluations so far."""
    config: Config
    """Best config."""
    time_us: float | None
    """Its time in microseconds; None if none ran."""


def replay(search: Search, times_us: Mapping[str, float | None], budget: int, batch: int = 1) -> list[Step]:
    """A search on recorded times by :func:`key`: every evaluation in order, without repeating any."""
    steps: list[Step] = []
    while len(steps) < budget and (asked := search.ask(min(batch, budget - len(steps)))):
        for config in asked:
            time_us = times_us[key(config)]
            steps.append(Step(len(steps) + 1, config, time_us))
            search.tell(config, time_us)
    return steps
