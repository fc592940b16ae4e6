"""Structured draws of magnitudes: graded, far apart, far from zero, over all exponents."""

from __future__ import annotations

import math

import torch

from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.judge.draws.float_tensors import (
    SIZES,
    Values,
    exponent_reach,
    finfo,
    fitted_decades,
    floats,
    mostly_last,
    one_of_the_largest,
    partners,
    random_below,
)
from cutegen_lab.judge.draws.values import between, moderate_normal, rand

_FAREST = 115.0  # largest power of two: a thousand such numbers can be added in fp32
_WIDEST = 123.0  # largest power of two whose product with a small number is finite


def _scaled_along(tensor: torch.Tensor, dim: int, scale: torch.Tensor) -> torch.Tensor:
    """``tensor`` times ``scale`` along ``dim``."""
    return tensor * scale.view([-1 if d == dim else 1 for d in range(tensor.dim())])


def _ramp(size: int, reach: float, g: torch.Generator) -> torch.Tensor:
    """``size`` exponents from -reach to reach: ascending, descending or shuffled."""
    ramp = torch.linspace(-reach, reach, size)
    kind = random_below(3, g)
    return (ramp, ramp.flip(0), ramp[torch.randperm(size, generator=g)])[kind]


def graded(workload: Workload, g: torch.Generator) -> Values:
    """Magnitudes from 1e-8 to 1e8 along one dimension, and reversed in the dimension that it is summed with, so that
    all products have the same size."""
    values = {at: moderate_normal(spec.shape, g) for at, spec in floats(workload)}
    pairs = partners(workload)
    for (i, m), (j, n) in pairs:
        reach = min(exponent_reach(workload.inputs[at].dtype, 26.0) for at in (i, j))
        ramp = _ramp(workload.inputs[i].shape[m], reach, g)
        values[i], values[j] = _scaled_along(values[i], m, ramp.exp2()), _scaled_along(values[j], n, (-ramp).exp2())
    if not pairs:
        for at, spec in floats(workload):
            if spec.shape:
                dim = random_below(len(spec.shape), g)
                values[at] = _scaled_along(
                    values[at], dim, _ramp(spec.shape[dim], exponent_reach(spec.dtype, 26.0), g).exp2()
                )
    return values


def log_uniform(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """Magnitudes over many powers of two, each equally likely; the sum of their squares stays far within fp32's
    range."""
    reach = exponent_reach(spec.dtype, between(20, 45, g))
    return values.sign() * ((2 * rand(spec.shape, g) - 1) * reach).exp2()


def heavy(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """One element, or one slice across a dimension, is far larger than the others."""
    if not spec.shape:
        return values
    dim = random_below(len(spec.shape), g)
    slab = values.select(dim, random_below(spec.shape[dim], g))
    slab = slab.view(-1)[:1] if slab.is_contiguous() and between(0, 1, g) < 0.5 else slab
    slab *= 2 ** exponent_reach(spec.dtype, 20.0)
    return values


def loud_end(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """The last eighth along a dimension is far larger than the rest."""
    if spec.shape:
        dim = random_below(len(spec.shape), g)
        size = spec.shape[dim]
        values.narrow(dim, size - max(size // 8, 1), max(size // 8, 1)).mul_(2 ** exponent_reach(spec.dtype, 12.0))
    return values


def of_size(workload: Workload, decades: float, g: torch.Generator) -> Values:
    """Small values in the largest input, and in the others half of the time. Values near an epsilon show where it is
    added; values below it show whether it is added."""
    values = {at: moderate_normal(spec.shape, g) for at, spec in floats(workload)}
    largest = max(floats(workload), key=lambda pair: pair[1].numel)[0]
    for at, spec in floats(workload):
        if at == largest or between(0, 1, g) < 0.5:
            values[at] *= 10 ** fitted_decades(spec.dtype, decades)
    return values


def quiet_rows(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """Some rows are far smaller than the others, each of another size."""
    if len(spec.shape) < 2:
        return values
    where = (*spec.shape[:-1], 1)
    decades = torch.where(rand(where, g) < 0.5, rand(where, g) * math.log10(SIZES[0]), 0.0)
    return values * 10 ** fitted_decades(spec.dtype, decades)


def one_sided(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """Rows of one sign, mostly far from zero. A maximum that starts at a number instead of −∞, or a mask that inserts a
    number, then exceeds the whole row."""
    where = (*spec.shape[:-1], 1) if spec.shape else ()
    reach = exponent_reach(spec.dtype, between(30, 45, g))
    sign = torch.where(rand(where, g) < 0.5, -1.0, 1.0)
    return (values.abs() + 1) * sign * (rand(where, g) * reach).exp2()


def far_from_zero(workload: Workload, g: torch.Generator) -> Values:
    """Rows of one sign in one of the largest inputs, at every power of two whose sums stay finite: a maximum that
    starts at -1e20 is above some of them."""
    values = {at: moderate_normal(spec.shape, g) for at, spec in floats(workload)}
    at, spec = one_of_the_largest(workload, g)
    dim = mostly_last(spec, 0.65, g)
    shape = spec.shape and values[at].transpose(dim, -1).shape
    count = math.prod(shape[:-1])
    most = min(math.log2(finfo(spec.dtype).max) - 2, _FAREST)
    order = torch.randperm(count, generator=g)
    part = 1 - (order // 2 + rand((count,), g) / 5) / ((count + 1) // 2)  # all sizes occur with either sign
    sign = torch.where((order + random_below(2, g)) % 2 == 0, -1.0, 1.0)
    scale = (sign * (most * part.sqrt()).exp2()).view(*shape[:-1], 1) if spec.shape else 1.0
    values[at] = ((values[at].reshape(shape).abs().clamp(max=3.0) + 1) * scale).transpose(dim, -1).contiguous()
    return values


def all_exponents(workload: Workload, g: torch.Generator) -> Values:
    """Magnitudes of one of the largest inputs over all exponents, each equally likely."""
    values = {at: moderate_normal(spec.shape, g) for at, spec in floats(workload)}
    at, spec = one_of_the_largest(workload, g)
    reach = min(math.log2(finfo(spec.dtype).max) - 2, _WIDEST)
    values[at] = values[at].sign() * ((2 * rand(spec.shape, g) - 1) * reach).exp2()
    return values
