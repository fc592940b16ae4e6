"""Data of each plot of a profile, as flat records, which its table shows too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Basis = Literal["measured", "predicted"]


@dataclass(frozen=True)
class RooflinePoint:
    """A candidate in the roofline."""

    candidate: str
    """The candidate."""
    bytes_counted: Literal["compulsory", "moved"]
    """Bytes of the intensity: compulsory ones, or those moved between L2 and multiprocessors."""
    intensity: float
    """Operations per byte."""
    operations_per_s: float
    """Operations divided by the time: the problem's matrix operations, and one per lane for each fp32 instruction."""
    time_us: float
    """The time."""
    basis: Basis
    """Whether the time is measured or predicted."""


@dataclass(frozen=True)
class Ceiling:
    """A limit of the GPU: a rate of operations, or a bandwidth (an inclined line)."""

    name: str
    """The unit and its rate."""
    operations_per_s: float | None
    """Maximum number of operations per second; None for a bandwidth."""
    bytes_per_s: float | None
    """Maximum number of bytes per second; None for a rate of operations."""


@dataclass(frozen=True)
class TermBar:
    """A term of the predicted time."""

    name: str
    """Name of the term."""
    time_us: float
    """Microseconds."""
    part_of_waits: bool
    """Whether the term is a part of the waits."""


@dataclass(frozen=True)
class WholeTime:
    """A time of the whole call, or a bound on it."""

    name: str
    """What it is: "measured", "predicted", "speed of light"."""
    time_us: float
    """Microseconds."""


@dataclass(frozen=True)
class MemoryBar:
    """Bytes that one level of memory moved."""

    source: str
    """Who counted: "emulator" or "ncu"."""
    level: str
    """The level."""
    part: str
    """What moved: "read", "written", "bank conflicts"."""
    nbytes: float
    """Bytes."""
    compulsory_bytes: float | None
    """Minimum that must be read, or written; None if there is no minimum."""


@dataclass(frozen=True)
class Registers:
    """Registers and spills per thread of a kernel."""

    kernel: str
    """The kernel."""
    registers: int
    """Registers per thread."""
    spill_bytes: int
    """Bytes that instructions of a thread store to and load from local memory for spilled registers."""


@dataclass(frozen=True)
class WhatIf:
    """Warps resident on a multiprocessor if a kernel took more or less of one resource."""

    kernel: str
    """The kernel."""
    resource: Literal["registers per thread", "shared memory per block"]
    """The resource that changes."""
    value: int
    """How much of it: registers, or bytes."""
    resident_warps: int
    """Warps that fit then."""
    current: bool
    """Whether the kernel uses exactly this much."""


@dataclass(frozen=True)
class Limit:
    """Occupancy limit of one resource: how many blocks of a kernel it allows on a multiprocessor."""

    kernel: str
    """The kernel."""
    resource: str
    """The resource."""
    blocks: int
    """Number of blocks that it allows on a multiprocessor."""
    limits: bool
    """Whether no other resource allows fewer."""


@dataclass(frozen=True)
class MixShare:
    """Warp instructions of one class."""

    candidate: str
    """The candidate."""
    instructions: str
    """Class of instruction."""
    warp_instructions: float
    """How many."""
    share: float
    """Fraction of all warp instructions, 0 to 1."""


@dataclass(frozen=True)
class CheckCell:
    """All checks of one workload with one kind of inputs."""

    workload: str
    """The workload."""
    draw: str
    """The kind of inputs."""
    checks: int
    """Number of checks."""
    failed: int
    """Number of checks that failed."""
    error_over_budget: float | None
    """The largest error divided by the allowed error; None if no outputs were compared."""


@dataclass(frozen=True)
class TimeSample:
    """A time of one round, or a median with its interval."""

    subject: str
    """What was timed: the candidate or a baseline."""
    round: int
    """Number of the round; 0 for a median."""
    time_us: float
    """Microseconds."""
    low_us: float | None
    """Lower end of the median's 95% interval."""
    high_us: float | None
    """Upper end of that interval."""
    basis: Basis
    """Whether the time is measured or predicted."""


@dataclass(frozen=True)
class Stall:
    """Time that warps spent unable to issue, for one reason."""

    reason: str
    """Nsight Compute's name of the reason."""
    meaning: str
    """What the warp waits for."""
    warp_cycles: float
    """Cycles, summed over warps."""
    share: float
    """Fraction of the cycles for all reasons, 0 to 1."""
