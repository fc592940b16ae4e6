"""PyTorch's own results with every intermediate result rounded once more, and sums added term after term."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map
from torch.utils.weak import WeakTensorKeyDictionary

from cutegen_lab.core.dtypes import DType
from cutegen_lab.judge.rounding.decompositions import DECOMPOSITIONS
from cutegen_lab.judge.rounding.jumps import Jump, jump_of
from cutegen_lab.judge.rounding.noise import UNIT_ROUNDOFF, SeededNoise
from cutegen_lab.judge.rounding.operators import CHOOSING, aliases
from cutegen_lab.judge.rounding.partial_sums import PARTIAL_SUM_SQUARES

_PRODUCTS = {"mm": 0, "bmm": 0, "addmm": 1, "baddbmm": 1}  # index of the first factor among the arguments
_FLOAT8_TRUNCATION = (
    2.0**-13
)  # last bit that tensor cores keep of a product of 8-bit floats, relative to the largest product
_TERMS_PER_STEP = 32  # products that tensor cores add at a time


class Rerounded(TorchDispatchMode):
    """Rounds every rounded result once more, at random, before it is used: as by a kernel that rounds intermediate
    results of the same types differently.

    Results that no operator uses are unchanged, except that sums are added one term after another where PyTorch adds in
    blocks: every partial sum is then rounded, and with sorted terms partial sums are far larger than the result.
    """

    def __init__(self, seed: int, of_8_bits: bool = False, overflows: bool = False) -> None:
        """``of_8_bits``: products are of 8-bit floats. ``overflows``: sums whose partial sums may be beyond the
        accumulator's range become infinite; without it they are unchanged."""
        super().__init__()
        self.jumps: list[Jump] = []  # jumps of the run, in order
        self._draw, self._of_8_bits, self._overflows = SeededNoise(seed), of_8_bits, overflows
        self._made: WeakTensorKeyDictionary[torch.Tensor | None] = WeakTensorKeyDictionary()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = func.overloadpacket.__name__
        if func._schema.is_mutable:
            walk = PARTIAL_SUM_SQUARES.get(name.removesuffix("_")) if name.endswith("_add_") else None
            squares = walk(*args, **(kwargs or {})) if walk else None
            result = func(*args, **(kwargs or {}))
            return result if squares is None else result.copy_(self._walked(result, squares))
        args, kwargs = tree_map(self._used, args), tree_map(self._used, kwargs or {})
        if (
            name in DECOMPOSITIONS
        ):  # PyTorch on a CPU computes the squares in double; in float32 the square of 1e-20 is 0
            with self:
                return DECOMPOSITIONS[name](*args, **kwargs)
        result = func(*args, **kwargs)
        if (jump := jump_of(name, args, result)) is not None:
            self.jumps.append(jump)
        if name in PARTIAL_SUM_SQUARES and isinstance(result, torch.Tensor) and result.is_floating_point():
            if (squares := PARTIAL_SUM_SQUARES[name](*args, **kwargs)) is not None:
                result = self._walked(result, squares)
            if self._of_8_bits and name in _PRODUCTS:
                result = self._aligned(result, *args[_PRODUCTS[name] :][:2])
        narrowed = name == "_to_copy" and args[0] in self._made and result.dtype.itemsize < args[0].dtype.itemsize
        if narrowed or (name not in CHOOSING and not aliases(func)):
            tree_map(self._make, result)
        return result

    def _walked(self, result: torch.Tensor, squares: torch.Tensor) -> torch.Tensor:
        """Adds the rounding of each partial sum: up to half an epsilon of float32 (or float64), accumulating as a
        random walk. An infinite sum stays as it is."""
        accumulator = torch.float64 if result.dtype is torch.float64 else torch.float32
        size = squares.sqrt().reshape(result.shape)
        unit = UNIT_ROUNDOFF[DType.F64 if accumulator is torch.float64 else DType.F32]
        sign = self._draw.uniform(result).mul_(2).sub_(1)
        walked = _moved(result, sign * size * unit)
        if not self._overflows:
            return walked
        overflow = walked.isfinite() & (size > torch.finfo(accumulator).max)
        return torch.where(overflow, math.inf * sign.sign(), walked).to(result.dtype)

    def _aligned(self, result: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Adds the truncation of tensor cores, which drop bits 13 below the largest of 32 products of 8-bit floats: an
        element is off by up to the sum over all of them (bounded by their root sum of squares)."""
        largest = (a.double().square() @ b.double().square()).sqrt()
        noise = self._draw.uniform(result).mul_(2).sub_(1).mul_(largest.reshape(result.shape))
        return _moved(result, noise.mul_(_FLOAT8_TRUNCATION * math.sqrt(_TERMS_PER_STEP)))

    def _make(self, value: Any) -> None:
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            self._made[value] = None

    def _used(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value not in self._made:
            return value
        if (again := self._made[value]) is None:
            unit = torch.finfo(value.dtype).eps / 2
            noise = self._draw.uniform(value).mul_(2 * unit).add_(1 - unit)
            again = self._made[value] = noise.mul_(value).to(value.dtype)
        return again


def _moved(result: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
    """``result`` plus ``noise`` where ``result`` is finite: the noise of infinite terms is infinite."""
    return torch.where(result.isfinite(), (result.double() + noise).to(result.dtype), result)
