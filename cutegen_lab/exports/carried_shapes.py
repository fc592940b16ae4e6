"""Which inputs an exported kernel serves, and the outputs that it writes.

Exported files carry this text; it may import nothing of cutegen-lab.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


class Served:
    """Sets of shapes, each a dict with ``describes``, ``inputs``, ``outputs`` and ``workspace``."""

    def __init__(self, workloads: Sequence[dict[str, Any]]) -> None:
        self.workloads = workloads

    def find(self, tensors: Sequence[torch.Tensor]) -> int:
        """Number of the set of shapes that these inputs have. Raises ValueError if there is none. Symbolic sizes, as in
        torch.compile and torch.export, are fixed to those of the set."""
        for number, workload in enumerate(self.workloads):
            specs = workload["inputs"]
            if len(specs) == len(tensors) and all(map(_fits, tensors, specs)):
                return number
        given = ", ".join(f"{t.dtype}{_numbers(t.shape)} with strides {_numbers(t.stride())}" for t in tensors)
        raise ValueError(f"no kernel for ({given}); there are: {'; '.join(w['describes'] for w in self.workloads)}")

    def outputs(self, number: int, like: torch.Tensor) -> list[torch.Tensor]:
        """Outputs, not yet written."""
        return [_empty(spec, like) for spec in self.workloads[number]["outputs"]]

    def workspace(self, number: int, like: torch.Tensor) -> list[torch.Tensor]:
        """Scratch tensors that the kernel also needs."""
        return [_empty(spec, like) for spec in self.workloads[number]["workspace"]]


def _empty(spec: dict[str, Any], like: torch.Tensor) -> torch.Tensor:
    return like.new_empty(spec["shape"], dtype=getattr(torch, spec["dtype"]))


def _numbers(sizes: Sequence[int]) -> list[int]:
    return [int(size) for size in sizes]  # of a symbolic size, its example value


def _fits(tensor: torch.Tensor, spec: dict[str, Any]) -> bool:
    if tensor.dtype != getattr(torch, spec["dtype"]) or tensor.dim() != len(spec["shape"]):
        return False
    if any(size != wanted for size, wanted in zip(tensor.shape, spec["shape"], strict=True)):
        return False
    walked = zip(tensor.stride(), spec["strides"], spec["shape"], strict=True)
    return all(step == wanted for step, wanted, size in walked if size > 1)
