"""Comparing one output with the float64 reference, within what PyTorch itself loses at the same precision."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import TensorSpec, Tolerances
from cutegen_lab.core.trial import OutputError

_CHUNK = 1 << 23  # elements compared at a time: a float64 copy of a chunk is 64 MiB


@dataclass(frozen=True)
class Distance:
    """How far ``got`` is from the float64 ``reference``: norm-wise, at the worst element, and where."""

    norm: float
    worst: float
    index: int  # flat

    @property
    def finite(self) -> bool:
        return math.isfinite(self.norm) and math.isfinite(self.worst)


def compare(
    spec: TensorSpec, got: torch.Tensor, reference: torch.Tensor, torch_result: torch.Tensor, limits: Tolerances
) -> OutputError:
    """Errors of ``got`` (shape and dtype of ``spec``) against ``reference`` (float64), beside PyTorch's own.

    Integers and booleans must be equal (ties of argmax: the first index, as PyTorch's CPU kernels answer). NaN and
    infinities must stand where the reference, rounded to the output's dtype, has them; where PyTorch's own result is
    not finite although the reference is, either answer is accepted.
    """
    got, reference, own = got.reshape(-1), reference.reshape(-1), torch_result.reshape(-1)
    if not spec.dtype.is_float:
        return _exact(spec, got, reference)
    mine, theirs = distance(got, reference, own), distance(own, reference, own)
    if spec.dtype is DType.F64:
        floor_norm, floor_element = 0.0, 0.0
    else:
        floor_norm, floor_element = limits.floor_norm, limits.floor_element
    return OutputError(
        output=spec.name, norm=mine.norm, worst=mine.worst, torch_norm=theirs.norm, torch_worst=theirs.worst,
        limit_norm=max(limits.budget * theirs.norm, limits.floor_eps * spec.dtype.eps, floor_norm),
        limit_worst=max(limits.budget * theirs.worst, limits.element_eps * spec.dtype.eps, floor_element),
        worst_index=_unravel(mine.index, spec.shape), got=_value(got, mine.index),
        expected=_value(reference, mine.index),
    )  # fmt: skip


def distance(got: torch.Tensor, reference: torch.Tensor, own: torch.Tensor) -> Distance:
    """Flat tensors of one length. An element that is non-finite where it should not be is infinitely far."""
    count = reference.numel()
    square_error = square_ref = 0.0
    for start in range(0, count, _CHUNK):
        ref, diff = _difference(got, reference, own, start)
        square_error += float(diff.square().sum())
        square_ref += float(ref.square().sum())
    rms = math.sqrt(square_ref / count) if count else 0.0
    scale = rms if rms > 0.0 else 1.0
    worst, index = 0.0, 0
    for start in range(0, count, _CHUNK):
        ref, diff = _difference(got, reference, own, start)
        relative = diff.abs().div_(ref.abs().clamp_(min=scale))
        value, position = torch.max(relative, 0)
        if float(value) > worst:
            worst, index = float(value), start + int(position)
    norm = math.sqrt(square_error / count) / scale if count else 0.0
    return Distance(norm, worst, index)


def _difference(
    got: torch.Tensor, reference: torch.Tensor, own: torch.Tensor, start: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Float64 chunks (reference, got − reference), non-finite values resolved to 0 where right and inf where wrong."""
    part = slice(start, start + _CHUNK)
    mine, theirs = got[part].double(), own[part].double()
    ref = reference[part].double()
    diff = mine - ref
    rounded = ref.to(got.dtype).double()
    odd = ~(torch.isfinite(rounded) & torch.isfinite(mine) & torch.isfinite(theirs))
    if bool(odd.any()):
        same = (mine == rounded) | (mine.isnan() & rounded.isnan())
        own_broke = ~torch.isfinite(theirs) & torch.isfinite(rounded)
        excused = own_broke & ((mine == theirs) | mine.isnan() | mine.isfinite())
        diff[odd] = torch.where(same | excused, 0.0, math.inf).double()[odd]
        ref = torch.where(odd, 0.0, ref)
    return ref, diff


def _exact(spec: TensorSpec, got: torch.Tensor, reference: torch.Tensor) -> OutputError:
    wrong = torch.nonzero(got.to(torch.int64) != reference.to(torch.int64)).reshape(-1)
    share = wrong.numel() / max(got.numel(), 1)
    index = int(wrong[0]) if wrong.numel() else 0
    return OutputError(
        output=spec.name, norm=share, worst=float(wrong.numel() > 0), torch_norm=0.0, torch_worst=0.0,
        limit_norm=0.0, limit_worst=0.0, worst_index=_unravel(index, spec.shape),
        got=_value(got, index), expected=_value(reference, index),
    )  # fmt: skip


def _value(tensor: torch.Tensor, index: int) -> float:
    return float(tensor[index]) if tensor.numel() else 0.0


def _unravel(index: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    position = []
    for size in reversed(shape):
        position.append(index % size)
        index //= size
    return tuple(reversed(position))
