"""What a search needs from a device (timers, predictions), its limits, and its statistics."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from cutegen_lab.core.artifact import Artifact
from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Workload
from cutegen_lab.core.verdict import Fault
from cutegen_lab.tuning.evaluations import Kind


class ConfigTimer(Protocol):
    """Times artifacts by name."""

    kind: Kind
    """Whether its times are measured or predicted."""
    repeats: bool
    """Whether further samples give further information."""
    changes: bool
    """Whether switching to another workload takes time."""
    busy_seconds: float
    """Seconds spent sampling, without preparation."""

    def prepare(self, workloads: Sequence[Workload], name: str, artifact: Artifact) -> None:
        """Announces, from any thread, what will be timed soon; returns when all preparation without the device is
        done."""
        ...

    def open(self, artifacts: Mapping[str, Artifact]) -> None:
        """Takes the device if necessary, and loads ``artifacts`` before they are timed. Raises SetupError."""
        ...

    def time(
        self, workload: Workload, artifacts: Mapping[str, Artifact], samples: int
    ) -> Iterator[tuple[str, Sequence[float] | Fault]]:
        """Samples in microseconds per call, one artifact after another. Raises Cancelled."""
        ...

    def time_interleaved(
        self, workload: Workload, artifacts: Mapping[str, Artifact]
    ) -> Iterator[tuple[str, Sequence[float]]]:
        """Interleaved samples of all artifacts, enough to tell them apart; artifacts that fail are left out."""
        ...


class Guide(Protocol):
    """Predictions made while the search runs."""

    def times_us(self) -> Mapping[str, float]:
        """Predictions so far in microseconds, by :func:`key`."""
        ...

    def finished(self) -> bool:
        """Whether no more predictions will come."""
        ...


@dataclass(frozen=True)
class Limits:
    """When a search ends, even if more could be gained."""

    evaluations: int = 40
    """Maximum number of configs timed, those of earlier searches included."""
    seconds: float = math.inf
    """Maximum duration in seconds."""
    batch: int = 4
    """Configs timed at a time while others are compiled."""
    finalists: int = 4
    """Configs in the final interleaved timing."""


@dataclass
class SearchStats:
    """Counts and durations of a search."""

    stopped: str = ""
    """Why it ended."""
    evaluated: int = 0
    """Configs timed."""
    from_cache: int = 0
    """Configs known from earlier searches."""
    failed: int = 0
    """Configs that failed on the device."""
    ruled_out: int = 0
    """Configs ruled out before they reached the device."""
    prepare_seconds: float = 0.0
    """Seconds until configs other than the default were timed."""
    search_seconds: float = 0.0
    """Seconds from then to the end of the search."""
    busy_seconds: float = 0.0
    """Seconds of ``search_seconds`` spent sampling."""
    in_turns: dict[str, tuple[Config, float]] = field(default_factory=dict)
    """Config and time in microseconds of each finalist, by :func:`key`."""

    @property
    def busy(self) -> float:
        """Fraction of ``search_seconds`` spent sampling, 0 to 1."""
        return min(1.0, self.busy_seconds / self.search_seconds) if self.search_seconds else 0.0
