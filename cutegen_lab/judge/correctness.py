"""Comparing one output with the float64 reference, within what PyTorch itself loses at the same precision."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import TensorSpec, Tolerances
from cutegen_lab.core.trial import OutputError

CONDITIONING = 16.0  # roundings an honest kernel may add up; TF32 would be 8,192
_WALK = 0.75 * 2.0**-24  # norm-wise error a √term: measured 0.3 of an epsilon's half, and room for bad luck
_MOST_TERMS = 1 << 20  # the limit stays well under TF32's 3e-4 whatever the shape
HUGE = 1e30  # a mask's fill rather than a result: its square would drown every other element
_CHUNK = 1 << 18  # elements compared at a time: float64 chunks of 2 MiB stay in cache


@dataclass(frozen=True)
class Distance:
    """How far a result is from the float64 reference: norm-wise, at the worst element, and where (flat index)."""

    norm: float
    worst: float
    index: int


def compare(
    spec: TensorSpec,
    got: torch.Tensor,
    reference: torch.Tensor,
    torch_result: torch.Tensor,
    limits: Tolerances,
    nudged: torch.Tensor | None = None,
    terms: int = 1,
) -> OutputError:
    """Errors of ``got`` (shape and dtype of ``spec``) against ``reference`` (float64), beside PyTorch's own.

    Integers and booleans must be equal to float64's or to PyTorch's own, which differ where they follow from rounded
    floats (ties of argmax: the first index, as PyTorch's CPU kernels answer). Finite elements beyond ``HUGE`` are held
    to PyTorch's own value, whose ``finfo`` is the output dtype's. NaN and
    infinities must stand where the reference, rounded to the output's dtype, has them; where PyTorch's own result is
    not finite although the reference is, either answer is accepted.

    ``nudged`` is the float64 reference on inputs moved by float32's rounding: a sum whose terms cancel amplifies that,
    and a limit that ignored it would reject honest kernels by luck. The limits are at least ``CONDITIONING`` times its
    effect, and grow with ``terms``, the most an element of this workload can sum: one float32 accumulator over them
    walks √terms roundings away.
    """
    got, reference, own = got.reshape(-1), reference.reshape(-1), torch_result.reshape(-1)
    if not spec.dtype.is_float:
        return _exact(spec, got, reference, own)
    if nudged is not None:
        nudged = nudged.reshape(-1)
    low, high = reference.aminmax() if reference.numel() else (reference.new_zeros(()),) * 2
    if not (float(low) > -HUGE and float(high) < HUGE):
        fills = torch.isfinite(reference) & (reference.abs() > HUGE)
        right = fills & ((got.double() / own.double() - 1).abs() < 2 * spec.dtype.eps)
        got = torch.where(fills, torch.where(right, 0.0, math.inf).to(got.dtype), got)
        own, reference = own.masked_fill(fills, 0.0), reference.masked_fill(fills, 0.0)
        nudged = None if nudged is None else nudged.masked_fill(fills, 0.0)
    mine, theirs = distances(got, own, reference)
    if spec.dtype is DType.F64:
        # The reference is float64 too, so "PyTorch's error" is 0: a few roundings, and float32 is 1e8 times as far.
        walk = math.sqrt(min(terms, _MOST_TERMS)) * spec.dtype.eps
        floor_norm, floor_element = 4 * spec.dtype.eps + walk, 40 * spec.dtype.eps + 10 * walk
    else:
        walk = _WALK * math.sqrt(min(terms, _MOST_TERMS))
        floor_norm = limits.floor_norm + walk
        floor_element = limits.floor_element + 10 * walk
    if nudged is not None:
        effect, _ = distances(nudged, own, reference)
        floor_norm = max(floor_norm, CONDITIONING * effect.norm)
        floor_element = max(floor_element, CONDITIONING * effect.worst)
    return OutputError(
        output=spec.name, norm=mine.norm, worst=mine.worst, torch_norm=theirs.norm, torch_worst=theirs.worst,
        limit_norm=max(limits.budget * theirs.norm, limits.floor_eps * spec.dtype.eps, floor_norm),
        limit_worst=max(limits.budget * theirs.worst, limits.element_eps * spec.dtype.eps, floor_element),
        worst_index=_unravel(mine.index, spec.shape), got=_value(got, mine.index),
        expected=_value(reference, mine.index),
    )  # fmt: skip


def distances(got: torch.Tensor, own: torch.Tensor, reference: torch.Tensor) -> tuple[Distance, Distance]:
    """Of ``got`` and of PyTorch's ``own`` result from ``reference`` (flat, one length), chunk by chunk.

    An element that is not finite where it should be, or finite where it should not, is infinitely far.
    """
    parts = [slice(start, start + _CHUNK) for start in range(0, reference.numel(), _CHUNK)]
    square_ref = sum(_dot(_finite(reference[part])) for part in parts)
    rms = math.sqrt(square_ref / reference.numel()) if parts else 0.0
    scale = rms if rms > 0.0 else 1.0
    running = [_Running(), _Running()]
    for part in parts:
        ref = reference[part]
        weight = _finite(ref).abs().clamp_(min=scale)
        for result, total in zip((got, own), running, strict=True):
            diff = torch.sub(result[part], ref)  # promotes to float64, and never in place: the result may be float64
            square = _dot(diff)
            if not math.isfinite(square):
                diff = _resolved(result[part].double(), own[part].double(), ref, result.dtype)
                square = _dot(diff)
            total.add(square, diff.abs_().div_(weight), part.start)
    count = max(reference.numel(), 1)
    mine, theirs = (Distance(math.sqrt(r.square / count) / scale, r.worst, r.index) for r in running)
    return mine, theirs


class _Running:
    """Sum of squares and the worst element so far."""

    def __init__(self) -> None:
        self.square, self.worst, self.index = 0.0, 0.0, 0

    def add(self, square: float, relative: torch.Tensor, start: int) -> None:
        self.square += square
        worst = float(relative.max())
        if worst > self.worst:  # the position is looked for only where it is needed: argmax is slow
            self.worst, self.index = worst, start + int(relative.argmax())


def _dot(values: torch.Tensor) -> float:
    return float(torch.dot(values, values))


def _finite(values: torch.Tensor) -> torch.Tensor:
    return values if math.isfinite(_dot(values)) else values.nan_to_num(0.0, 0.0, 0.0)


def _resolved(mine: torch.Tensor, own: torch.Tensor, ref: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """``mine − ref`` with non-finite values resolved: 0 where they are right or excused, infinity where wrong."""
    rounded = ref.to(dtype).double()
    odd = ~(torch.isfinite(rounded) & torch.isfinite(mine) & torch.isfinite(own))
    same = (mine == rounded) | (mine.isnan() & rounded.isnan())
    own_broke = ~torch.isfinite(own) & torch.isfinite(rounded)
    excused = own_broke & ((mine == own) | mine.isnan() | mine.isfinite())
    return torch.where(odd, torch.where(same | excused, 0.0, math.inf).double(), mine - ref)


def _exact(spec: TensorSpec, got: torch.Tensor, reference: torch.Tensor, own: torch.Tensor) -> OutputError:
    integers = got.to(torch.int64)
    differs = (integers != reference.to(torch.int64)) & (integers != own.to(torch.int64))
    wrong = torch.nonzero(differs).reshape(-1)
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
