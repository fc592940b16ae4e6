"""Drawing inputs: fresh values every time, from distributions that expose different mistakes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.problems.dtypes import TORCH

Draw = Callable[[tuple[int, ...], torch.Generator], torch.Tensor]
LARGE = 1e4

DISTRIBUTIONS: Mapping[str, Draw] = {
    "normal": lambda shape, g: torch.randn(shape, generator=g),
    "uniform": lambda shape, g: torch.rand(shape, generator=g),
    "offset": lambda shape, g: 100 + torch.randn(shape, generator=g),  # variance by cancellation shows here
    "large": lambda shape, g: LARGE * torch.randn(shape, generator=g),  # overflow without max-subtraction
    "zeros": lambda shape, g: torch.zeros(shape),
}
_INTEGER_RANGE = {DType.I64: 1000, DType.I32: 1000, DType.I16: 1000, DType.I8: 100, DType.U8: 200, DType.BOOL: 2}
_TILE = 1 << 22


def draw(
    workload: Workload, distribution: str, seed: int, initial: Mapping[str, torch.Tensor] | None = None
) -> list[torch.Tensor]:
    """Contiguous CPU tensors for every input of ``workload``, a function of (distribution, seed) alone.

    ``initial`` are a Model's parameters and buffers: they stay near their values (a variance stays positive) but never
    at them, or a kernel could leave out a weight of one and a bias of zero.
    """
    generator = torch.Generator().manual_seed(seed)
    tensors = []
    for spec in workload.inputs:
        if initial and spec.name in initial and spec.dtype.is_float:
            value = initial[spec.name]
            noise = torch.rand((2, *spec.shape), generator=generator)
            tensors.append((value * (1 + 0.1 * noise[0]) + 0.1 * noise[1]).to(TORCH[spec.dtype]))
        else:
            tensors.append(_draw_one(spec, distribution, generator))
    return tensors


def nudged(inputs: Sequence[torch.Tensor], seed: int) -> list[torch.Tensor]:
    """Float64 copies of floating-point inputs, each element moved by up to half a unit in the last place of the
    precision kernels compute in: float32, or float64 where the input is."""
    generator = torch.Generator().manual_seed(seed)
    moved = []
    for tensor in inputs:
        if tensor.is_floating_point():
            noise = torch.rand(tensor.shape, generator=generator, dtype=torch.float64) * 2 - 1
            moved.append(tensor.double() * (1 + noise * (2.0**-53 if tensor.dtype is torch.float64 else 2.0**-24)))
        else:
            moved.append(tensor)
    return moved


def fill(workload: Workload, seed: int) -> list[torch.Tensor]:
    """Normal values for timing: one random tile repeated, since only their kind matters and generating is slow."""
    generator = torch.Generator().manual_seed(seed)
    tensors = []
    for spec in workload.inputs:
        tile = _draw_one(TensorSpec(spec.name, spec.dtype, (min(spec.numel, _TILE),)), "normal", generator)
        repeats = -(-spec.numel // max(tile.numel(), 1))
        tensors.append((tile if repeats == 1 else tile.repeat(repeats)[: spec.numel]).reshape(spec.shape))
    return tensors


def _draw_one(spec: TensorSpec, distribution: str, generator: torch.Generator) -> torch.Tensor:
    if spec.dtype.is_float:
        return DISTRIBUTIONS[distribution](spec.shape, generator).to(TORCH[spec.dtype])
    high = _INTEGER_RANGE[spec.dtype]
    low = -high if spec.dtype in (DType.I64, DType.I32, DType.I16, DType.I8) else 0
    return torch.randint(low, high, spec.shape, generator=generator).to(TORCH[spec.dtype])
