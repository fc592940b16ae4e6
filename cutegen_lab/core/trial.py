"""One artifact evaluated once on one device: its verdict and the evidence for it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from cutegen_lab.core.roofline import SpeedOfLight
from cutegen_lab.core.verdict import Diagnostic, Fault, Verdict


@dataclass(frozen=True)
class OutputError:
    """How far one output is from float64, beside PyTorch's own result at the problem's precision.

    Errors are relative: ``norm`` is ‖out − ref‖ / ‖ref‖, ``worst`` is max |out − ref| / max(|ref|, scale) at
    ``worst_index``.
    """

    output: str
    norm: float
    worst: float
    torch_norm: float
    torch_worst: float
    limit_norm: float
    limit_worst: float
    worst_index: tuple[int, ...] = ()
    got: float = 0.0
    expected: float = 0.0

    @property
    def worst_place(self) -> str:
        """The worst element, as it is written: ``out[3, 5]``."""
        return f"{self.output}[{', '.join(map(str, self.worst_index))}]"

    @property
    def ok(self) -> bool:
        return self.norm <= self.limit_norm and self.worst <= self.limit_worst


@dataclass(frozen=True)
class WorkloadCheck:
    """Correctness on one workload and one draw of inputs."""

    workload: str
    distribution: str
    seed: int
    verdict: Verdict
    reason: str = ""
    errors: tuple[OutputError, ...] = ()
    fault: Fault | None = None
    seconds: float = 0.0

    @property
    def kind(self) -> str:
        """The distribution without the numbers of this draw: ``around`` for ``around -3.2``."""
        return re.sub(r" -?\d[\d.e+-]*", "", self.distribution)


@dataclass(frozen=True)
class CheckResult:
    """Every check of one trial. ``verdict`` is the first that did not pass."""

    verdict: Verdict
    reason: str
    checks: tuple[WorkloadCheck, ...]

    def worst(self) -> OutputError | None:
        """The output error closest to (or furthest over) its limit; for evidence tables. Draws whose sums cancel allow
        errors above the answer itself: such a one is shown only where it failed, or where there is no other."""

        def share(error: OutputError) -> float:
            if error.limit_norm:
                return error.norm / error.limit_norm
            return math.inf if error.norm else 0.0

        errors = [e for c in self.checks for e in c.errors]
        telling = [e for e in errors if e.limit_norm < 1 or not e.ok]
        return max(telling or errors, key=share, default=None)


@dataclass(frozen=True)
class Measurement:
    """One thing timed in one way: microseconds a call. ``half_width_us`` is half the 95% confidence interval of the
    median ``time_us`` (infinite for fewer than six samples)."""

    subject: str  # "candidate", "incumbent", "eager PyTorch", "torch.compile", "copy of the compulsory bytes"
    clock: str  # "CUDA graph of 12 calls between two events"
    flush: str  # "cold L2: every call has tensors of its own"
    samples: int
    time_us: float
    iqr_us: float
    half_width_us: float


@dataclass(frozen=True)
class Comparison:
    """A candidate beside something timed in turns with it. ``ratio`` is the candidate's time over the other's, with its
    95% interval from ``low`` to ``high``; ``answer`` says what that interval proves."""

    against: str
    answer: Literal["faster", "slower", "same", "ambiguous"]
    ratio: float
    low: float
    high: float
    pairs: int

    @property
    def better(self) -> bool:
        """Only a proof of speed counts: ``ambiguous`` is not better, and neither is ``same``."""
        return self.answer == "faster"


@dataclass(frozen=True)
class Timing:
    """A time, and how it came about. ``kind`` keeps predictions and measurements apart everywhere.

    Times in microseconds. ``method`` names clock, flush and count ("CUDA events, cold L2, 30 launches") or the model.
    ``baselines`` hold the same run's eager PyTorch and copy of the compulsory bytes, where measured; ``baseline`` names
    the fastest of PyTorch's. ``time_us`` is with a cold L2 and ``warm_us`` with a warm one; ``measurements`` has every
    number behind them, ``notes`` what a reader should know before trusting them, ``conditions`` the clocks, power,
    temperature, throttle reasons and versions.
    """

    kind: Literal["measured", "predicted"]
    time_us: float
    method: str
    device: str
    samples: int = 0
    iqr_us: float = 0.0
    baselines: Mapping[str, float] = field(default_factory=dict)
    baseline: str = ""
    half_width_us: float = 0.0
    warm_us: float | None = None
    measurements: tuple[Measurement, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    notes: tuple[str, ...] = ()
    conditions: Mapping[str, str] = field(default_factory=dict)

    def against(self, name: str) -> Comparison | None:
        """The comparison with ``name`` ("incumbent"), where the two were timed in turns."""
        return next((c for c in self.comparisons if c.against == name), None)


@dataclass(frozen=True)
class LineCounters:
    """The counters of one ``line`` (1-based) of the candidate's text, 0 for code that belongs to none. Zeros are
    left out."""

    line: int
    counters: Mapping[str, float]


@dataclass(frozen=True)
class Profile:
    """What a profiler would say. ``source`` says whose counts these are; ``limiter`` names what bounds the kernel.

    ``counters`` have the names and units of :data:`cutegen_lab.core.counters.COUNTERS`. ``lines`` split them over the
    candidate's text, where the source knows; they add up to the whole.
    """

    source: Literal["emulator", "hardware"]
    limiter: str
    counters: Mapping[str, float]
    findings: tuple[str, ...] = ()
    lines: tuple[LineCounters, ...] = ()


@dataclass(frozen=True)
class Resources:
    """Static cost of the build for the problem's own workload (the largest over its kernels)."""

    registers: int
    spill_bytes: int
    static_smem_bytes: int
    dynamic_smem_bytes: int
    kernels: int


@dataclass(frozen=True)
class Provenance:
    """Everything an answer depended on, beyond the candidate itself."""

    problem_key: str
    source_sha256: str
    config: Mapping[str, object]
    arch: str
    device: str
    seeds: tuple[int, ...]
    tolerances: Mapping[str, float]
    versions: Mapping[str, str]
    isolation: tuple[str, ...]
    artifact_sha256: str = ""


@dataclass(frozen=True)
class Trial:
    """One artifact (or its absence) on one device. Raises ValueError for a time without a pass."""

    candidate_id: str
    verdict: Verdict
    reason: str
    device: str
    provenance: Provenance
    diagnostics: tuple[Diagnostic, ...] = ()
    check: CheckResult | None = None
    resources: Resources | None = None
    timing: Timing | None = None
    profile: Profile | None = None
    sol: SpeedOfLight | None = None

    def __post_init__(self) -> None:
        if self.timing is not None and not self.verdict.passed:
            raise ValueError(f"a trial that ended {self.verdict.value} may not carry a time")

    @property
    def sol_gap(self) -> float | None:
        return self.sol.gap(self.timing.time_us) if self.sol and self.timing else None
