"""Draws integers that follow a rule of the problem: cumulative lengths and page tables.

Lengths include cases that kernels get wrong: one sequence with all tokens, empty ones at either end, very short ones,
equal ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.problems.dtypes import TORCH
from cutegen_lab.problems.rules import sample
from cutegen_lab.problems.tensors import placed

_SHORT = 4  # short sequences have fewer tokens than this


def apply_rules(tensors: Sequence[torch.Tensor], workload: Workload, generator: torch.Generator) -> list[torch.Tensor]:
    """``tensors`` (inputs of ``workload``) with those that have a rule replaced."""
    return [
        placed(_draw_by_rule(spec, tensor, generator).to(tensor.device, TORCH[spec.dtype]), spec)
        if spec.rule
        else tensor
        for tensor, spec in zip(tensors, workload.inputs, strict=True)
    ]


def _draw_by_rule(spec: TensorSpec, drawn: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """``drawn``: values drawn without the rule; for a range they are reduced modulo ``below``, which keeps patterns."""
    where = generator.device
    if spec.rule == "sorted" and spec.shape[-1:] > (1,):
        rows = max(spec.numel // spec.shape[-1], 1)
        each = [_lengths(spec.shape[-1] - 1, spec.below, generator) for _ in range(rows)]
        return torch.stack(each).view(spec.shape)
    if spec.rule == "distinct" and spec.numel <= spec.below:
        return _distinct(spec.numel, spec.below, generator).view(spec.shape)
    if spec.rule == "range":
        return torch.remainder(drawn.long(), spec.below)
    return sample(spec).to(where)  # the shape does not fit the rule, as for pieces of an input


def _distinct(count: int, below: int, generator: torch.Generator) -> torch.Tensor:
    """``count`` different numbers: in any order, or a run of neighbours, up or down."""
    where = generator.device
    order = int(torch.randint(4, (), generator=generator, device=where))
    if order > 1:
        return torch.randperm(below, generator=generator, device=where)[:count]
    run = torch.arange(count, device=where) + torch.randint(below - count + 1, (), generator=generator, device=where)
    return run.flip(0) if order else run


def _lengths(count: int, total: int, generator: torch.Generator) -> torch.Tensor:
    """[count + 1] cumulative lengths of ``count`` sequences, from 0 to ``total``."""
    where = generator.device
    kind = int(torch.randint(6, (), generator=generator, device=where))
    if kind == 0:
        lengths = torch.arange(1, count + 1, device=where) * total // count
        lengths = torch.diff(lengths, prepend=lengths.new_zeros(1))
    elif kind == 1:  # one sequence has all tokens
        lengths = torch.zeros(count, dtype=torch.int64, device=where)
        lengths[int(torch.randint(count, (), generator=generator, device=where))] = total
    elif kind == 2:  # short sequences, and one with the rest
        lengths = torch.randint(_SHORT, (count,), generator=generator, device=where)
        lengths = lengths.minimum((total - (lengths.cumsum(0) - lengths)).clamp_min(0))
        lengths[-1] += total - lengths.sum()
        lengths = lengths[torch.randperm(count, generator=generator, device=where)]
    else:
        ends = torch.randint(total + 1, (count - 1,), generator=generator, device=where).sort().values
        if kind == 3:  # an empty sequence at either end
            ends[:1], ends[1:][-1:] = 0, total
        zero, whole = ends.new_zeros(1), ends.new_full((1,), total)
        lengths = torch.diff(torch.cat([zero, ends.sort().values, whole]))
    return torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
