"""Draws at the limits of a float type: rows of infinities, and the largest and smallest numbers."""

from __future__ import annotations

import math

import torch

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.judge.draws.values import between, rand

_MANY_ROWS, _ROWS = 8, 4  # infinite rows are always drawn with 8 rows or more, mostly with 4 to 7
_PROBABILITY = 0.7


def with_infinite_rows(rows: torch.Tensor, g: torch.Generator) -> torch.Tensor:
    """``rows`` [count, length] with one row of −∞ alone and another of +∞ (a maximum that starts at the type's lowest
    finite number is too large for the first). With fewer than 4 rows, none is changed."""
    count = rows.shape[0]
    for value in (-math.inf, math.inf) if count >= _ROWS else ():
        if count >= _MANY_ROWS or between(0, 1, g) < _PROBABILITY:
            rows[int(torch.randint(count, (), generator=g))] = value
    return rows


def near_f16_limit(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """Rows of numbers of 0.3 to 0.9 of the largest fp16 number, of one sign or both: a sum of two may overflow. Values
    of other types are left as they are."""
    if spec.dtype is not DType.F16:
        return values
    where = (*spec.shape[:-1], 1) if spec.shape else ()
    sizes = torch.finfo(torch.float16).max * (0.3 + 0.6 * rand(spec.shape, g))
    one_sign = rand(where, g) < 0.5
    sign = torch.where(one_sign, rand(where, g) - 0.5, values)
    return torch.where(sign < 0, -sizes, sizes)


def at_type_limits(values: torch.Tensor, info: torch.finfo, g: torch.Generator) -> torch.Tensor:
    """``values`` with half of them replaced by the largest numbers of either sign and their neighbours, the smallest
    normal and subnormal ones, and zeros; in float64, which represents all of them."""
    least, step = info.smallest_normal, info.eps
    sizes = (info.max, info.max * (1 - step), info.max / 2, least, least * (1 - step), least * step, 0.0)
    ends = torch.tensor([sign * size for size in sizes for sign in (1.0, -1.0)], dtype=torch.float64)
    chosen = ends[torch.randint(len(ends), values.shape, generator=g)]
    return torch.where(rand(tuple(values.shape), g) < 0.5, chosen, values.double())
