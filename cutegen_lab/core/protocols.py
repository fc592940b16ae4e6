"""The seams. Providers, compilers, judges, devices and stores know these and not each other.

Long work takes a :class:`Cancel`; whoever performs it polls or waits on it and ends within a second of it being set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from cutegen_lab.core.artifact import Artifact, Build, CompileFailure
from cutegen_lab.core.candidate import Candidate, Config, Proposal
from cutegen_lab.core.problem import Problem, TensorSpec, Workload
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.core.run import Event, Language, RunState, RunSummary, StoredEvent
from cutegen_lab.core.trial import CheckResult, Profile, Timing, Trial
from cutegen_lab.core.verdict import Fault

Say = Callable[[str], None]
"""Progress: one short line, safe to call from any thread."""


class Cancel(Protocol):
    """``threading.Event`` fits."""

    def is_set(self) -> bool: ...

    def wait(self, timeout: float | None = None) -> bool: ...


@dataclass(frozen=True)
class Attempt:
    """One earlier candidate of this run and what became of it."""

    candidate: Candidate
    trial: Trial | None
    answer: str = ""  # "approved", "rejected: too clever", …


GenerateKind = Literal["generate", "fix", "refine"]


@dataclass(frozen=True)
class GenerateRequest:
    """What a provider is asked. ``parent`` is the candidate to fix or refine (None for the first).

    ``feedback`` is the analyst's reason for a rejection. ``history`` is every earlier attempt, oldest first. In the
    ``language`` "spec" the answer is a text of the compact language, or a module as in "dsl".
    """

    kind: GenerateKind
    problem: Problem
    gpu: GpuSpec
    arch: str
    parent: Attempt | None = None
    feedback: str = ""
    history: tuple[Attempt, ...] = ()
    language: Language = "dsl"


class Provider(Protocol):
    name: str

    def propose(self, request: GenerateRequest, say: Say, cancel: Cancel) -> Proposal:
        """Raises ProviderExhausted when done, ProviderError when it cannot answer, Cancelled."""
        ...


class Compiler(Protocol):
    def compile(
        self, source: str, config: Config, workloads: Sequence[Workload], arch: str, say: Say, cancel: Cancel
    ) -> Artifact | CompileFailure:
        """One build a workload, from the cache where it has them. Raises CageError, SetupError, Cancelled."""
        ...


@dataclass(frozen=True)
class Execution:
    """What a device says after running a plan. Outputs and workspace were written into the caller's buffers."""

    fault: Fault | None
    seconds: float
    counters: Mapping[str, float] = field(default_factory=dict)
    launched: tuple[tuple[str, tuple[int, int, int]], ...] = ()  # kernels seen, with their grids
    printed: str = ""  # by the kernels' printf, where the device can tell


class Device(Protocol):
    """Executes builds. ``buffers`` are writable host memory: inputs, outputs, workspace, in the plan's tensor order.

    A device runs the build on *copies or views* it is handed; the judge owns their contents and compares afterwards.
    """

    name: str  # "emulator", "cuda:0 NVIDIA H200"
    kind: Literal["cuda", "emulator"]
    torch_device: str  # where PyTorch may compute beside it: "cpu", "cuda:0"

    def execute(
        self, build: Build, tensors: Sequence[TensorSpec], buffers: Sequence[memoryview], cancel: Cancel,
        counting: bool = True, flops: int = 0,
    ) -> Execution:  # fmt: skip
        """``counting``: False where nobody asks for the execution's counters, which are left out then. ``flops``: of
        the matrix products that the problem asks for, for a device that bounds what a kernel may execute."""
        ...

    def time(
        self, build: Build, tensors: Sequence[TensorSpec], buffers: Sequence[memoryview], gpu: GpuSpec, cancel: Cancel
    ) -> tuple[Timing | Fault, Profile | None]:
        """Times one call: measured on a GPU, predicted by the emulator (and labelled so)."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class Samples(Protocol):
    """A device that can run some blocks of a plan whose every block would take it too long."""

    def sample(
        self, build: Build, tensors: Sequence[TensorSpec], buffers: Sequence[memoryview], cancel: Cancel,
        share: float, flops: int = 0,
    ) -> Execution | str:  # fmt: skip
        """Runs the first and the last cluster and others drawn at random, about ``share`` of all; or why that would
        tell nothing. Outputs are incomplete. ``flops`` as in :meth:`Device.execute`. Raises Cancelled."""
        ...


@runtime_checkable
class Examines(Protocol):
    """A device that finds some faults without running anything."""

    def examine(self, build: Build, tensors: Sequence[TensorSpec]) -> Fault | None:
        """Of a build whose plan has these tensors; UNSUPPORTED where the device cannot read it."""
        ...


@runtime_checkable
class LendsMemory(Protocol):
    """A device whose memory this process sees too: large tensors need not pass through the host's."""

    def lend(self, sizes: Sequence[int]) -> Sequence[object] | None:
        """Memory of each size in bytes, in a form that ``torch.as_tensor`` takes without a copy; None where there is
        none to lend. It is the caller's until the next loan, or until the device is timed with or closed."""
        ...

    def execute_lent(self, build: Build, cancel: Cancel) -> Execution:
        """:meth:`Device.execute` in the memory lent last, which holds the tensors of ``build``'s plan in its order."""
        ...


SanitizerTool = Literal["memcheck", "racecheck", "synccheck"]


@dataclass(frozen=True)
class Inspection:
    """``fault`` is what a sanitizer found; ``note`` why it could not look. Neither: it looked and found nothing."""

    fault: Fault | None = None
    note: str = ""


@runtime_checkable
class Inspects(Protocol):
    """A device whose vendor has a memory and race checker. One inspection takes seconds."""

    def inspect(
        self, tool: SanitizerTool, build: Build, buffers: Sequence[memoryview], cancel: Cancel
    ) -> Inspection: ...


@runtime_checkable
class Profiles(Protocol):
    """A device whose vendor has a profiler."""

    def profile(self, build: Build, buffers: Sequence[memoryview], cancel: Cancel) -> Profile | str:
        """Counters of one execution, or why there are none. Raises Cancelled."""
        ...


class Judge(Protocol):
    def check(self, problem: Problem, artifact: Artifact, device: Device, say: Say, cancel: Cancel) -> CheckResult: ...

    def time(
        self, problem: Problem, artifact: Artifact, device: Device, gpu: GpuSpec, say: Say, cancel: Cancel,
        incumbent: Artifact | None = None,
    ) -> tuple[Timing | Fault, Profile | None]:  # fmt: skip
        """Where the device can, ``incumbent`` (the artifact to beat) is timed in turns with ``artifact``."""
        ...

    def profile(self, problem: Problem, artifact: Artifact, device: Device, say: Say, cancel: Cancel) -> Profile | str:
        """What ``device`` counts of the problem's own workload, or why there is no profile. Raises Cancelled."""
        ...


class Store(Protocol):
    """The only truth: runs and their append-only events, artifacts by hash. Raises StoreError."""

    def append(self, run_id: str, event: Event, after: RunState | None = None) -> StoredEvent:
        """Durable when it returns: a SIGKILL afterwards loses nothing. ``after`` is the state the event leads to; the
        run's line in :meth:`runs` is written from it in the same transaction."""
        ...

    def events(self, run_id: str, after: int = 0) -> list[StoredEvent]: ...

    def runs(self) -> list[RunSummary]: ...

    def put_artifact(self, artifact: Artifact) -> str: ...

    def get_artifact(self, sha256: str) -> Artifact: ...
