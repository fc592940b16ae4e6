"""8-bit floating-point results: most of their error is their own rounding, so a kernel is held to what it rounded."""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import TensorSpec, Tolerances

_CHUNK = 1 << 18
_BITS = {torch.float8_e4m3fn: 3, torch.float8_e5m2: 2}  # of mantissa


def before_rounding(spec: TensorSpec, limits: Tolerances) -> tuple[TensorSpec, Tolerances]:
    """What is held to: a kernel may be as far off as a bf16 result before it rounds to 8 bits. That moves the result of
    so small a share of elements that the whole is held to less."""
    share = math.sqrt(DType.BF16.eps / spec.dtype.eps)
    return replace(spec, dtype=DType.BF16), replace(limits, floor_eps=limits.floor_eps * share)


def unrounded(result: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """Of all numbers that round to ``result``, the nearest to ``reference`` (both flat; float64). Where it differs from
    the reference, the kernel was wrong before it rounded, by at least as much.

    Beyond the largest number PyTorch rounds to infinity (NaN in e4m3fn, which has none), the hardware to the largest:
    either is right.
    """
    parts = zip(result.split(_CHUNK), reference.split(_CHUNK), strict=True)
    return torch.cat([_part(*pair) for pair in parts]) if result.numel() else reference.clone()


def _part(result: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    info, bits = torch.finfo(result.dtype), _BITS[result.dtype]
    wide = result.double()
    _, exponent = torch.frexp(reference.clamp(-info.max, info.max).nan_to_num(0.0))
    least = torch.frexp(torch.tensor(info.smallest_normal)).exponent
    half = torch.ldexp(torch.ones_like(reference), exponent.clamp(min=int(least)) - bits - 2)  # a last place
    wrong = wide - reference
    near = wide - wrong.sign() * torch.minimum(wrong.abs(), half)
    near = torch.where(wide.isfinite() & reference.isfinite(), near, wide)
    beyond = reference.abs() > info.max + half
    overflow = wide.isnan() if result.dtype is torch.float8_e4m3fn else wide == reference.sign() * torch.inf
    right = beyond & (overflow | (wide == reference.sign() * info.max))
    return torch.where(right, reference, near)
