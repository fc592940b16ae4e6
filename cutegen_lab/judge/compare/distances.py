"""Norm-wise and elementwise distances between a result and its reference."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from cutegen_lab.judge.compare.slice_squares import SliceSquares

_THREADED = 1 << 15  # minimum number of elements for which several BLAS threads are faster than one
_CHUNK = 1 << 18  # elements compared at a time on a CPU: float64 chunks of 2 MiB stay in cache
# Elements compared at a time on a GPU, where launching a kernel costs more than a cache saves.
_GPU_CHUNK = 1 << 26


@dataclass(frozen=True)
class Distance:
    """Errors of a result against the float64 reference."""

    norm: float
    """Norm-wise relative error."""
    worst: float
    """Largest elementwise error."""
    index: int
    """Flat index of that element."""


def rms(values: torch.Tensor) -> float:
    """Root mean square of the finite elements; 0 if there are none."""
    flat = values.reshape(-1).double()
    parts = flat.split(_chunk(flat)) if flat.numel() else ()
    return math.sqrt(sum(_dot(_finite(part)) for part in parts) / max(flat.numel(), 1))


def distances(
    got: torch.Tensor, own: torch.Tensor, reference: torch.Tensor, least: float = 0.0,
    slices: Sequence[SliceSquares] = (),
) -> tuple[Distance, Distance]:  # fmt: skip
    """Distances of ``got`` and of PyTorch's ``own`` result from ``reference`` (all flat, of one length), computed in
    chunks.

    Distances are relative to the larger of the reference's root mean square and ``least`` (to 1 if both are 0). An
    element that is finite in only one of the two is infinitely far. ``slices``: accumulators of both errors by row and
    column.
    """
    scale = max(rms(reference), least) or 1.0
    running = [_Running(), _Running()]
    for part in chunks(reference, slices[0].columns if slices else 1):
        ref = reference[part]
        weight = _finite(ref).abs().clamp_(min=scale)
        for number, (result, total) in enumerate(zip((got, own), running, strict=True)):
            diff, square = _difference(result[part], own[part], ref)
            if slices:
                slices[number].add(part.start, diff)
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
        if worst > self.worst:  # argmax is slow, so it is only called for a new worst element
            self.worst, self.index = worst, start + int(relative.argmax())


def chunks(values: torch.Tensor, multiple: int = 1) -> Iterator[slice]:
    """Slices of flat ``values`` that fit a cache; the length of each but the last is a multiple of ``multiple``."""
    size, count = max(_chunk(values) // multiple, 1) * multiple, values.numel()
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


def _chunk(values: torch.Tensor) -> int:
    return _GPU_CHUNK if values.is_cuda else _CHUNK


def _dot(values: torch.Tensor) -> float:
    if values.numel() < _THREADED:
        return float(values.square().sum())
    return float(torch.dot(values, values))


def _finite(values: torch.Tensor) -> torch.Tensor:
    return values if math.isfinite(_dot(values)) else values.nan_to_num(0.0, 0.0, 0.0)


def finite_difference(result: torch.Tensor, own: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """:func:`resolve_non_finite` of flat ``result``, chunk by chunk."""
    found = torch.empty_like(reference)
    for part in chunks(reference):
        found[part] = _difference(result[part], own[part], reference[part])[0]
    return found


def finite_errors(result: torch.Tensor, own: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """Errors of a flat result, with 0 for non-finite ones."""
    return finite_difference(result, own, reference).nan_to_num_(0.0, 0.0, 0.0)


def _difference(result: torch.Tensor, own: torch.Tensor, ref: torch.Tensor) -> tuple[torch.Tensor, float]:
    """Differences of one chunk (:func:`resolve_non_finite` where needed), and their sum of squares."""
    found = torch.sub(result, ref)  # float64; not in place, since the result may already be float64
    square = _dot(found)
    if not math.isfinite(square):
        found = resolve_non_finite(result.double(), own.double(), ref, result.dtype)
        square = _dot(found)
    return found, square


def resolve_non_finite(mine: torch.Tensor, own: torch.Tensor, ref: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """``mine − ref``. Where one of the two is not finite: 0 if ``mine`` is right or excused, infinity if it is
    wrong."""
    far = mine - ref
    odd = (mine * 0.0).add_(ref, alpha=0.0).isnan().nonzero()
    mine, own, rounded = mine[odd], own[odd], ref[odd].to(dtype).double()
    same, theirs = same_kind(mine, rounded), same_kind(mine, own)
    undecided = ~same_kind(own, rounded)  # PyTorch and float64 differ in NaN, infinity or finite
    excused = undecided & (same | theirs | mine.isnan())
    far[odd] = torch.where(same | excused, 0.0, math.inf).double()
    return far


def same_kind(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Elementwise: both finite, the same infinity, or both NaN."""
    return (a.isfinite() & b.isfinite()) | (a == b) | (a.isnan() & b.isnan())
