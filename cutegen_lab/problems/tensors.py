"""PyTorch tensors in the memory layout of a spec."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.problems.dtypes import TORCH


def laid_out(memory: torch.Tensor, spec: TensorSpec) -> torch.Tensor:
    """``memory`` (flat; bytes or elements, ``spec.storage_bytes`` bytes in all) as the tensor ``spec``; shares
    memory."""
    flat = memory if memory.dtype == TORCH[spec.dtype] else memory.view(TORCH[spec.dtype])
    return flat.as_strided(spec.shape, spec.stride) if spec.strides else flat.reshape(spec.shape)


def empty(spec: TensorSpec, device: str | None = None) -> torch.Tensor:
    """An uninitialised tensor (without memory on ``meta``)."""
    return torch.empty_strided(spec.shape, spec.stride, dtype=TORCH[spec.dtype], device=device)


def placed(values: torch.Tensor, spec: TensorSpec) -> torch.Tensor:
    """``values`` (of the spec's shape and dtype) in ``spec``'s layout; gaps are 0."""
    if not spec.strides:
        return values.contiguous()
    return laid_out(torch.zeros(spec.cosize, dtype=TORCH[spec.dtype]), spec).copy_(values)


def moved(tensor: torch.Tensor, spec: TensorSpec, device: str) -> torch.Tensor:
    """``tensor`` on ``device`` in the layout of ``spec``: a copy, or ``tensor`` itself if it is there already."""
    if tensor.device == torch.device(device):
        return tensor
    return laid_out(storage(tensor, spec).to(device), spec)


def from_bytes(data: memoryview, spec: TensorSpec) -> torch.Tensor:
    """``spec.storage_bytes`` bytes as the tensor ``spec``; shares memory."""
    return laid_out(torch.frombuffer(data, dtype=torch.uint8), spec) if data else empty(spec)


def to_bytes(tensors: Sequence[torch.Tensor], specs: Sequence[TensorSpec]) -> list[memoryview]:
    """The memory that each tensor on the CPU spans (:func:`storage`), as bytes; shares memory."""
    pairs = zip(tensors, specs, strict=True)
    return [memoryview(storage(tensor, spec).view(torch.uint8).numpy()) for tensor, spec in pairs]


def storage(tensor: torch.Tensor, spec: TensorSpec) -> torch.Tensor:
    """Elements of memory that ``tensor`` spans in ``spec``'s layout: flat, gaps included; shares memory."""
    return tensor.as_strided((spec.cosize,), (1,)) if spec.strides else tensor.reshape(-1)


def alike(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two results are equal, with NaN counted as 0 and infinities as the largest finite numbers."""
    wide = [t.float() if t.dtype.itemsize == 1 else t for t in (a, b)]  # 8-bit floats cannot be compared
    return bool(torch.equal(wide[0].nan_to_num(), wide[1].nan_to_num()))
