"""Protocols between the parts. Providers, compilers, judges, devices and stores know these and not each other.

Long work takes a :class:`Cancel`: it polls or waits on it and ends within a second of it being set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from cutegen_lab.core.artifact import Artifact, Build, CompileFailure, TracedLayout
from cutegen_lab.core.candidate import Candidate, Config, Proposal
from cutegen_lab.core.idea_results import IdeaResult
from cutegen_lab.core.notes import Note
from cutegen_lab.core.problem import Problem, TensorSpec, Workload
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.core.run import Event, Guidance, Language, RunState, RunSummary, StoredEvent
from cutegen_lab.core.timeline import Timeline
from cutegen_lab.core.trial import CheckResult, Profile, Timing, Trial
from cutegen_lab.core.verdict import Fault

Say = Callable[[str], None]
"""Progress: one short line, safe to call from any thread."""


class Cancel(Protocol):
    """A flag that ends long work; ``threading.Event`` fits."""

    def is_set(self) -> bool: ...

    def wait(self, timeout: float | None = None) -> bool: ...


@dataclass(frozen=True)
class Attempt:
    """An earlier candidate of this run and its result."""

    candidate: Candidate
    """The candidate."""
    trial: Trial | None
    """Its trial; None if it was not evaluated."""
    answer: str = ""
    """The analyst's answer in words ("approved", "rejected: too clever"); empty without one."""


GenerateKind = Literal["generate", "fix", "refine"]


@dataclass(frozen=True)
class GenerateRequest:
    """What a provider is asked for."""

    kind: GenerateKind
    """A first kernel, a fix of one that failed, or a refinement."""
    problem: Problem
    """Problem to solve."""
    gpu: GpuSpec
    """GPU to optimise for."""
    arch: str
    """Target architecture."""
    parent: Attempt | None = None
    """Candidate to fix or refine; None for a first kernel."""
    feedback: str = ""
    """The analyst's reason for the last rejection."""
    history: tuple[Attempt, ...] = ()
    """Every earlier attempt, oldest first."""
    language: Language = "dsl"
    """Language of the answer: "dsl" for a module, "spec" for a spec or a module."""
    wanted: bool = False
    """Whether the analyst asked for one more candidate, even if none is expected to be faster."""
    notes: tuple[Note, ...] = ()
    """The analyst's comments and pins, on candidates of ``history``."""
    searched: bool = False
    """Whether a search sets the values of TUNABLE once the kernel has passed."""
    search_result: str = ""
    """What a search over the parent's TUNABLE found; "" if there was none."""
    ideas: tuple[IdeaResult, ...] = ()
    """Ideas that no passing kernel has tried, the most promising first."""
    guidance: Guidance = field(default_factory=Guidance)
    """What a model is told besides the problem, the candidate and its verdict."""
    facts: tuple[str, ...] = ()
    """What changes did in other runs on problems of the same class, one sentence each."""
    trust: float = 1.0
    """Fraction of the changes that this run's model expected that came, in the median."""

    @property
    def may_end(self) -> bool:
        """Whether a model may answer that no change is worth its tokens: not if the analyst asked for one."""
        return self.kind == "refine" and not (self.feedback or self.wanted or self.notes)

    @property
    def known_ideas(self) -> frozenset[str]:
        """Ids of :attr:`ideas`."""
        return frozenset(each.id for each in self.ideas)


Forecast = Callable[[GenerateRequest, Sequence[tuple[str, Config]], Say, Cancel], "list[float | None]"]
"""Predicted microseconds of kernels (text, config) for the request's main workload; None for one that does not run."""


class Provider(Protocol):
    """Proposes candidates."""

    name: str

    def propose(self, request: GenerateRequest, say: Say, cancel: Cancel) -> Proposal:
        """The next candidate. Raises ProviderExhausted if there is none, ProviderError if the provider cannot answer,
        and Cancelled."""
        ...


class Compiler(Protocol):
    """Compiles candidates."""

    def compile(
        self, source: str, config: Config, workloads: Sequence[Workload], arch: str, say: Say, cancel: Cancel
    ) -> Artifact | CompileFailure:
        """One build for each workload, from the cache if possible. Raises CageError, SetupError, Cancelled."""
        ...

    def layouts(
        self, source: str, config: Config, workload: Workload, arch: str, cancel: Cancel
    ) -> tuple[TracedLayout, ...] | CompileFailure:
        """The layouts that a candidate makes for ``workload``, each once per line of its text. Raises as
        :meth:`compile`."""
        ...


@dataclass(frozen=True)
class Execution:
    """Result of running a plan. Outputs and workspace are in the caller's buffers."""

    fault: Fault | None
    """The fault that stopped the run; None if it ran to its end."""
    seconds: float
    """Seconds that it took on the host."""
    counters: Mapping[str, float] = field(default_factory=dict)
    """Counters by name; empty if not counted."""
    launched: tuple[tuple[str, tuple[int, int, int]], ...] = ()
    """Each launch seen: kernel name and grid (x, y, z)."""
    printed: str = ""
    """Output of the kernels' printf, if the device can record it."""


class Device(Protocol):
    """Executes builds. ``buffers`` are writable host memory: inputs, outputs, workspace, in the plan's tensor order.

    A device works on the *copies or views* it is given; the judge owns their contents and compares them afterwards.
    """

    name: str
    """"emulator" or "cuda:0 NVIDIA H200"."""
    kind: Literal["cuda", "emulator"]
    """Whether it is a GPU or the emulator."""
    torch_device: str
    """Device on which PyTorch computes references: "cpu" or "cuda:0"."""

    def execute(
        self, build: Build, tensors: Sequence[TensorSpec], buffers: Sequence[memoryview], cancel: Cancel,
        counting: bool = True, flops: int = 0,
    ) -> Execution:  # fmt: skip
        """Runs one call. ``counting``: False to leave out the counters. ``flops``: operations of the problem's matrix
        products, for a device that limits the number of executed instructions."""
        ...

    def time(
        self, build: Build, tensors: Sequence[TensorSpec], buffers: Sequence[memoryview], gpu: GpuSpec, cancel: Cancel
    ) -> tuple[Timing | Fault, Profile | None]:
        """Times one call: measured on a GPU, predicted by the emulator (and labelled so)."""
        ...

    def close(self) -> None: ...


MakeEmulator = Callable[[], Device | None]
"""Makes an emulator; returns None if none is installed."""


@runtime_checkable
class Samples(Protocol):
    """A device that can run a sample of the blocks of a plan too large to run whole."""

    def sample(
        self, build: Build, tensors: Sequence[TensorSpec], buffers: Sequence[memoryview], cancel: Cancel,
        share: float, flops: int = 0,
    ) -> Execution | str:  # fmt: skip
        """Runs the first and the last cluster and random others, about ``share`` (0 to 1) of all. Outputs are
        incomplete. Returns the reason instead if a sample would prove nothing. ``flops`` as in :meth:`Device.execute`.
        Raises Cancelled."""
        ...


@runtime_checkable
class Examines(Protocol):
    """A device that finds some faults without running a build."""

    def examine(self, build: Build, tensors: Sequence[TensorSpec]) -> Fault | None:
        """Fault of ``build``, whose plan has these tensors; None if no fault is found; a fault UNSUPPORTED if the
        device cannot read the build."""
        ...


@runtime_checkable
class LendsMemory(Protocol):
    """A device that shares memory with this process: large tensors need not be copied through the host."""

    def lend(self, sizes: Sequence[int]) -> Sequence[object] | None:
        """Buffers of the given sizes in bytes, in a form ``torch.as_tensor`` takes without a copy; None if there is no
        room. They are valid until the next loan, or until the device times something or is closed."""
        ...

    def execute_lent(self, build: Build, cancel: Cancel) -> Execution:
        """As :meth:`Device.execute`, in the buffers lent last, which hold the tensors of ``build``'s plan in order."""
        ...


SanitizerTool = Literal["memcheck", "racecheck", "synccheck"]


@dataclass(frozen=True)
class Inspection:
    """Result of one sanitizer run. If neither field is set, the sanitizer ran and found nothing."""

    fault: Fault | None = None
    """What the sanitizer found."""
    note: str = ""
    """Why the sanitizer could not run."""


@runtime_checkable
class Inspects(Protocol):
    """A device with a vendor's memory and race checker (compute-sanitizer). One inspection takes seconds."""

    def inspect(self, tool: SanitizerTool, build: Build, buffers: Sequence[memoryview], cancel: Cancel) -> Inspection:
        """Runs ``tool`` once over ``build``. Raises Cancelled."""


@runtime_checkable
class Profiles(Protocol):
    """A device with a vendor's profiler."""

    def profile(self, build: Build, buffers: Sequence[memoryview], cancel: Cancel) -> Profile | str:
        """Counters of one execution, or the reason why there are none. Raises Cancelled."""
        ...


@runtime_checkable
class Records(Protocol):
    """A device that can record what each warp of a block does, in order."""

    def timelines(
        self, build: Build, tensors: Sequence[TensorSpec], buffers: Sequence[memoryview], cancel: Cancel
    ) -> tuple[Timeline, ...] | str:
        """Timeline of one block of each launch, or the reason why there is none. Raises Cancelled."""
        ...


class Judge(Protocol):
    """Checks, times and profiles artifacts."""

    def check(self, problem: Problem, artifact: Artifact, device: Device, say: Say, cancel: Cancel) -> CheckResult:
        """Checks workloads until one fails. Raises Cancelled."""

    def time(
        self, problem: Problem, artifact: Artifact, device: Device, gpu: GpuSpec, say: Say, cancel: Cancel,
        incumbent: Artifact | None = None,
    ) -> tuple[Timing | Fault, Profile | None]:  # fmt: skip
        """Time and profile of the main workload, or the fault that prevented it. Where the device can, ``incumbent``
        (the artifact to beat) is timed in the same rounds."""
        ...

    def profile(self, problem: Problem, artifact: Artifact, device: Device, say: Say, cancel: Cancel) -> Profile | str:
        """Counters of the main workload on ``device``, or the reason why there are none. Raises Cancelled."""
        ...

    def timelines(
        self, problem: Problem, artifact: Artifact, device: Device, say: Say, cancel: Cancel
    ) -> tuple[Timeline, ...] | str:
        """Timeline of one block of each launch, or the reason why there is none. Raises Cancelled."""
        ...


class Lease(Protocol):
    """The exclusive right to drive a run, held until it is released or its process dies."""

    def release(self) -> None:
        """Releases the lease; may be called more than once."""
        ...


class Store(Protocol):
    """Keeps runs as append-only events, and artifacts by hash. Methods raise StoreError."""

    def append(self, run_id: str, event: Event, after: RunState | None = None) -> StoredEvent:
        """Appends an event; it is durable when this returns, even through a SIGKILL. ``after`` is the state the event
        leads to, from which the run's line in :meth:`runs` is written in the same transaction."""
        ...

    def events(self, run_id: str, after: int = 0) -> list[StoredEvent]:
        """Events with ``seq > after``, in order."""

    def insert(self, events: Sequence[StoredEvent], after: RunState) -> None:
        """Stores a whole run that happened elsewhere; ``after`` is the state that its events lead to."""
        ...

    def runs(self) -> list[RunSummary]:
        """Every run, including those in the trash."""
        ...

    def rename(self, run_id: str, title: str) -> None:
        """Sets the title of a run, on one line; "" for the name of its problem."""
        ...

    def trash(self, run_id: str, away: bool = True) -> None:
        """Puts a run in the trash, or takes it out again; nothing is deleted."""
        ...

    def put_artifact(self, artifact: Artifact, prefix: str = "") -> str:
        """Stores ``artifact`` under the key ``prefix`` + its hash, and returns this key."""

    def get_artifact(self, sha256: str) -> Artifact:
        """The artifact of that hash."""

    def lease(self, run_id: str) -> Lease:
        """The exclusive right to drive ``run_id``. Raises StoreError naming the process that holds it."""
        ...

    def driven_by(self, run_id: str) -> str:
        """The process that drives ``run_id`` now; empty if none does."""
        ...

    def close(self) -> None: ...
