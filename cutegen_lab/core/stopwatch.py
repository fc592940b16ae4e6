"""Protocol between the judge, which decides what is timed, and a GPU, which times it.

A stopwatch holds *subjects* ready to run: launch plans, the reference in PyTorch, a copy. Each has several tensor sets
with their own values and addresses, so that no call finds its data in L2. The judge requests samples of one subject
after another, and may request the outputs of a timed call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.problem import Problem, TensorSpec
from cutegen_lab.core.protocols import Cancel
from cutegen_lab.core.verdict import Fault

Mode = Literal["cold", "warm", "events", "records"]
"""``cold``: a CUDA graph of calls, each on another set of tensors. ``warm``: the same on one set. ``events``: single
calls between two CUDA events, each after L2 was overwritten. ``records``: single calls, timed by the profiler's kernel
records, each after other data were read into L2."""

ReferenceKind = Literal["eager", "compile", "max-autotune", "channels_last"]
"""``channels_last``: eager, with images and weights of four dimensions in that memory format."""

INCUMBENT = "incumbent"  # the accepted kernel, timed in the same rounds as a refinement
EAGER = "eager PyTorch"  # a baseline
COPY = "copy of the compulsory bytes"  # the subject that every candidate is compared with


@dataclass(frozen=True)
class Subject:
    """Something a stopwatch can time: a build, the reference in PyTorch, or a copy."""

    name: str
    """Name under which samples of it are requested."""
    calls: int
    """Calls timed in each cold sample; call i runs on tensor set i."""
    notes: tuple[str, ...] = ()
    """Remarks for the report, such as what torch.compile said."""


@dataclass(frozen=True)
class Samples:
    """Samples of one subject in one mode."""

    times_us: tuple[float, ...]
    """Microseconds per call, one value for each sample, in the order taken."""
    clock: str
    """How time was measured ("CUDA graph of 12 calls between two events")."""
    flush: str
    """State of L2 before each call ("cold L2: every call has tensors of its own")."""
    conditions: Mapping[str, float] = field(default_factory=dict)
    """GPU sensors while the samples ran: sm_clock_mhz, power_w, temperature_c, throttle."""


class Stopwatch(Protocol):
    """Times subjects on a device, which it holds until it is closed. Methods that take time raise Cancelled.

    Subjects share the tensor sets: sampling one overwrites the outputs of the one before. After a fault that spoils the
    device every later answer is a Fault.
    """

    conditions: Mapping[str, str]
    """Versions and settings: GPU, driver, CUDA, torch, TF32."""
    dram_bytes_per_s: float
    """Peak DRAM bandwidth from the memory clock and bus width; 0 if the device does not report them."""
    l2_bytes: int
    """Size of L2 in bytes."""
    modes: Sequence[Mode]
    """Modes that :meth:`sample` supports on this device."""

    def add_build(self, name: str, build: Build) -> Subject | Fault:
        """Loads a build, to be sampled as ``name``."""

    def add_reference(self, name: str, problem: Problem, kind: ReferenceKind) -> Subject | Fault:
        """Prepares the reference in PyTorch, to be sampled as ``name``."""

    def add_copy(self, name: str) -> Subject | Fault:
        """Prepares a device-to-device copy that moves the workload's compulsory bytes, to be sampled as ``name``."""
        ...

    def sample(self, name: str, mode: Mode, count: int, seed: int) -> Samples | Fault:
        """Takes ``count`` samples. Before each, inputs are rewritten and outputs and workspace poisoned: in sample j,
        set i holds the given inputs rotated by :func:`rotation` elements for seed ``seed`` + j."""
        ...

    def outputs(self, name: str, call: int) -> list[memoryview] | Fault:
        """Bytes of each output after timed call ``call``. Only for a build, directly after a cold sample of it (whose
        inputs were rotated for the last seed)."""
        ...

    def open_another(self, tensors: Sequence[TensorSpec], inputs: Sequence[memoryview]) -> Stopwatch | Fault:
        """A stopwatch for another workload on the same device, to be closed before this one; arguments as in
        :meth:`HasStopwatch.stopwatch`."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class HasStopwatch(Protocol):
    """A device that can time subjects itself."""

    conditions: Mapping[str, str]
    """Conditions of its stopwatches, known before one is opened."""

    def prepare(self, problem: Problem) -> None:
        """Compiles the reference by torch.compile in the background until a stopwatch is opened, so that adding it
        there takes less time. May do nothing: for a second problem, or for one whose tensors take more than a small
        part of the device's memory."""
        ...

    def stopwatch(
        self, tensors: Sequence[TensorSpec], inputs: Sequence[memoryview], cancel: Cancel
    ) -> Stopwatch | Fault:
        """Opens a stopwatch for one workload. ``tensors`` are its inputs, then its outputs; ``inputs`` are the inputs'
        bytes. Returns a Fault if the device has no room."""
        ...


def rotation(seed: int, call: int, tensor: int, cosize: int) -> int:
    """Number of elements by which set ``call`` of input ``tensor`` is rotated in memory: element i moves to (i +
    rotation) modulo ``cosize`` (gaps move too).

    A hash of all four arguments (splitmix64, Steele et al. 2014), so that no two sets or tensors are rotated alike.
    """
    if cosize < 2:
        return 0
    mask = (1 << 64) - 1
    value = (seed ^ (call * 0x9E3779B97F4A7C15) ^ (tensor * 0xD1B54A32D192ED03)) & mask
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        value = ((value ^ (value >> shift)) * factor) & mask
    return (value ^ (value >> 31)) % cosize
