"""Protocol between parent and worker: layout of tensors in the shared memory file, and JSON form of builds and
problems."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.problem import Problem

GUARD_BYTES = 1024  # bytes of guard on each side of every tensor
GUARD_VALUE = 0xA5


def aligned(size: int) -> int:
    """Bytes that a tensor of ``size`` bytes takes: each starts at a multiple of 256."""
    return -(-size // 256) * 256


def guard_changed(index: int) -> str:
    """Message for a changed guard next to the plan's tensor ``index``."""
    return f"bytes next to tensor {index} were overwritten (a guard changed)"


def lean(build: Build) -> Build:
    """``build`` without parts that a run does not need (PTX, lines, notes)."""
    return replace(build, ptx="", lines=(), notes=())


def problem_to_request(problem: Problem) -> dict[str, Any]:
    """The fields of a problem that its reference needs, as JSON."""
    return {key: getattr(problem, key) for key in ("name", "source", "kind", "inputs_text", "tf32")}


def problem_from_request(fields: dict[str, Any]) -> Problem:
    """The problem of a request, without workloads."""
    return Problem(workloads=(), **fields)
