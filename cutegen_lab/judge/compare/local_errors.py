"""Errors that a norm over a whole output hides: errors of small results, of results in one range, and errors of one
sign."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from cutegen_lab.judge.compare.distances import chunks, rms

_LEAST = 2.0**-100  # smaller results may come from flushed intermediate ones (fp32 flushes below 2**-126)
_INACCURATE = 1e-2  # relative error of PyTorch's result beyond which an element is not compared
_BIN, _MOST_COMPARED = 32, 1 << 18
# Fraction of an output's root mean square: relative errors of smaller elements come from cancellation.
_COMPARABLE = 1 / 16
# Minimum number of groups for a spread of means; number of standard errors that is significant.
_GROUPS, _SIGMAS = 8, 6.0
_MANY_GROUPS = 32  # with this many groups, six standard errors are exceeded in one case in a million

LOSSES = 2.0  # factor on the error bounds of a formula's steps, whose errors may all have one sign

# Limit from PyTorch's own errors and the effects of rounding.
Limit = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class LocalError:
    """The error furthest over its limit."""

    error: float
    """The candidate's error."""
    own: float
    """PyTorch's error at the same place."""
    limit: float
    """Limit of the error."""
    index: int
    """Flat index of the element."""


def worst_relative(
    got: torch.Tensor, own: Sequence[torch.Tensor], reference: torch.Tensor, moved: Sequence[torch.Tensor], limit: Limit
) -> LocalError | None:
    """Largest error of an element relative to that element, however small it is. For products, quotients, roots and
    exponentials, which every correct formula computes accurately. ``own``: PyTorch's results, the first without extra
    rounding; all flat."""
    least = max(_LEAST, torch.finfo(got.dtype).smallest_normal)
    effects, worst, index = [0.0] * len((*own, *moved)), -1.0, 0
    for part in chunks(reference):
        exact = reference[part]
        size = exact.abs()
        mine, *others = (torch.sub(each[part], exact).abs_().div_(size) for each in (got, *own, *moved))
        low, high = size.aminmax()
        most = [float(each.max()) for each in others]
        # Also true for NaN: some elements are then left out.
        if not (low >= least and high < math.inf and max(most) <= _INACCURATE):
            left_out = ~((size >= least) & (size < math.inf))
            for each in others:
                left_out |= ~(each <= _INACCURATE)
            if bool(left_out.all()):
                continue
            mine, *others = (each.masked_fill_(left_out, 0.0) for each in (mine, *others))
            most = [float(each.max()) for each in others]
        effects = [max(pair) for pair in zip(effects, most, strict=True)]
        here = float(mine.max())
        if not here <= worst:
            # A NaN error counts as infinite.
            worst, index = here if here >= 0 else math.inf, part.start + int(mine.argmax())
    if worst < 0:
        return None
    luck, effect = torch.tensor(effects, dtype=torch.float64).tensor_split([len(own)])
    most_moved = effect.max() if moved else torch.zeros_like(luck[0])
    return LocalError(worst, float(luck[0]), float(limit(luck.max(), most_moved)), index)


def sampling_step(count: int) -> int:
    """Distance between the elements of a flat output that :func:`worst_bin` compares."""
    return max(-(-count // _MOST_COMPARED), 1)


def worst_bin(
    mine: torch.Tensor, luck: Sequence[torch.Tensor], reference: torch.Tensor, moved: Sequence[torch.Tensor],
    lost: Sequence[torch.Tensor], least: float, limit: Limit,
) -> LocalError | None:  # fmt: skip
    """Norm-wise error of elements of similar magnitude, relative to their norm, or to ``least`` if that is larger. For
    elementwise functions. ``mine``, ``luck`` (PyTorch's own), ``moved`` and ``lost`` (error bounds of correct formulas)
    are flat errors, of a sample of a large output; the index is one into that sample."""
    some = reference.nan_to_num(0.0, 0.0, 0.0)
    bins = some.numel() // _BIN
    if not bins:
        return None
    order = some.argsort()[: bins * _BIN]

    def norms(errors: torch.Tensor) -> torch.Tensor:
        return errors[order].view(bins, _BIN).square().mean(1).sqrt()

    scale = norms(some).clamp_(min=max(least, _LEAST))
    found = norms(mine) / scale
    own = torch.stack([norms(each) / scale for each in luck])
    effect = torch.stack([norms(each) / scale for each in moved]) if moved else torch.zeros_like(own)
    limits = limit(own.amax(0), effect.amax(0))
    for each in lost:
        limits = torch.maximum(limits, LOSSES * norms(each) / scale)
    at = int((found / limits).nan_to_num(float("inf")).argmax())
    inside = order[at * _BIN : (at + 1) * _BIN]
    index = int(inside[mine[inside].abs().argmax()])
    return LocalError(float(found[at]), float(own[0][at]), float(limits[at]), index)


def mean_bias(
    shape: Sequence[int], got: torch.Tensor, own: Sequence[torch.Tensor], reference: torch.Tensor, floor: float,
    slack: float | None, budget: float,
) -> LocalError | None:  # fmt: skip
    """Mean relative difference from the rounded reference. Rounding errors cancel; a wrong factor and truncated bits do
    not.

    The limit is at least ``floor``. With ``slack``, and many rows and columns, there is no floor. Then only the part of
    a difference counts that a relative error of ``slack`` before rounding cannot explain; in honest kernels this part
    is rarely non-zero, and has either sign.

    Rows or columns that share a rounded number are off together, each in its own direction, so the limit grows with the
    spread of their means.
    """
    columns = shape[-1] if len(shape) > 1 else _BIN
    rows = reference.numel() // max(columns, 1)
    if rows < _GROUPS or columns < _GROUPS:
        return None
    floor, slack = (0.0, slack) if slack is not None and min(rows, columns) >= _MANY_GROUPS else (floor, 0.0)
    taken, least = reference[: rows * columns], _COMPARABLE * rms(reference[: rows * columns])
    sums, counts = ([taken.new_zeros(rows), taken.new_zeros(columns)] for _ in range(2))
    theirs, squares, worst, index = [0.0] * len(own), 0.0, 0.0, 0
    for part in chunks(taken, columns):
        exact, results = taken[part], [each[part] for each in (got, *own)]
        size = exact.abs()
        low, high = (torch.add(exact, size, alpha=sign * slack).to(got.dtype) for sign in (-1, 1))
        compared = size >= least if least else size > 0
        if not all(_within(each, got.dtype) for each in (low, high, *results)):
            for each in (low, high, *results):
                compared &= each.isfinite()
        some = slice(part.start // columns, part.start // columns + len(exact) // columns)
        mask = compared.view(-1, columns)
        counts[0][some], counts[1] = mask.sum(1).double(), counts[1] + mask.sum(0)
        for number, each in enumerate(results):  # few elements of an honest kernel differ: only these are summed
            places = ((each < low) | (each > high)).logical_and_(compared).nonzero().reshape(-1)
            value = each[places].double()
            apart = (value - value.clamp(low[places].double(), high[places].double())).div_(exact[places])
            if number:
                theirs[number - 1] += float(apart.sum())
            elif len(places):
                sums[0].index_add_(0, (places + part.start) // columns, apart)
                sums[1].index_add_(0, places % columns, apart)
                squares += float(apart.square().sum())
                largest = int(apart.abs_().argmax())
                if float(apart[largest]) > worst:
                    worst, index = float(apart[largest]), part.start + int(places[largest])
    count = float(counts[0].sum())
    if count < rows * columns / 4:
        return None

    def spread(dim: int) -> float:
        means = (sums[dim] / counts[dim].clamp(min=1))[counts[dim] > 0]
        return float(means.std()) / means.numel() ** 0.5 if means.numel() > 1 else 0.0

    own_bias = [abs(total) / count for total in theirs]
    limit = max(floor, budget * max(own_bias)) + _SIGMAS * max(spread(0), spread(1), squares**0.5 / count)
    return LocalError(abs(float(sums[0].sum())) / count, own_bias[0], limit, index)


def _within(values: torch.Tensor, dtype: torch.dtype) -> bool:
    """Whether all ``values`` are smaller in magnitude than the largest number of ``dtype``."""
    least, most = (float(end) for end in values.aminmax())
    largest = float(torch.finfo(dtype).max)
    return -largest < least <= most < largest
