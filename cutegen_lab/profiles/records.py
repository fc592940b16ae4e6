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
    """Operations a byte."""
    operations_per_s: float
    """Operations over the time: matrix operations of the problem, and one for each lane's fp32 instruction."""
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
    """Most operations a second; None for a bandwidth."""
    bytes_per_s: float | None
    """Most bytes a second; None for a rate of operations."""


@dataclass(frozen=True)
class TermBar:
    """A part of where the time goes."""

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
    """Who counted."""
    level: str
    """The level."""
    part: str
    """What moved: "read", "written", "bank conflicts"."""
    nbytes: float
    """Bytes."""
    compulsory_bytes: float | None
    """What must be read, or written, at least; None where nothing must."""


@dataclass(frozen=True)
class Registers:
    """Registers of a thread of a kernel, and its spills."""

    kernel: str
    """The kernel."""
    registers: int
    """Registers of a thread."""
    spill_bytes: int
    """Bytes of a thread's instructions that store spilled registers to local memory, and load them."""


@dataclass(frozen=True)
class WhatIf:
    """Warps resident on a multiprocessor if a kernel took more or less of one resource."""

    kernel: str
    """The kernel."""
    resource: Literal["registers a thread", "shared memory a block"]
    """The resource that changes."""
    value: int
    """How much of it: registers, or bytes."""
    resident_warps: int
    """Warps that fit then."""
    current: bool
    """Whether the kernel uses exactly this much."""


@dataclass(frozen=True)
class Limit:
    """Blocks of a kernel that one resource lets onto a multiprocessor."""

    kernel: str
    """The kernel."""
    resource: str
    """The resource."""
    blocks: int
    """Blocks that it allows."""
    limits: bool
    """Whether no other allows fewer."""


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
    """… of all, 0 to 1."""


@dataclass(frozen=True)
class CheckCell:
    """All checks of one workload with one kind of inputs."""

    workload: str
    """The workload."""
    draw: str
    """The kind of inputs."""
    checks: int
    """How many there were."""
    failed: int
    """How many of them failed."""
    error_over_budget: float | None
    """The largest error over what is allowed; None where no outputs were compared."""


@dataclass(frozen=True)
class TimeSample:
    """A time of one round, or the median with its interval where rounds were not kept."""

    subject: str
    """Who was timed."""
    round: int
    """Number of the round; 0 for a median."""
    time_us: float
    """Microseconds."""
    low_us: float | None
    """Lower end of the median's 95% interval."""
    high_us: float | None
    """Upper end of it."""
    basis: Basis
    """Whether the time is measured or predicted."""


@dataclass(frozen=True)
class Stall:
    """Time that warps spent unable to issue, for one reason."""

    reason: str
    """Nsight Compute's name of it."""
    meaning: str
    """What the warp waits for."""
    warp_cycles: float
    """Cycles, summed over warps."""
    share: float
    """… of all such, 0 to 1."""
