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
    """Relative errors of one output against float64, and PyTorch's own at the problem's precision.

    ``norm`` is ‖out − ref‖ / ‖ref‖; ``worst`` is max |out − ref| / max(|ref|, scale).
    """

    output: str
    """Name of the output."""
    norm: float
    """Norm-wise relative error."""
    worst: float
    """Largest elementwise relative error."""
    torch_norm: float
    """Norm-wise error of PyTorch's result."""
    torch_worst: float
    """Largest elementwise error of PyTorch's result."""
    limit_norm: float
    """Largest ``norm`` that passes."""
    limit_worst: float
    """Largest ``worst`` that passes."""
    worst_index: tuple[int, ...] = ()
    """Index of the element with the largest error."""
    got: float = 0.0
    """The kernel's value there."""
    expected: float = 0.0
    """The float64 reference's value there."""

    @property
    def worst_place(self) -> str:
        """The element with the largest error, written ``out[3, 5]``."""
        return f"{self.output}[{', '.join(map(str, self.worst_index))}]"

    @property
    def ok(self) -> bool:
        """Whether both errors are within their limits; False for NaN."""
        return self.norm <= self.limit_norm and self.worst <= self.limit_worst


@dataclass(frozen=True)
class WorkloadCheck:
    """Correctness on one workload and one draw of inputs."""

    workload: str
    """Name of the workload."""
    distribution: str
    """Name of the draw ("normal", "around -3.2")."""
    seed: int
    """Seed of the draw."""
    verdict: Verdict
    """How the check ended."""
    reason: str = ""
    """Why it did not pass, or a remark."""
    errors: tuple[OutputError, ...] = ()
    """Errors of each output."""
    fault: Fault | None = None
    """What stopped the kernel; None if it ran to its end."""
    seconds: float = 0.0
    """Seconds that the check took."""

    @property
    def kind(self) -> str:
        """The distribution without the numbers of this draw: ``around`` for ``around -3.2``."""
        return draw_kind(self.distribution)


def draw_kind(distribution: str) -> str:
    """Name of a draw without its numbers."""
    return re.sub(r" -?\d[\d.e+-]*", "", distribution)


@dataclass(frozen=True)
class CheckResult:
    """Every check of one trial."""

    verdict: Verdict
    """The first verdict that is not a pass, or PASSED."""
    reason: str
    """Why it did not pass, or what was checked, in one line."""
    checks: tuple[WorkloadCheck, ...]
    """The checks in the order made."""

    def worst(self) -> OutputError | None:
        """Output error closest to (or furthest over) its limit, for evidence tables; None without errors.

        Draws whose sums cancel allow errors larger than the answer: such an error is shown only if it failed or there
        is no other.
        """

        def share(error: OutputError) -> float:
            if error.limit_norm:
                return error.norm / error.limit_norm
            return math.inf if error.norm else 0.0

        errors = [e for c in self.checks for e in c.errors]
        telling = [e for e in errors if e.limit_norm < 1 or not e.ok]
        return max(telling or errors, key=share, default=None)


@dataclass(frozen=True)
class Measurement:
    """Times of one subject by one method."""

    subject: str
    """"candidate", "incumbent", "eager PyTorch", "torch.compile" or "copy of the compulsory bytes"."""
    clock: str
    """How time was measured ("CUDA graph of 12 calls between two events")."""
    flush: str
    """State of L2 before each call ("cold L2: every call has tensors of its own")."""
    samples: int
    """Number of samples."""
    time_us: float
    """Median, in microseconds per call."""
    iqr_us: float
    """Interquartile range in microseconds."""
    half_width_us: float
    """Half the 95% confidence interval of the median in microseconds; infinite for fewer than six samples."""


@dataclass(frozen=True)
class Comparison:
    """A candidate compared with another subject, timed in the same rounds."""

    against: str
    """Name of the other subject ("incumbent")."""
    answer: Literal["faster", "slower", "same", "ambiguous"]
    """What the interval proves about the candidate."""
    ratio: float
    """The candidate's time divided by the other's."""
    low: float
    """Lower end of the ratio's 95% interval."""
    high: float
    """Upper end of that interval."""
    pairs: int
    """Number of rounds in which both were sampled."""

    @property
    def better(self) -> bool:
        """True only if the candidate is proven faster, not for ``same`` or ``ambiguous``."""
        return self.answer == "faster"


@dataclass(frozen=True)
class Timing:
    """A time, and how it was obtained. Predictions and measurements are never mixed."""

    kind: Literal["measured", "predicted"]
    """"measured" on a GPU, or "predicted" by a model."""
    time_us: float
    """Microseconds per call with a cold L2."""
    method: str
    """Clock, flush and count ("CUDA events, cold L2, 30 launches"), or the model's name."""
    device: str
    """Device that was timed or modelled."""
    samples: int = 0
    """Number of samples; 0 for a prediction."""
    iqr_us: float = 0.0
    """Interquartile range in microseconds."""
    baselines: Mapping[str, float] = field(default_factory=dict)
    """Times of PyTorch and of a copy of the compulsory bytes from the same rounds, in microseconds by name."""
    baseline: str = ""
    """Name of the fastest PyTorch baseline."""
    half_width_us: float = 0.0
    """Half the 95% confidence interval of ``time_us`` in microseconds."""
    warm_us: float | None = None
    """Microseconds per call with a warm L2; None if not measured."""
    measurements: tuple[Measurement, ...] = ()
    """The measurements behind these numbers."""
    comparisons: tuple[Comparison, ...] = ()
    """Comparisons with the incumbent and the baselines."""
    rounds_us: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Microseconds per call with a cold L2 by subject, one value for each round in which all were sampled, in order."""
    notes: tuple[str, ...] = ()
    """What to know before trusting the numbers."""
    conditions: Mapping[str, str] = field(default_factory=dict)
    """Clocks, power, temperature, throttle reasons and versions, as text by name."""
    band_us: tuple[float, float] | None = None
    """Band of a prediction in microseconds: nine of ten measured times of such kernels lie in it; None if not known."""

    def against(self, name: str) -> Comparison | None:
        """Comparison with ``name`` ("incumbent"); None if the two were not timed together."""
        return next((c for c in self.comparisons if c.against == name), None)


@dataclass(frozen=True)
class LineCounters:
    """Counters of one line of the candidate's text."""

    line: int
    """Line from 1; 0 for code that belongs to no line."""
    counters: Mapping[str, float]
    """Counters by name; zeros are left out."""


AccessWay = Literal["load", "store", "ldmatrix", "stmatrix"]


@dataclass(frozen=True)
class SharedAccess:
    """An instruction that loads or stores shared memory with bank conflicts, and one access by a warp."""

    line: int
    """Line from 1; 0 for code that belongs to no line."""
    way: AccessWay
    """The instruction: a load, a store, ldmatrix or stmatrix."""
    width: int
    """Bytes per lane; 16 for ldmatrix and stmatrix: the bytes of a row."""
    lanes: tuple[int, ...]
    """Numbers of the participating lanes, from 0; for ldmatrix and stmatrix, numbers of the rows."""
    offsets: tuple[int, ...]
    """Address of each of ``lanes``, in bytes from the 128-byte line of the lowest."""
    wavefronts: int
    """Wavefronts of this access."""
    ideal: int
    """Its wavefronts without bank conflicts."""
    conflicts: float = 0.0
    """Bank conflicts of the instruction in the whole launch: wavefronts beyond the ideal ones."""


@dataclass(frozen=True)
class LaunchCounters:
    """Counters of one launch of several."""

    kernel: str
    """The kernel."""
    counters: Mapping[str, float]
    """Counters by name."""


@dataclass(frozen=True)
class Profile:
    """Counters of one execution, and what limits the kernel."""

    source: Literal["emulator", "hardware"]
    """Who counted: the emulator or a hardware profiler."""
    limiter: str
    """What bounds the kernel's time, in words."""
    counters: Mapping[str, float]
    """Values by name, with the units of :data:`cutegen_lab.core.counters.COUNTERS`."""
    findings: tuple[str, ...] = ()
    """Sentences that say what to change."""
    lines: tuple[LineCounters, ...] = ()
    """The counters split over the candidate's lines; empty if the source cannot tell. They add up to ``counters``."""
    launches: tuple[LaunchCounters, ...] = ()
    """Counters of each launch in order; empty where there is one, whose counters are ``counters``."""
    accesses: tuple[SharedAccess, ...] = ()
    """Accesses with bank conflicts, the most conflicts first, one for each line and kind of access; empty if the source
    cannot tell."""

    def __repr__(self) -> str:
        return f"<Profile by the {self.source}: {self.limiter or 'no limiter'}; {len(self.counters)} counters>"


@dataclass(frozen=True)
class Resources:
    """Static cost of the main workload's build: the largest over its kernels."""

    registers: int
    """Registers per thread."""
    spill_bytes: int
    """Bytes of spill loads and stores, as ptxas reports them."""
    static_smem_bytes: int
    """Static shared memory per block in bytes."""
    dynamic_smem_bytes: int
    """Dynamic shared memory per block in bytes."""
    kernels: int
    """Number of kernels."""

    @property
    def smem_bytes(self) -> int:
        """Shared memory per block in bytes."""
        return self.static_smem_bytes + self.dynamic_smem_bytes


@dataclass(frozen=True)
class Provenance:
    """Everything a verdict depended on, except the candidate itself."""

    problem_key: str
    """Hash of the problem."""
    source_sha256: str
    """SHA-256 of the candidate's text."""
    config: Mapping[str, object]
    """Values of its tunables."""
    arch: str
    """Target architecture."""
    device: str
    """Device it ran on."""
    seeds: tuple[int, ...]
    """Seeds of all draws."""
    tolerances: Mapping[str, float]
    """Allowed errors, by the names of :class:`~cutegen_lab.core.problem.Tolerances`."""
    versions: Mapping[str, str]
    """Versions of packages and drivers, by name."""
    isolation: tuple[str, ...]
    """Protections the compile cage had."""
    artifact_sha256: str = ""
    """Hash of the artifact; empty where there is none."""


@dataclass(frozen=True)
class Trial:
    """One candidate evaluated on one device. Raises ValueError for a time without a pass."""

    candidate_id: str
    """The candidate."""
    verdict: Verdict
    """How the trial ended."""
    reason: str
    """Why, in one line."""
    device: str
    """Device it ran on."""
    provenance: Provenance
    """Everything the verdict depended on."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """Messages with lines of the candidate's text."""
    check: CheckResult | None = None
    """Result of the correctness checks; None if it did not compile."""
    resources: Resources | None = None
    """Registers, shared memory and spills; None if it did not compile."""
    timing: Timing | None = None
    """Its time; None unless it passed."""
    profile: Profile | None = None
    """Its counters; None if it was not profiled."""
    sol: SpeedOfLight | None = None
    """Lower bound on the time."""

    def __post_init__(self) -> None:
        if self.timing is not None and not self.verdict.passed:
            raise ValueError(f"a trial that ended {self.verdict.value} may not carry a time")

    @property
    def sol_gap(self) -> float | None:
        """Time over the speed of light; None without a time or bound."""
        return self.sol.gap(self.timing.time_us) if self.sol and self.timing else None
