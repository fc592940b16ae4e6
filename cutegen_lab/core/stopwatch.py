"""The seam between who decides what is timed (the judge) and who can time it (a GPU).

A stopwatch holds *subjects* ready to run: launch plans, the reference in PyTorch, a copy. Each has several sets of
tensors with values and addresses of its own, so that a call never meets the lines an earlier one left in L2. The judge
asks for samples of one subject after another, and may ask for the outputs that a timed call left behind.
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
calls between two CUDA events, each after L2 was written over. ``records``: single calls by the profiler's records of
their kernels, each after L2 was read over."""

ReferenceKind = Literal["eager", "compile", "max-autotune", "channels_last"]
"""``channels_last``: eager, with images and weights of four dimensions in that layout."""

COPY = "copy of the compulsory bytes"  # the subject that every candidate's time stands beside


@dataclass(frozen=True)
class Subject:
    """What a stopwatch holds under ``name``. ``calls`` are timed in each cold sample; call i runs on set i."""

    name: str
    calls: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Samples:
    """Microseconds a call, in the order taken, and what the card reported while they ran."""

    times_us: tuple[float, ...]
    clock: str
    flush: str
    conditions: Mapping[str, float] = field(default_factory=dict)  # sm_clock_mhz, power_w, temperature_c, throttle


class Stopwatch(Protocol):
    """Other work on the device waits until it is closed. Whatever takes time raises Cancelled.

    Subjects share the sets of tensors: what one left there is gone when the next is sampled. After a fault that spoils
    the device every later answer is a fault too.
    """

    conditions: Mapping[str, str]  # versions and settings: GPU, driver, CUDA, torch, TF32
    dram_bytes_per_s: float  # what the device's memory clock and bus allow at best; 0 where it does not say
    l2_bytes: int
    modes: Sequence[Mode]  # those it has here

    def add_build(self, name: str, build: Build) -> Subject | Fault: ...

    def add_reference(self, name: str, problem: Problem, kind: ReferenceKind) -> Subject | Fault: ...

    def add_copy(self, name: str) -> Subject | Fault:
        """A device-to-device copy that moves the workload's compulsory bytes."""
        ...

    def sample(self, name: str, mode: Mode, count: int, seed: int) -> Samples | Fault:
        """``count`` samples. Before each, the inputs of the sets that it calls are rewritten, outputs and workspace
        poisoned: in sample j, set i holds the given inputs rotated by :func:`rotation` elements for seed ``seed`` + j.
        """
        ...

    def outputs(self, name: str, call: int) -> list[memoryview] | Fault:
        """What timed call ``call`` left in the outputs, byte by byte. Only of a build, and directly after a cold sample
        of it (that sample's inputs were rotated for the last seed)."""
        ...

    def beside(self, tensors: Sequence[TensorSpec], inputs: Sequence[memoryview]) -> Stopwatch | Fault:
        """One for another workload, open as long as this one at most; as :meth:`HasStopwatch.stopwatch`."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class HasStopwatch(Protocol):
    """A device that has a stopwatch. ``conditions`` are its stopwatches', known before one is open."""

    conditions: Mapping[str, str]

    def stopwatch(
        self, tensors: Sequence[TensorSpec], inputs: Sequence[memoryview], cancel: Cancel
    ) -> Stopwatch | Fault:
        """For a workload: ``tensors`` are its inputs, then its outputs; ``inputs`` are the inputs' bytes. A Fault where
        the device has no room for it."""
        ...


def rotation(seed: int, call: int, tensor: int, cosize: int) -> int:
    """By how many elements set ``call`` of input ``tensor`` is rotated in memory (element i moves to i + rotation,
    modulo ``cosize``: gaps move too). A hash of all four, so that neither sets nor tensors move together (splitmix64,
    Steele et al. 2014)."""
    if cosize < 2:
        return 0
    mask = (1 << 64) - 1
    value = (seed ^ (call * 0x9E3779B97F4A7C15) ^ (tensor * 0xD1B54A32D192ED03)) & mask
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        value = ((value ^ (value >> shift)) * factor) & mask
    return (value ^ (value >> 31)) % cosize
