"""Limits errors row by row and column by column, so that a large row's norm cannot hide a small one's error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from cutegen_lab.judge.compare.distances import chunks, finite_difference, finite_errors
from cutegen_lab.judge.compare.local_errors import LOSSES
from cutegen_lab.judge.compare.slice_squares import SliceSquares

LEAST = 16  # minimum number of elements of a slice: a shorter one could fail because of a single element that cancels
_FLUSHED = 2.0**-106  # results below fp32's normal numbers (2**-126) may be flushed to zero


@dataclass(frozen=True)
class Slice:
    """The row or column furthest over its limit."""

    norm: float
    """Its norm-wise relative error."""
    own: float
    """PyTorch's error of that slice."""
    limit: float
    """Limit of the error."""
    index: int
    """Flat index of its worst element."""


def squares_by_slice(shape: Sequence[int], like: torch.Tensor) -> list[SliceSquares]:
    """Accumulators of the candidate's and PyTorch's squared errors, for an output of ``shape`` (``like``: a flat tensor
    of it); empty if no slice has ``LEAST`` elements."""
    columns = shape[-1] if shape else 1
    rows = like.numel() // max(columns, 1)
    return [SliceSquares(like, columns) for _ in range(2)] if _compared_dims(rows, columns) else []


def error_squares(result: torch.Tensor, own: torch.Tensor, reference: torch.Tensor, columns: int) -> SliceSquares:
    """Sums of squared errors of a flat result by row and by column; non-finite errors count as 0."""
    found = SliceSquares(reference, columns)
    for part in chunks(reference, columns):
        found.add(part.start, finite_errors(result[part], own[part], reference[part]))
    return found


def worst_slice(
    results: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    got: SliceSquares,
    luck: Sequence[SliceSquares],
    moved: Sequence[SliceSquares],
    lost: Sequence[SliceSquares],
    least: float,
    limit: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    rounding: Callable[[torch.Tensor, int], torch.Tensor],
) -> Slice:
    """Worst row or column of an output.

    ``results``: the candidate's, PyTorch's and the float64 reference, flat. ``got``, ``luck`` (PyTorch's own, the first
    without extra rounding), ``moved`` (references with random rounding) and ``lost`` (error bounds of correct formulas)
    are sums of squared errors against the reference. Errors are relative to the slice's own norm, or to ``least`` if
    that is larger. ``limit`` computes a slice's limit from the largest of PyTorch's errors and the largest effect of
    rounding. The effect counts as at least that of the median slice, since in a column it may depend on a single
    inaccurate row. ``rounding`` gives lower bounds of the limits from each slice's largest share (:mod:`few_numbers`)
    and the number of slices.
    """
    reference, columns = results[-1], got.columns
    rows = reference.numel() // columns
    exact = SliceSquares(reference, columns)
    for part in chunks(reference, columns):
        exact.add(part.start, reference[part].nan_to_num(0.0, 0.0, 0.0), largest=True)
    scales, shares, mines = exact.norms(), exact.largest_shares(), got.norms()
    lucks, effects, losses = ([each.norms() for each in some] for some in (luck, moved, lost))
    found: list[Slice] = []
    for dim in _compared_dims(rows, columns):
        scale = scales[dim].clamp_(min=max(_FLUSHED, least))
        mine = mines[dim] / scale
        own = torch.stack([each[dim] / scale for each in lucks])
        effect = torch.stack([each[dim] / scale for each in effects]) if moved else torch.zeros_like(own)
        most = effect.amax(0)
        limits = limit(own.amax(0), most.clamp_(min=float(most.median())))
        limits = torch.maximum(limits, rounding(shares[dim], len(scale)))
        for each in losses:
            limits = torch.maximum(limits, LOSSES * each[dim] / scale)
        at = int((mine / limits).nan_to_num(float("inf")).argmax())
        inside = finite_difference(*(flat.view(rows, columns).select(dim, at).contiguous() for flat in results))
        place = int(inside.abs().argmax())
        index = at * columns + place if dim == 0 else place * columns + at
        found.append(Slice(float(mine[at]), float(own[0][at]), float(limits[at]), index))
    return max(found, key=lambda s: s.norm / s.limit)


def _compared_dims(rows: int, columns: int) -> list[int]:
    """The dimensions to compare (0: rows, 1: columns): those with several slices that are long enough."""
    sizes = ((columns, rows), (rows, columns))
    return [dim for dim, (length, count) in enumerate(sizes) if length >= LEAST and count >= 2]
