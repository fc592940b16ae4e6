"""Sums in another order, and products of differences computed as differences of products: ``x·s − m·s`` for
``(x − m)·s``.

Kernels fold a norm's affine step into one multiply-add: ``x·s + (b − m·s)``. Where x and m cancel, the rounding error
of ``x·s`` remains, even if everything else is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from cutegen_lab.judge.rounding.operators import ADDING
from cutegen_lab.judge.rounding.perturbed import Perturbed


class Regrouped(Perturbed):
    """Adds the rounding errors of the terms to a sum of sums and to a product or quotient of a sum, and no other
    errors: with every result rounded (:class:`Perturbed`), the error of a norm's variance would hide them."""

    def __init__(self, unit: float, seed: int, inputs: Sequence[torch.Tensor]) -> None:
        # Magnitudes of the terms of each sum.
        self._terms: WeakTensorKeyDictionary[torch.Tensor] = WeakTensorKeyDictionary()
        super().__init__(unit, seed, inputs)

    def _moved(self, value: Any) -> Any:
        return value

    def _rounded(self, name: str, args: Sequence[Any], result: Any) -> Any:
        if not isinstance(result, torch.Tensor) or result.dtype is not torch.float64 or len(args) < 2:
            return result
        one, other = (arg in self._terms if isinstance(arg, torch.Tensor) else False for arg in args[:2])
        if name in ADDING:
            size, regrouped = self._size(args[0]) + self._size(args[1]), one or other
        elif name == "mul" and one != other:  # a square is not a difference of two products
            size, regrouped = self._size(args[0]) * self._size(args[1]), True
        elif name == "div" and one and not other:
            size, regrouped = self._size(args[0]) / self._size(args[1]), True
        else:
            return result
        if regrouped:
            noise = self._draw.uniform(result).mul_(2 * self._unit).sub_(self._unit)
            result = torch.where(size.isfinite(), result + noise * size, result)
        self._terms[result] = size
        return result

    def _size(self, value: Any) -> torch.Tensor:
        terms = self._terms.get(value) if isinstance(value, torch.Tensor) else None
        return torch.as_tensor(value).abs() if terms is None else terms
