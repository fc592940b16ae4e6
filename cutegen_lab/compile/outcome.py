"""Turns a build's end into a result or a verdict."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any, TypeVar

from cutegen_lab.compile.limits import Limits
from cutegen_lab.compile.reply import Compiled, Failed, read_cubins, read_layouts, read_reply
from cutegen_lab.compile.watch import Ending
from cutegen_lab.core.artifact import TracedLayout
from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.core.verdict import Verdict

_R = TypeVar("_R")
_OUT_OF_MEMORY = ("out of memory", "std::bad_alloc", "Cannot allocate memory", "MemoryError")


def read_ending(ending: Ending, tensors: tuple[TensorSpec, ...], limits: Limits) -> Compiled | Failed:
    """The compiled result, or a failure. ``tensors``: the workload's inputs and outputs, to name one that the host
    read."""
    return _read(ending, tensors, limits, lambda reply: read_reply(reply, ending.parts))


def read_traced(ending: Ending, tensors: tuple[TensorSpec, ...], limits: Limits) -> tuple[TracedLayout, ...] | Failed:
    """The layouts that were traced, or a failure; ``tensors`` as for :func:`read_ending`."""
    return _read(ending, tensors, limits, read_layouts)


def _read(
    ending: Ending, tensors: tuple[TensorSpec, ...], limits: Limits, read: Callable[[dict[str, Any]], _R | Failed]
) -> _R | Failed:
    failed = _ended_badly(ending, tensors, limits)
    if failed is not None or ending.reply is None:
        return failed or _failed(Verdict.COMPILE_CRASH, "the build gave no answer")
    try:
        return read(ending.reply)
    except ValueError as error:
        return _failed(Verdict.COMPILE_CRASH, f"the build's answer is malformed: {error}")


def read_assembly(ending: Ending, count: int, limits: Limits) -> list[bytes] | Failed:
    """The ``count`` cubins that a clean process assembled from PTX, or a failure."""
    failed = _ended_badly(ending, (), limits)
    if failed is not None or ending.reply is None:
        reason = failed.reason if failed else "no answer"
        return _failed(failed.verdict if failed else Verdict.COMPILE_CRASH, f"assembling its PTX again: {reason}")
    try:
        return read_cubins(ending.reply, ending.parts, count)
    except ValueError as error:
        return _failed(Verdict.COMPILE_CRASH, f"its PTX does not assemble by itself: {error}")


def _ended_badly(ending: Ending, tensors: tuple[TensorSpec, ...], limits: Limits) -> Failed | None:
    if ending.stopped.startswith("time"):
        return _failed(Verdict.COMPILE_TIMEOUT, f"compiling took too long: {ending.stopped}")
    if ending.malformed:
        return _failed(Verdict.COMPILE_CRASH, f"the build's answer is malformed: {ending.malformed}")
    if ending.stopped:
        return _failed(Verdict.COMPILE_LIMIT, f"the build went over a limit: {ending.stopped}")
    if ending.touched is not None:
        index, offset = ending.touched
        name = str(tensors[index]) if 0 <= index < len(tensors) else f"workspace tensor {index - len(tensors)}"
        return _failed(
            Verdict.HOST_READS_DATA,
            f"launch() touched the contents of {name} (byte {offset}) on the host; it may use shapes, strides and "
            "addresses, never data: move this into a kernel",
        )
    by_signal = _signalled(ending, limits)
    if by_signal is not None:
        return by_signal
    if ending.reply is None:
        status = ending.wait_status
        how = "without saying how" if status is None else f"with exit status {os.waitstatus_to_exitcode(status)}"
        said = _last_line(ending.output)
        return _failed(
            Verdict.COMPILE_CRASH,
            f"the build's process ended {how} in the step {ending.phase!r} and gave no answer{said}",
        )
    return None


def _signalled(ending: Ending, limits: Limits) -> Failed | None:
    if ending.wait_status is None or not os.WIFSIGNALED(ending.wait_status):
        return None
    number = os.WTERMSIG(ending.wait_status)
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    step = f"in the step {ending.phase!r}"
    if number == signal.SIGSYS:
        return _failed(Verdict.COMPILE_LIMIT, f"processes: the build tried to start another process {step}")
    if number == signal.SIGKILL:
        return _failed(Verdict.COMPILE_LIMIT, f"the system killed the build {step}, most likely for its memory")
    if number == signal.SIGXCPU:
        return _failed(Verdict.COMPILE_TIMEOUT, f"compiling used over {limits.cpu_seconds} s of CPU {step} ({name})")
    if number == signal.SIGXFSZ:
        return _failed(Verdict.COMPILE_LIMIT, f"file size: wrote a file over {limits.file_bytes >> 20} MiB {step}")
    if number == signal.SIGABRT and any(text in ending.output for text in _OUT_OF_MEMORY):
        return _failed(Verdict.COMPILE_LIMIT, f"memory: over {limits.memory_bytes >> 20} MiB {step}")
    return _failed(Verdict.COMPILE_CRASH, f"the build's process died of {name} {step}{_last_line(ending.output)}")


def _last_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return f": {lines[-1][:200]}" if lines else ""


def _failed(verdict: Verdict, reason: str) -> Failed:
    return Failed(verdict, reason, ())
