"""Unit roundoffs, and random numbers for rounding errors."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from cutegen_lab.core.dtypes import DType

UNIT_ROUNDOFF: Mapping[DType, float] = {
    DType.F64: 2.0**-53,
    DType.F32: 2.0**-24,
    DType.F16: 2.0**-11,
    DType.BF16: 2.0**-8,
}


class SeededNoise:
    """Random numbers from one seed, on the device of the tensor that they perturb."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._generators: dict[torch.device, torch.Generator] = {}

    def uniform(self, like: torch.Tensor) -> torch.Tensor:
        """Float64 over [0, 1) in the shape of ``like``."""
        if like.device not in self._generators:
            self._generators[like.device] = torch.Generator(like.device).manual_seed(self._seed)
        generator = self._generators[like.device]
        return torch.rand(like.shape, generator=generator, dtype=torch.float64, device=like.device)
