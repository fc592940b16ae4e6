"""Effect of rounding on a reference: run in float64 with every result perturbed at random, as a shorter mantissa would.

Monte Carlo arithmetic (D. S. Parker, 1997): where terms cancel, the last bits of inputs and intermediate results decide
much of the answer, and a limit that ignores this would reject honest kernels by luck.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.weak import WeakTensorKeyDictionary

from cutegen_lab.core.dtypes import DType
from cutegen_lab.judge.rounding.decompositions import DECOMPOSITIONS
from cutegen_lab.judge.rounding.noise import UNIT_ROUNDOFF, SeededNoise
from cutegen_lab.judge.rounding.operators import COMPARING, DECOMPOSED, EXACT, aliases
from cutegen_lab.judge.rounding.product_ranges import PRODUCT_RANGES, Factor, factor_ranges

_CHUNK = 1 << 24  # elements perturbed at a time
_MANY_FACTORS = 8  # a product of more factors counts as one: otherwise a loop would take quadratic time


class Perturbed(TorchDispatchMode):
    """Multiplies every rounded float64 result of an operator by 1 ± up to ``unit``, and flushes to 0 what float32 would
    hold as a subnormal, as many instructions do (PTX ISA, ``.ftz``).

    Values inside norms and similar operators are perturbed too, since kernels round them, and so are ``inputs`` and
    values chosen from them where an operator computes with them, since kernels scale or reorder them. Choices, copies
    and comparisons are exact: ``>=`` for ``>`` is an error. A product of three or more factors (or divisors) is NaN if
    a product of some of them overflows or vanishes although the whole does not: the order of multiplication is free.
    """

    def __init__(self, unit: float, seed: int, inputs: Sequence[torch.Tensor]) -> None:
        super().__init__()
        self._unit, self._draw = unit, SeededNoise(seed)
        self._info = torch.finfo(torch.float64 if unit == UNIT_ROUNDOFF[DType.F64] else torch.float32)
        self._least = self._info.tiny
        # Perturbed values of exact tensors.
        self._shaken: WeakTensorKeyDictionary[torch.Tensor] = WeakTensorKeyDictionary()
        self._factors: WeakTensorKeyDictionary[list[Factor]] = WeakTensorKeyDictionary()  # factors of each product
        for tensor in inputs:
            if tensor.dtype is torch.float64:
                self._shaken[tensor] = self._moved(tensor)

    def _moved(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.dtype is not torch.float64:
            return value
        noise = self._draw.uniform(value)
        found = noise.mul_(2 * self._unit).add_(1 - self._unit).mul_(value)
        for part in found.view(-1).split(_CHUNK):  # changed in place: an attention's scores may take gigabytes
            part.mul_(~(part.abs() < self._least))  # keeps the sign of zero
        return found

    def _decomposed(self, parts: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        with self:
            return parts(*args, **kwargs)

    def _rounded(self, name: str, args: Sequence[Any], result: Any) -> Any:
        """``result`` of operator ``name`` with the error that rounding it adds."""
        return tree_map(self._moved, result)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name, given = func.overloadpacket.__name__, (args, kwargs or {})
        parts = DECOMPOSITIONS.get(name) or (decomposition_table.get(func) if name in DECOMPOSED else None)
        if parts is not None:
            return self._decomposed(parts, args, kwargs or {})
        exact = name in EXACT or aliases(func)
        others, kwothers = tree_map(self._other, given)
        if not exact or (func._schema.is_mutable and args[0] not in self._shaken):
            result = func(*others, **kwothers)
            if name in PRODUCT_RANGES:
                return self._grouped(self._moved(result), *PRODUCT_RANGES[name](*others, **kwothers))
            result = result if exact else self._rounded(name, others, result)
            if name in ("mul", "div") and not kwothers and result.dtype is torch.float64:
                return self._multiplied(result, others[0], others[1], 1 if name == "mul" else -1)
            return result
        result = func(*args, **(kwargs or {}))
        pairs = zip(tree_leaves(given), tree_leaves((others, kwothers)), strict=True)
        if name not in COMPARING and any(one is not other for one, other in pairs):
            for chosen, other in zip(*map(tree_leaves, (result, func(*others, **kwothers))), strict=True):
                if isinstance(chosen, torch.Tensor) and chosen.dtype is torch.float64:
                    self._shaken[chosen] = other
        return result

    def _multiplied(
        self, result: torch.Tensor, one: torch.Tensor | float, other: torch.Tensor | float, sign: int
    ) -> torch.Tensor:
        factors = [*self._factors_of(one), *((of, power * sign) for of, power in self._factors_of(other))]
        grouped = result if len(factors) < 3 else self._grouped(result, *factor_ranges(factors))
        if len(factors) < _MANY_FACTORS:
            self._factors[grouped] = factors
        return grouped

    def _factors_of(self, value: torch.Tensor | float) -> list[Factor]:
        alone: list[Factor] = [(value, 1)]
        return self._factors.get(value, alone) if isinstance(value, torch.Tensor) else alone

    def _grouped(self, result: torch.Tensor, largest: torch.Tensor, smallest: torch.Tensor) -> torch.Tensor:
        vanishes = (smallest < math.log2(self._least)) & (result.abs() >= self._least)
        return result.masked_fill((largest > math.log2(self._info.max)) | vanishes, math.nan)

    def _other(self, value: Any) -> Any:
        return self._shaken.get(value, value) if isinstance(value, torch.Tensor) else value
