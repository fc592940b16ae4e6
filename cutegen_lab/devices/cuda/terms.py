"""What parent and worker agree on: how tensors lie in the shared memory file, and how specs and problems are told."""

from __future__ import annotations

from typing import Any

from cutegen_lab.core.problem import Problem


def aligned(size: int) -> int:
    """Bytes one tensor takes: each starts on its own 256-byte boundary."""
    return -(-size // 256) * 256


def tell_problem(problem: Problem) -> dict[str, Any]:
    """As much of a problem as its reference needs."""
    return {key: getattr(problem, key) for key in ("name", "source", "kind", "inputs_text", "tf32")}


def hear_problem(told: dict[str, Any]) -> Problem:
    return Problem(workloads=(), **told)
