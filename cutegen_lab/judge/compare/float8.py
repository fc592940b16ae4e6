"""8-bit floating-point results: their own rounding dominates the error, so the value before rounding is judged."""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import TensorSpec, Tolerances

_CHUNK = 1 << 18
_BITS = {torch.float8_e4m3fn: 3, torch.float8_e5m2: 2}  # mantissa bits


def before_rounding(spec: TensorSpec, limits: Tolerances) -> tuple[TensorSpec, Tolerances]:
    """Spec and limits for the value before rounding, which may be as inaccurate as a bf16 result. Rounding to 8 bits
    hides that error in most elements, so the limit of the whole output is tighter."""
    share = math.sqrt(DType.BF16.eps / spec.dtype.eps)
    return replace(spec, dtype=DType.BF16), replace(limits, floor_eps=limits.floor_eps * share)


def unrounded(result: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """The number nearest to ``reference`` among those that round to ``result`` (both flat; float64). If it differs from
    the reference, the kernel's value before rounding was wrong by at least that much.

    Beyond the largest number, PyTorch rounds to infinity (NaN in e4m3fn) and the hardware to the largest; both are
    accepted.
    """
    parts = zip(result.split(_CHUNK), reference.split(_CHUNK), strict=True)
    return torch.cat([_unrounded_chunk(*pair) for pair in parts]) if result.numel() else reference.clone()


def _unrounded_chunk(result: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    info, bits = torch.finfo(result.dtype), _BITS[result.dtype]
    wide = result.double()
    _, exponent = torch.frexp(reference.clamp(-info.max, info.max).nan_to_num(0.0))
    least = torch.frexp(torch.tensor(info.smallest_normal)).exponent
    # Half a unit in the last place.
    half = torch.ldexp(torch.ones_like(reference), exponent.clamp(min=int(least)) - bits - 2)
    wrong = wide - reference
    near = wide - wrong.sign() * torch.minimum(wrong.abs(), half)
    near = torch.where(wide.isfinite() & reference.isfinite(), near, wide)
    beyond = reference.abs() > info.max + half
    overflow = wide.isnan() if result.dtype is torch.float8_e4m3fn else wide == reference.sign() * torch.inf
    right = beyond & (overflow | (wide == reference.sign() * info.max))
    return torch.where(right, reference, near)
