"""Formulas of operators that take several steps, each of which rounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch


def _var_mean(
    x: torch.Tensor, dim: Sequence[int] | bool | None = None, unbiased: bool = True, keepdim: bool = False, *,
    correction: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """``aten.var_mean`` for the arguments of any overload: a bool in place of ``dim`` is ``unbiased``."""
    if isinstance(dim, bool):
        unbiased = dim
    dims = list(range(x.dim())) if isinstance(dim, bool) or not dim else list(dim)
    mean = x.mean(dims, keepdim=True)
    count = x.numel() / max(mean.numel(), 1) - (float(unbiased) if correction is None else correction)
    centred = x - mean
    return (centred * centred).sum(dims, keepdim=keepdim) / max(count, 0), x.mean(dims, keepdim=keepdim)


def _std_mean(*args: Any, **kwargs: Any) -> tuple[torch.Tensor, torch.Tensor]:
    variance, mean = _var_mean(*args, **kwargs)
    return variance.sqrt(), mean


def _vector_norm(
    x: torch.Tensor, order: float = 2, dim: Sequence[int] | int | None = None, keepdim: bool = False, *,
    dtype: torch.dtype | None = None,
) -> torch.Tensor:  # fmt: skip
    """``aten.linalg_vector_norm``. PyTorch's norm of a single number is its magnitude; this formula squares it."""
    x = (x if dtype is None else x.to(dtype)).abs()
    dims = list(range(x.dim())) if dim is None else dim
    if math.isinf(order):
        return x.amax(dims, keepdim) if order > 0 else x.amin(dims, keepdim)
    if order == 0:
        return (x != 0).sum(dims, keepdim).to(x.dtype)
    if order == 2:
        return (x * x).sum(dims, keepdim).sqrt()
    return (x**order).sum(dims, keepdim) ** (1 / order)


DECOMPOSITIONS: Mapping[str, Callable[..., Any]] = {
    "linalg_vector_norm": _vector_norm,
    "var_mean": _var_mean,
    "std_mean": _std_mean,
    "var": lambda *args, **kwargs: _var_mean(*args, **kwargs)[0],
    "std": lambda *args, **kwargs: _var_mean(*args, **kwargs)[0].sqrt(),
}
