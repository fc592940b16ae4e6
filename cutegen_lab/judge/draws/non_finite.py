"""Draws with NaN, infinities, zeros of either sign and subnormal numbers."""

from __future__ import annotations

import math

import torch

from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.judge.draws.float_tensors import (
    LEAST_OUTPUT,
    TILE_COLUMNS,
    Values,
    by_tensor,
    finfo,
    floats,
    maskable,
    mostly_last,
    one_of_the_largest,
    partners,
    random_below,
)
from cutegen_lab.judge.draws.names import HIDDEN
from cutegen_lab.judge.draws.patterns import MASKS, with_pattern
from cutegen_lab.judge.draws.type_limits import at_type_limits, with_infinite_rows
from cutegen_lab.judge.draws.values import between, moderate_normal, rand

_SKIPPED = 0.2  # share of rows in which a tile is zero


def hidden(workload: Workload, g: torch.Generator, value: float = -math.inf) -> Values:
    """Hides parts of one of the largest inputs behind ``value``, as a mask does: tiles, starts, ends and single
    elements of rows, or of another dimension. No row is hidden completely."""
    values = {at: moderate_normal(spec.shape, g) for at, spec in floats(workload)}
    at, spec = one_of_the_largest(workload, g)
    if not spec.shape or spec.dtype.is_float8:
        return values
    dim = mostly_last(spec, 0.6, g)
    turned = values[at].transpose(dim, -1).contiguous()
    shape = tuple(turned.shape)
    place = (rand((*shape[:-1], 1), g) * shape[-1]).long()
    nothing = torch.zeros(shape, dtype=torch.bool)
    mask = with_pattern(shape, nothing, MASKS, HIDDEN, g, by_rows=True).scatter(-1, place, False)
    values[at] = turned.masked_fill(mask, value).transpose(dim, -1).contiguous()
    return values


def hidden_rows(workload: Workload, g: torch.Generator) -> Values:
    """Rows of −∞ in one input, as of a mask that hides every key; in some rows the second half is hidden by another
    input of equal shape instead."""
    values = {at: moderate_normal(spec.shape, g) for at, spec in floats(workload)}
    shapes = sorted({spec.shape for _, spec in maskable(workload)})
    if not shapes:
        return values
    shape = shapes[random_below(len(shapes), g)]  # chosen by shape first: a mask often has a shape of its own
    ours = [at for at, spec in maskable(workload) if spec.shape == shape]
    one, other = (ours[i] for i in torch.randint(len(ours), (2,), generator=g).tolist())
    rows, others = (values[at].view(-1, shape[-1]) for at in (one, other))
    count = len(rows)
    some = torch.randperm(count, generator=g)[: max(count // 8, min(count // 2, 4), 1)]
    seen = (torch.rand((len(some), 1), generator=g) < 0.5) & (torch.arange(shape[-1]) >= shape[-1] // 2)
    rows[some] = rows[some].masked_fill(~seen, -math.inf)
    others[some] = others[some].masked_fill(seen, -math.inf)
    return values


def specials(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """Zeros of either sign, subnormal numbers, and in a quarter of the draws two numbers at the limit of what can be
    squared, which dwarf all others."""
    info = finfo(spec.dtype)
    which = torch.randint(8, spec.shape, generator=g)
    tiny = values.clamp(-0.9, 0.9).double() * info.smallest_normal
    some = torch.where(which == 0, -0.0, torch.where(which == 1, 0.0, torch.where(which == 2, tiny, values.double())))
    flat, large = some.view(-1), min(info.max / 4, 2.0**55)
    if flat.numel() >= LEAST_OUTPUT and between(0, 1, g) < 0.25:
        flat[torch.randint(flat.numel(), (2,), generator=g)] = torch.tensor([large, -large], dtype=torch.float64)
    return some


def several_not_finite(workload: Workload, g: torch.Generator) -> Values:
    """Several non-finite values in every input. The largest also has whole rows of infinities, unless its rows are
    summed over with those of another input, which would make everything NaN."""
    values = by_tensor(_some_not_finite)(workload, g)
    at, spec = max(floats(workload), key=lambda pair: pair[1].numel)
    if spec.shape and not partners(workload):
        with_infinite_rows(values[at].view(-1, spec.shape[-1]), g)
    return values


def _some_not_finite(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """Several NaN and infinities of both signs, and zeros, whose products with infinities are NaN. One row holds
    exactly two infinities of opposite signs, another two NaN, a third a NaN or an infinity at its end."""
    flat = values.view(-1)
    if flat.numel() < 8:
        return values
    rows = values.view(-1, spec.shape[-1])
    chosen, other = random_below(rows.shape[0], g), random_below(rows.shape[0], g)
    # Without ``many``, one NaN, one ∞ and one −∞: a row may then hold a single non-finite number.
    kept, many = rows[chosen].clone(), between(0, 1, g) < 0.7
    count, zeros = 1 + many * (1 + flat.numel() // 512), between(0.1, 0.6, g)
    for value in (math.nan, math.inf, -math.inf):
        flat[torch.randint(flat.numel(), (count,), generator=g)] = value
    kept[torch.randint(kept.numel(), (2,), generator=g)] = torch.tensor([math.inf, -math.inf])
    rows[other, torch.randint(rows.shape[1], (2,), generator=g)] = math.nan
    rows[chosen] = kept
    if rows.shape[0] > 2:
        last = random_below(rows.shape[0], g)
        rows[last] = torch.where(rows[last].isfinite(), rows[last], 0.0)
        rows[last, -1] = (math.nan, math.inf)[random_below(2, g)]
    side = min(TILE_COLUMNS >> random_below(4, g), rows.shape[1])  # a tile that a kernel may skip as zero
    skipped = rand((rows.shape[0], 1), g) < _SKIPPED
    tile = torch.arange(rows.shape[1]) // side == random_below(-(-rows.shape[1] // side), g)
    rows.masked_fill_(skipped & tile, 0.0)
    return values.masked_fill_(values.isfinite() & (rand(spec.shape, g) < zeros), 0.0)


def float_limits(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """Numbers at the limits of the type."""
    return at_type_limits(values, finfo(spec.dtype), g)
