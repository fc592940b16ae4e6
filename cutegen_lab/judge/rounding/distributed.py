"""Products of differences computed as differences of products: ``x·s − m·s`` in place of ``(x − m)·s``.

Kernels fold a norm's affine step into one multiply-add: ``x·s + (b − m·s)``. Where x and m cancel, that loses a
rounding of ``x·s``, however exact all else is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from cutegen_lab.judge.rounding.operators import ADDING
from cutegen_lab.judge.rounding.perturbed import Perturbed


class Distributed(Perturbed):
    """Adds the rounding of both products to a product or quotient of a sum or difference, and to nothing else: all
    rounded at once (:class:`Perturbed`), a norm's variance grows by errors of x that a kernel need not make, and hides
    this one."""

    def __init__(self, unit: float, seed: int, inputs: Sequence[torch.Tensor]) -> None:
        self._sizes: WeakTensorKeyDictionary[torch.Tensor] = WeakTensorKeyDictionary()  # of both terms of a sum
        super().__init__(unit, seed, inputs)

    def _moved(self, value: Any) -> Any:
        return value

    def _rounded(self, name: str, args: Sequence[Any], result: Any) -> Any:
        if not isinstance(result, torch.Tensor) or result.dtype is not torch.float64 or len(args) < 2:
            return result
        if name in ADDING:
            self._sizes[result] = torch.as_tensor(args[0]).abs() + torch.as_tensor(args[1]).abs()
            return result
        if name not in ("mul", "div"):
            return result
        one, other = map(self._size, args[:2])
        if (one is None) == (other is None) or (name == "div" and one is None):
            return result  # of no difference, or of two, as a square
        if name == "div":
            size = one / abs(args[1])
        else:
            size = other * abs(args[0]) if one is None else one * abs(args[1])
        noise = self._draw.uniform(result).mul_(2 * self._unit).sub_(self._unit)
        return torch.where(size.isfinite(), result + noise * size, result)

    def _size(self, value: Any) -> torch.Tensor | None:
        return self._sizes.get(value) if isinstance(value, torch.Tensor) else None
