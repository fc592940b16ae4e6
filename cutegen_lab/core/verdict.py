"""Outcome of a trial, and the messages that explain it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Verdict(str, Enum):
    """How a trial ended. Only ``PASSED`` may carry a time."""

    PASSED = "passed"
    # From the gate: the source never reached the compiler.
    REJECTED_SOURCE = "rejected_source"  # a forbidden import, name or dunder
    PIN_BROKEN = "pin_broken"  # it changes what the analyst pinned
    CONTRACT = "contract"  # no launch(), wrong number of tensors, bad TUNABLE or workspace
    # From the cage.
    COMPILE_ERROR = "compile_error"
    COMPILE_TIMEOUT = "compile_timeout"
    COMPILE_CRASH = "compile_crash"  # a signal, os._exit, a broken result
    COMPILE_LIMIT = "compile_limit"  # memory, processes, output or file size
    HOST_READS_DATA = "host_reads_data"  # launch() used a tensor's contents while its launches were recorded
    UNSTABLE_PLAN = "unstable_plan"  # recordings at other addresses differ beyond relocations and padding
    # From the launch.
    INVALID_PLAN = "invalid_plan"  # grid, block, cluster, shared memory or a relocation out of bounds
    UNSUPPORTED = "unsupported"  # the device cannot execute it: an opcode the emulator lacks, another arch
    # From execution.
    OUT_OF_BOUNDS = "out_of_bounds"
    MISALIGNED = "misaligned"
    UNINITIALISED_READ = "uninitialised_read"
    BARRIER_DIVERGENCE = "barrier_divergence"
    DEADLOCK = "deadlock"
    HANG = "hang"  # instruction budget or watchdog
    LAUNCH_FAILURE = "launch_failure"
    OUT_OF_MEMORY = "out_of_memory"
    # From the comparison with the reference.
    WRONG_RESULT = "wrong_result"
    UNWRITTEN_OUTPUT = "unwritten_output"
    NON_DETERMINISTIC = "non_deterministic"
    INPUT_MODIFIED = "input_modified"
    UNREAD_INPUT = "unread_input"  # fewer bytes of an input were loaded than the answer depends on
    TOO_FAST = "too_fast"  # a measured time below the speed of light: quarantined, never averaged
    INCONCLUSIVE = "inconclusive"  # all checks passed, but too little of a workload of the analyst's could run
    # Our own failures.
    CANCELLED = "cancelled"
    DEVICE_ERROR = "device_error"  # the device or its worker failed; the candidate may be correct

    @property
    def passed(self) -> bool:
        return self is Verdict.PASSED


@dataclass(frozen=True)
class Diagnostic:
    """One message about a candidate from the gate, the lint rules, the compiler or ptxas."""

    severity: str
    """"error", "warning" or "note"."""
    code: str
    """Code of the compiler or lint rule (``UNSUP_NO_SOURCE``, ``L06-slice``)."""
    message: str
    """What is wrong, as plain text."""
    line: int = 0
    """Line of the candidate's text, from 1; 0 if unknown."""
    excerpt: str = ""
    """That line and its neighbours, as plain text."""
    note: str = ""
    """Explanation added to the message."""
    suggestion: str = ""
    """What to write instead."""

    def __str__(self) -> str:
        place = f"line {self.line}: " if self.line else ""
        tail = "".join(f" ({part})" for part in (self.note, self.suggestion) if part)
        return f"{place}{self.severity}[{self.code}] {self.message}{tail}"


@dataclass(frozen=True)
class Fault:
    """The error that stopped a kernel while it ran."""

    verdict: Verdict
    """Verdict that the fault leads to."""
    message: str
    """What happened, with the values seen."""
    kernel: str = ""
    """Name of the kernel; empty if unknown."""
    block: tuple[int, int, int] | None = None
    """Block index (x, y, z)."""
    thread: tuple[int, int, int] | None = None
    """Thread index in the block (x, y, z)."""
    address: int | None = None
    """Address of the access in bytes."""
    line: int = 0
    """Line of the candidate's text, from 1; 0 if unknown."""
    instruction: str = ""
    """The PTX instruction."""

    def __str__(self) -> str:
        place = []
        if self.line:
            place.append(f"line {self.line}")
        if self.block is not None and self.thread is not None:
            place.append(f"block {self.block} thread {self.thread}")
        if self.instruction:
            place.append(f"at `{quoted(self.instruction)}`")
        return self.message + (f" [{', '.join(place)}]" if place else "")


_HEAD, _TAIL = 80, 30


def quoted(instruction: str) -> str:
    """A PTX instruction shortened for a message: one that names 64 registers keeps its beginning and end."""
    text = " ".join(instruction.split())
    return text if len(text) <= _HEAD + _TAIL + 5 else f"{text[:_HEAD]} … {text[-_TAIL:]}"
