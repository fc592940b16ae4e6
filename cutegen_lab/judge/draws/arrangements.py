"""Structured draws of order and repetition: sorted, constant, sparse, periodic, of low rank."""

from __future__ import annotations

import torch

from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.judge.draws.float_tensors import random_below
from cutegen_lab.judge.draws.values import between, rand

_TIMES = (1, 2, 3, 4, 6, 8, 12, 16)


def sorted_rows(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """Sorted rows, ascending or descending."""
    return values.sort(-1, descending=between(0, 1, g) < 0.5)[0] if spec.shape else values


def constant_rows(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """Constant rows, or constant blocks of the last two, three … dimensions."""
    if not spec.shape:
        return values
    first = values[(..., *(slice(1),) * (1 + random_below(len(spec.shape), g)))]
    return first.expand_as(values).contiguous()


def clustered(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """A quarter of each row lies just below its maximum."""
    if not spec.shape:
        return values
    near = values.amax(-1, keepdim=True) - rand(spec.shape, g) * 2**-7
    return torch.where(rand(spec.shape, g) < 0.25, near, values)


def block_sparse(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """Square blocks of 8 to 64, three quarters of them zero."""
    side = 8 << random_below(4, g)
    coarse = tuple(-(-size // side) for size in spec.shape)
    mask = (rand(coarse, g) < 0.25).float()
    for dim, size in enumerate(spec.shape):
        mask = mask.repeat_interleave(side, dim).narrow(dim, 0, size)
    return values * mask


def low_rank(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """A matrix of rank one, plus noise a thousandth as large."""
    if len(spec.shape) < 2:
        return values
    row = values[..., :1, :]
    column = values[..., :1]
    return row * column + values * 2**-10


def nearly_regular(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """Rows that are sorted, constant, multiples of one row, or zero after some column, except a few rows or elements,
    which a kernel that only samples its input would miss."""
    if not spec.shape:
        return values
    columns = torch.arange(spec.shape[-1])
    tail = columns < between(0, 1, g) * spec.shape[-1]
    kinds = (values.sort(-1)[0], values[..., :1].expand_as(values), low_rank(values, spec, g), values * tail)
    by_row = between(0, 1, g) < 0.5
    where = (*spec.shape[:-1], 1) if by_row else spec.shape
    flat = rand(where, g).view(-1) < (2**-6 if by_row else 2**-8)
    flat[random_below(flat.numel(), g)] = True
    return torch.where(flat.view(where), values * 8, kinds[random_below(len(kinds), g)])


def periodic(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """Inputs for kernels that sample every second, fourth or eighth row or column. Sampled rows hold sorted negative
    numbers, then zeros; in the other rows the sampled columns are sorted, and the largest numbers lie in columns that
    are not sampled, at equal intervals, which are drawn for each row."""
    if not spec.shape:
        return values
    rows = values.reshape(-1, spec.shape[-1])
    count, length = rows.shape
    period, chosen = ((2, 1), (4, 2))[random_below(2, g)]
    row, column = torch.arange(count)[:, None], torch.arange(length)
    apart = period * torch.tensor(_TIMES)[torch.randint(len(_TIMES), (count, 1), generator=g)]
    place = period * (rand((count, 1), g) * (apart // period)).long() + period - 1
    ordered = rows.sort(-1)[0]
    spread = torch.where(column % apart == place, rows.abs() + 4.0, rows)
    spread = torch.where(column % period < chosen, ordered, spread)
    quiet = torch.where(column <= between(0, 0.5, g) * length, -rows.abs().sort(-1, descending=True)[0], 0.0)
    alike = (row % period < chosen) & (count > 1)
    return torch.where(alike, quiet, spread).view(spec.shape)


def sparse(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """A few per cent of the numbers are non-zero, at least one in each row."""
    if not spec.shape:
        return values
    kept = rand(spec.shape, g) < between(0.0, 0.05, g)
    place = (rand((*spec.shape[:-1], 1), g) * spec.shape[-1]).long()
    return torch.where(kept.scatter(-1, place, True), values, 0.0)


def quantised(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """Rows of integers, halves, quarters or eighths with many duplicates; non-negative half of the time."""
    steps = 2.0 ** torch.randint(4, (*spec.shape[:-1], 1) if spec.shape else (), generator=g)
    numbers = (values * between(1, 4, g) * steps).round() / steps
    return numbers.abs() if between(0, 1, g) < 0.5 else numbers


def repeated_rows(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """Copies of two rows, most of them with one or two changed numbers; one row in sixteen is no copy."""
    if len(spec.shape) < 2:
        return values
    rows = values.reshape(-1, spec.shape[-1])
    which = torch.randint(2, (rows.shape[0], 1), generator=g)
    alike = torch.where(which == 0, rows[:1], rows[-1:])
    differ = rand(tuple(rows.shape), g) < 1 / max(rows.shape[-1], 1)
    differ |= rand((rows.shape[0], 1), g) < 2**-4
    return torch.where(differ, rows, alike).view(spec.shape)


def shares(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """Rows that sum to one, as a softmax produces."""
    return (values * between(0.25, 1, g)).softmax(-1) if spec.shape else values
