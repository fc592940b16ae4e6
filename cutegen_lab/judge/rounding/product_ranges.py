"""Ranges of partial products, which may overflow or vanish although the whole product does not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

Factor = tuple[torch.Tensor | float, int]  # (factor, exponent): exponent 1, or −1 for a divisor
_FAR_BELOW = 4096.0


def _running_ranges(x: torch.Tensor, dim: int, **_: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """For each element of ``x.cumprod(dim)``: base-2 logarithms of the largest and the smallest product of consecutive
    factors up to it, since scans multiply blocks first."""
    after = _powers(x).cumsum(dim)
    before = after - _powers(x)
    largest = (after - before.cummin(dim).values).cummax(dim).values
    smallest = (after - before.cummax(dim).values).cummin(dim).values
    return largest, smallest


def _ranges(
    x: torch.Tensor, dim: int | None = None, keepdim: bool = False, **_: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """For each element of ``x.prod(dim)``: base-2 logarithms of the largest and the smallest product of any subset of
    its factors, since each thread multiplies some of them."""
    dims, powers = list(range(x.dim())) if dim is None else [dim], _powers(x)
    return powers.clamp_min(0).sum(dims, keepdim), powers.clamp_max(0).sum(dims, keepdim)


def factor_ranges(factors: Sequence[Factor]) -> tuple[torch.Tensor, torch.Tensor]:
    """For each element: base-2 logarithms of the largest and the smallest product of any subset of ``factors``, which
    are tensors, numbers or divisors. Factors that are zero or infinite are left out: they decide the product, whatever
    the others are."""
    powers = [sign * _powers(torch.as_tensor(of), 0.0) for of, sign in factors]
    zeros = torch.zeros((), dtype=torch.float64)
    return sum((p.clamp_min(0) for p in powers), zeros), sum((p.clamp_max(0) for p in powers), zeros)


def _powers(x: torch.Tensor, of_zero: float = -_FAR_BELOW) -> torch.Tensor:
    """Base-2 logarithms of the magnitudes of ``x``: ``of_zero`` for zeros, 0 for non-finite values."""
    return x.double().abs().log2().nan_to_num(0.0, 0.0, of_zero)


PRODUCT_RANGES: Mapping[str, Callable[..., tuple[torch.Tensor, torch.Tensor]]] = {
    "cumprod": _running_ranges,
    "prod": _ranges,
}
