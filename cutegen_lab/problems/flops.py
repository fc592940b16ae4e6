"""Counts the floating-point operations of a reference's matrix products, convolutions and attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.problems.executed import executed


@dataclass(frozen=True)
class Work:
    """What a reference computes."""

    flops: int
    """Operations of its matrix products, convolutions and attention."""
    fp32_convolutions: bool
    """Whether there are convolutions of fp32 tensors."""
    images: bool
    """Whether there are convolutions of 4-d tensors."""
    reads_parts: bool
    """Whether it may read less than all of an input."""


def counted(
    run: Callable[[], Sequence[torch.Tensor]], inputs: Sequence[torch.Tensor], specs: Sequence[TensorSpec]
) -> Work:
    """Work of ``run()``, which computes outputs from the fake ``inputs`` (of ``specs``) on the CPU."""
    seen = _Convolutions()
    with seen:
        found = executed(run, inputs, specs)
    parts = any(nbytes < spec.nbytes for nbytes, spec in zip(found.input_bytes, specs, strict=True))
    return Work(found.flops, torch.float32 in seen.dtypes, 4 in seen.dims, parts)


class _Convolutions(TorchDispatchMode):
    """Records dtype and rank of convolved tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.dtypes: set[torch.dtype] = set()
        self.dims: set[int] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is torch.ops.aten.convolution.default:
            self.dtypes.add(args[0].dtype)
            self.dims.add(args[0].dim())
        return func(*args, **(kwargs or {}))
