"""What a search on a device needs: its bounds, who times, who predicts, and what it came to."""

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
    """Times artifacts by name. ``kind`` says whether its times are measured or a model's."""

    kind: Kind
    repeats: bool  # whether another sample tells more
    changes: bool  # whether it takes time to turn to another workload
    busy_seconds: float  # that it spent sampling, without preparing

    def prepare(self, workloads: Sequence[Workload], name: str, artifact: Artifact) -> None:
        """Says, from any thread, what will be timed soon, and returns when all that can be done ahead is done."""
        ...

    def open(self, artifacts: Mapping[str, Artifact]) -> None:
        """Takes the device if it has not, and loads ``artifacts``, so that the first timings need not wait for that.
        Raises SetupError."""
        ...

    def time(
        self, workload: Workload, artifacts: Mapping[str, Artifact], samples: int
    ) -> Iterator[tuple[str, Sequence[float] | Fault]]:
        """Samples in microseconds a call, of one after another. Raises Cancelled."""
        ...

    def in_turns(self, workload: Workload, artifacts: Mapping[str, Artifact]) -> Iterator[tuple[str, Sequence[float]]]:
        """As many samples of each as it takes to tell them apart, taken in turns; what failed is left out."""
        ...


class Guide(Protocol):
    """Predictions that are made while the search goes on."""

    def times_us(self) -> Mapping[str, float]:
        """By :func:`key`, those made so far."""
        ...

    def finished(self) -> bool: ...


@dataclass(frozen=True)
class Limits:
    """When a search ends, whatever it might still gain. ``evaluations`` are configs timed, those of earlier searches
    among them. Up to ``batch`` are timed at a time while others are compiled; ``finalists`` are timed in turns."""

    evaluations: int = 40
    seconds: float = math.inf
    batch: int = 4
    finalists: int = 4


@dataclass
class SearchStats:
    """What a search came to. ``stopped`` says why it ended. ``prepare_seconds`` passed until the clock was asked for
    more than the default, ``search_seconds`` from then to its last answer; ``busy_seconds`` of these it was sampling.
    """

    stopped: str = ""
    evaluated: int = 0
    from_cache: int = 0
    failed: int = 0
    ruled_out: int = 0
    prepare_seconds: float = 0.0
    search_seconds: float = 0.0
    busy_seconds: float = 0.0
    in_turns: dict[str, tuple[Config, float]] = field(default_factory=dict)

    @property
    def busy(self) -> float:
        """Share of the search, without its preparation, in which the clock was sampling: from 0 to 1."""
        return min(1.0, self.busy_seconds / self.search_seconds) if self.search_seconds else 0.0
