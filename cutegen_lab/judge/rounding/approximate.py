"""Errors that correct kernels make in small results: approximate instructions, and formulas that add a larger term.

Example: sigmoid as ``0.5 · tanh(x / 2) + 0.5`` is off by half an epsilon of 1, however small the result is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from cutegen_lab.core.dtypes import DType
from cutegen_lab.judge.rounding.noise import UNIT_ROUNDOFF
from cutegen_lab.judge.rounding.operators import ADDING
from cutegen_lab.judge.rounding.perturbed import Perturbed

_OF_ONE = 2.0**-22  # absolute error of lg2.approx.f32, and of erf by five terms (Abramowitz and Stegun, 7.1.26)
# Errors of tanh in fp32, and of tanh.approx.f32, which 16-bit results may use (PTX ISA).
_TANH = 2.0**-23, 2.0**-11
_SINE = 2.0**-20  # error of sin.approx.f32 (PTX ISA) for an argument of 1

# Bound of an operator's error from its result, tanh's error and its arguments.
_LOSSES: Mapping[str, Callable[..., torch.Tensor | float]] = {
    "cos": lambda y, tanh, x: x.abs().clamp(min=1) * _SINE,
    "elu": lambda y, tanh, x, alpha=1.0, scale=1.0, *_: abs(alpha * scale) * _OF_ONE,
    "erf": lambda y, tanh, x: _OF_ONE,
    "expm1": lambda y, tanh, x: _OF_ONE,
    "hardsigmoid": lambda y, tanh, x: _OF_ONE,
    "hardswish": lambda y, tanh, x: x.abs() * _OF_ONE,
    "log": lambda y, tanh, x: _OF_ONE,
    "log10": lambda y, tanh, x: _OF_ONE,
    "log1p": lambda y, tanh, x: _OF_ONE,
    "log2": lambda y, tanh, x: _OF_ONE,
    "mish": lambda y, tanh, x: x.abs() * _OF_ONE + y.abs() * tanh,
    "sigmoid": lambda y, tanh, x: tanh / 2,
    "sin": lambda y, tanh, x: x.abs().clamp(min=1) * _SINE,
    "softplus": lambda y, tanh, x, beta=1.0, *_: _OF_ONE / abs(beta),
    "tanh": lambda y, tanh, x: y.abs() * tanh + _TANH[0],
}
_POWERS, _QUOTIENTS = {"exp", "exp2"}, {"div", "reciprocal"}


class Approximate(Perturbed):
    """Also adds ± the error bound of correct formulas to every operator's result."""

    def __init__(self, seed: int, inputs: Sequence[torch.Tensor], of_16_bits: bool, sum_unit: float) -> None:
        """``of_16_bits``: kernels may use tanh.approx.f32. ``sum_unit``: unit roundoff of the reference's sums, whose
        terms a kernel may add in another order."""
        super().__init__(UNIT_ROUNDOFF[DType.F32], seed, inputs)
        self._tanh, self._sum_unit, self._inside = _TANH[of_16_bits], sum_unit, 0
        self._powers: WeakTensorKeyDictionary[None] = WeakTensorKeyDictionary()
        self._sums: WeakTensorKeyDictionary[None] = WeakTensorKeyDictionary()  # sums of exp or exp2 and a number

    def _decomposed(self, parts: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        self._inside += 1
        try:
            return super()._decomposed(parts, args, kwargs)
        finally:
            self._inside -= 1

    def _rounded(self, name: str, args: Sequence[Any], result: Any) -> Any:
        result = super()._rounded(name, args, result)
        if not isinstance(result, torch.Tensor) or result.dtype is not torch.float64:
            return result
        bound: torch.Tensor | float | None = None
        if name in _LOSSES:
            bound = _LOSSES[name](result, self._tanh, *args)
        elif name in _QUOTIENTS and args[-1] in self._sums:  # a sigmoid written as 1 / (1 + exp(-x))
            bound = (args[0].abs().clamp(min=1) if name == "div" else 1.0) * (self._tanh / 2)
        elif name in ADDING and not self._inside:
            bound = self._sum_unit * (torch.as_tensor(args[0]).abs() + torch.as_tensor(args[1]).abs())
        if bound is not None:
            result = result + (self._draw.uniform(result) - 0.5).sign_() * bound
        if name in _POWERS:
            self._powers[result] = None
        elif name in ADDING and any(isinstance(x, torch.Tensor) and x in self._powers for x in args):
            self._sums[result] = None
        return result
