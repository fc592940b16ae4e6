"""Elements that a kernel must read of a tensor that is read by indices, in a timed call.

A lower bound for the values that the judge draws, since the analyst's indices are not timed. In a timed call
(``judge.draws.inputs.fill``, the draw "normal") the indices of an input are independent, uniform numbers below the size
that they index, so some repeat, and a kernel reads a repeated row once. Therefore a gather counts the number of
different indices that nearly all draws reach (:func:`surely_different`), not a row for each index. Only the rule
"distinct" makes all indices different.

Indices that the reference computes (from numbers, by arithmetic, or constants such as ``arange``) may all be equal, as
far as is known here: they count as one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from cutegen_lab.core.problem import TensorSpec

DRAWN_AT_ONCE = 1 << 22
"""Numbers of an input that the judge draws for a timed call; a larger input repeats them (``judge.draws.values``)."""
WITHIN_RANGE = 0.7
"""Least expected share of indices within their range, if the input may have other values (``TensorSpec.beside``)."""
_DEVIATIONS, _RARE = 3.0, 1 / 700  # so far below its mean, a number is with this probability
_COPIES = {"_to_copy", "clone"}
_BAGS = {"_embedding_bag", "_embedding_bag_forward_only"}
_LOSSES = {"nll_loss_forward", "nll_loss2d_forward"}


class DrawnIndices:
    """Which integer tensors hold the values of an input, while a reference runs on fake tensors: the inputs
    (``specs``, ``tensors``), views of them, and copies with 32 or 64 bits."""

    def __init__(self, specs: Sequence[TensorSpec], tensors: Sequence[torch.Tensor]) -> None:
        whole = [(spec, tensor) for spec, tensor in zip(specs, tensors, strict=True) if not spec.dtype.is_float]
        self._specs = {_memory(tensor): spec for spec, tensor in whole}

    def follow(self, func: Any, args: Sequence[Any], result: Any, written: Sequence[int]) -> None:
        """Notes what an operator does to an input's integers: copies them, or overwrites a copy. ``written``: memory
        that it writes."""
        for memory in written:
            self._specs.pop(memory, None)
        whole = func._opname in _COPIES and not result.is_floating_point() and result.element_size() >= 4
        if whole and (spec := self._specs.get(_memory(args[0]))) is not None:
            self._specs[_memory(result)] = spec

    def least_elements(self, func: Any, args: Sequence[Any], result: Any) -> int:
        """Minimum number of different elements that the operator ``func`` reads of its first operand by indices; 0 for
        operators without a rule here."""
        name, table = func._opname, args[0]
        if name in _LOSSES:  # an element of each row, unless the target is ignored
            return int(WITHIN_RANGE * args[1].numel())
        if name == "take":
            return self._different(args[1], table.numel())
        if name in ("embedding", *_BAGS):
            return self._rows(table, 0, args[1])
        if name == "index_select":
            return self._rows(table, args[1], args[2])
        if name == "gather":  # elements differ unless they differ only along the dimension that is indexed
            _, dim, index = args
            length = index.shape[dim] if index.dim() else 1
            draws = length if not index.dim() or index.stride(dim) else 1
            size = table.shape[dim] if table.dim() else 1
            return int(index.numel() // max(length, 1)) * self._different(index, size, draws)
        if name in ("index", "_unsafe_index"):
            chosen = {dim: index for dim, index in enumerate(args[1]) if index is not None}
            tuples = math.prod(torch.broadcast_shapes(*(index.shape for index in chosen.values())))
            most = max(self._different(index, table.shape[dim]) for dim, index in chosen.items())
            return most * int(result.numel() // max(tuples, 1))
        return 0

    def _rows(self, table: torch.Tensor, dim: int, index: torch.Tensor) -> int:
        """Minimum number of elements in the slices of ``table`` along ``dim`` that ``index`` chooses."""
        size = table.shape[dim] if table.dim() else 1
        return self._different(index, size) * int(table.numel() // max(size, 1))

    def _different(self, index: torch.Tensor, size: int, draws: int | None = None) -> int:
        """Minimum number of different values below ``size`` among ``draws`` elements of ``index`` (None: all)."""
        count = distinct(index) if draws is None else draws
        spec = self._specs.get(_memory(index))
        if not count or spec is None or not spec.below or spec.rule == "sorted":
            return min(count, 1)
        if spec.rule == "distinct":
            return min(count, size)
        count = min(count, DRAWN_AT_ONCE)
        return surely_different(int(count * WITHIN_RANGE) if spec.beside else count, min(spec.below, size))


def surely_different(draws: int, cells: int) -> int:
    """Number of different values that nearly all sets of ``draws`` uniform numbers below ``cells`` reach: three
    standard deviations below the mean (occupied cells: Johnson and Kotz 1977, Urn Models, §3.2), or ``cells`` if hardly
    any set leaves one out; at least 1."""
    load = draws / cells
    empty = math.exp(-load)
    if cells * empty < _RARE:
        return cells
    mean, variance = cells * (1 - empty), cells * empty * (1 - (1 + load) * empty)
    return max(math.floor(mean - _DEVIATIONS * math.sqrt(max(variance, 0.0))), 1)


def distinct(tensor: torch.Tensor) -> int:
    """Number of different elements in memory: an expanded dimension has one, and windows overlap."""
    if not tensor.numel():
        return 0
    sizes = list(zip(tensor.shape, tensor.stride(), strict=True))
    spanned = 1 + sum((size - 1) * step for size, step in sizes)
    return int(min(math.prod(size for size, step in sizes if step), spanned))


def _memory(tensor: torch.Tensor) -> int:
    """Identifies the allocation, as long as a tensor uses it."""
    return int(tensor.untyped_storage()._cdata)
