"""Limits errors row by row and column by column, so that a large row's norm cannot hide a small one's error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from cutegen_lab.judge.compare.local_errors import LOSSES
from cutegen_lab.judge.rounding.few_numbers import largest_share

LEAST = 16  # fewest elements of a slice: in a shorter one, a single element that cancels would decide
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


def worst_slice(
    shape: Sequence[int],
    reference: torch.Tensor,
    got: torch.Tensor,
    luck: Sequence[torch.Tensor],
    moved: Sequence[torch.Tensor],
    lost: Sequence[torch.Tensor],
    least: float,
    limit: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    rounding: Callable[[torch.Tensor, int], torch.Tensor],
) -> Slice | None:
    """Worst row or column of an output of ``shape``; None if it has no slice of ``LEAST`` elements.

    ``reference`` is flat float64; ``got``, ``luck`` (PyTorch's own results, the first as it is), ``moved`` (references
    with random rounding) and ``lost`` (with the losses of honest formulas) are flat errors against it. Errors are
    relative to the slice's own norm, or to ``least`` if that is larger. ``limit`` computes a slice's limit from the
    largest of each of these errors; the rounding error is at least the median slice's, since in a column a single
    inaccurate row decides it, perhaps by luck. ``rounding`` gives the least limits from each slice's largest share
    (:mod:`few_numbers`) and their number.
    """
    found: list[Slice] = []
    columns = shape[-1] if shape else 1
    rows = reference.numel() // max(columns, 1)
    sizes = ((1, columns, rows), (0, rows, columns))
    dims = [dim for dim, length, count in sizes if length >= LEAST and count >= 2]
    if not dims:
        return None

    def norms(errors: torch.Tensor) -> list[torch.Tensor]:
        """Of the rows, and of the columns."""
        squares = errors.view(rows, columns).square()
        return [squares.mean(dim).sqrt() for dim in dims]

    finite = reference.nan_to_num(0.0, 0.0, 0.0)
    scales, mines = norms(finite), norms(got)
    lucks, effects, losses = ([norms(each) for each in some] for some in (luck, moved, lost))
    for number, dim in enumerate(dims):
        scale = scales[number].clamp_(min=max(_FLUSHED, least))
        mine = mines[number] / scale
        own = torch.stack([each[number] / scale for each in lucks])
        effect = torch.stack([each[number] / scale for each in effects]) if moved else torch.zeros_like(own)
        most = effect.amax(0)
        limits = limit(own.amax(0), most.clamp_(min=float(most.median())))
        limits = torch.maximum(limits, rounding(largest_share(finite.view(rows, columns), dim), len(scale)))
        for each in losses:
            limits = torch.maximum(limits, LOSSES * each[number] / scale)
        at = int((mine / limits).nan_to_num(float("inf")).argmax())
        inside = got.view(rows, columns).select(1 - dim, at).abs()
        place = int(inside.argmax())
        index = at * columns + place if dim == 1 else place * columns + at
        found.append(Slice(float(mine[at]), float(own[0][at]), float(limits[at]), index))
    return max(found, key=lambda s: s.norm / s.limit, default=None)
