"""What parent and worker agree on: how tensors lie in the shared memory file, and how specs and problems are told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.problem import Problem

GUARD_BYTES = 1024  # on each side of every tensor
GUARD_VALUE = 0xA5


def aligned(size: int) -> int:
    """Bytes one tensor takes: each starts on its own 256-byte boundary."""
    return -(-size // 256) * 256


def guard_changed(index: int) -> str:
    """What is said where a guard beside the plan's tensor ``index`` changed."""
    return f"bytes next to tensor {index} were overwritten (a guard changed)"


def lean(build: Build) -> Build:
    """What running it needs."""
    return replace(build, ptx="", lines=(), notes=())


def problem_to_request(problem: Problem) -> dict[str, Any]:
    """As much of a problem as its reference needs."""
    return {key: getattr(problem, key) for key in ("name", "source", "kind", "inputs_text", "tf32")}


def problem_from_request(told: dict[str, Any]) -> Problem:
    return Problem(workloads=(), **told)
