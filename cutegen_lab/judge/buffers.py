"""Host memory for one execution: inputs that must not change, outputs and workspace that start poisoned."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import torch

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.problems.dtypes import TORCH

POISONS = (0xFF, 0x7B)  # bytes: 0xFF… is NaN in every floating-point type; 0x7B… is a large finite number in most


class Buffers:
    """A workload's tensors in the plan's order. ``poison`` fills outputs and workspace byte by byte."""

    def __init__(self, workload: Workload, build: Build, inputs: Sequence[torch.Tensor], poison: int) -> None:
        self.tensors: tuple[TensorSpec, ...] = workload.tensors + build.plan.workspace
        self.poison = poison
        written = [_poisoned(spec, poison) for spec in self.tensors[len(inputs) :]]
        self._inputs = [t.contiguous() for t in inputs]
        self.outputs = written[: len(workload.outputs)]
        self._all = [*self._inputs, *written]
        self._digest = self._hash_inputs()

    @property
    def views(self) -> list[memoryview]:
        """Writable bytes of every tensor."""
        return [memoryview(_bytes(t).numpy()) for t in self._all]

    def modified_input(self) -> str | None:
        """Name of the first input whose bytes changed."""
        for spec, before, after in zip(self.tensors, self._digest, self._hash_inputs(), strict=False):
            if before != after:
                return spec.name
        return None

    def unwritten(self, index: int) -> torch.Tensor:
        """Which elements of output ``index`` still hold the poison (flat booleans)."""
        output = self.outputs[index]
        raw = _bytes(output).reshape(output.numel(), output.element_size())
        return (raw == self.poison).all(dim=1)

    def _hash_inputs(self) -> list[bytes]:
        return [hashlib.blake2b(memoryview(_bytes(t).numpy()), digest_size=16).digest() for t in self._inputs]


def _poisoned(spec: TensorSpec, poison: int) -> torch.Tensor:
    raw = torch.full((spec.nbytes,), poison, dtype=torch.uint8)
    return raw.view(TORCH[spec.dtype]).reshape(spec.shape)


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1).view(torch.uint8)
