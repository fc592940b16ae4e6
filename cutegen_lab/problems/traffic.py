"""Elements in memory that an ATen operator reads and writes, each once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from cutegen_lab.problems.drawn import DrawnIndices, distinct

# Operators that launch nothing, besides views: they allocate, or share memory without saying so in their schema.
_FREE = {
    "_unsafe_view", "empty", "empty_like", "empty_permuted", "empty_strided", "lift_fresh", "lift_fresh_copy",
    "new_empty", "new_empty_strided", "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes",
}  # fmt: skip
_OVERWRITING = {"copy_", "fill_", "zero_"}  # operators that write their first operand without reading it
# Operators that read elements of their first operand by indices: as many as the result has.
_GATHERING = {"_unsafe_index", "embedding", "gather", "index", "index_select", "take"}
_BAGS = {"_embedding_bag", "_embedding_bag_forward_only"}  # operators that read a row for each index
_LOSSES = {"nll_loss_forward", "nll_loss2d_forward"}  # operators that read an element for each target
# In-place operators that change as many elements of their first operand as their largest other operand has; the second
# set reads these elements first.
_REPLACING = {"_index_put_impl_", "index_copy_", "index_put_", "masked_scatter_", "put_", "scatter_"}
_ADDING = {"index_add_", "index_reduce_", "scatter_add_", "scatter_reduce_"}
_MARKS = 1 << 28  # maximum number of units of a tensor that are marked to find what several parts cover


@dataclass(frozen=True)
class Part:
    """Elements of a tensor in memory; equal if they are the same elements."""

    memory: int
    """Identifies the allocation, as long as a tensor uses it."""
    place: tuple[Any, ...]
    """Dtype, offset, sizes and strides."""
    nbytes: int
    """Bytes, each element once; an upper limit for elements chosen by indices."""
    indices: tuple[Part, ...] = ()
    """The indices' parts, for elements chosen by indices."""
    least_bytes: int = 0
    """Lower limit of the bytes of elements chosen by indices, for the indices of a timed call (``drawn.py``)."""

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Part:
        """All elements of ``tensor``. A sparse tensor, whose size is data, counts no bytes."""
        if tensor.layout is not torch.strided:
            return cls(id(tensor), (), 0)
        place = (tensor.dtype, tensor.storage_offset(), tuple(tensor.shape), tensor.stride())
        return cls(tensor.untyped_storage()._cdata, place, distinct(tensor) * tensor.element_size())

    def chosen(self, nbytes: int, indices: Sequence[Part], least_bytes: int = 0) -> Part:
        """From ``least_bytes`` to ``nbytes`` of it, chosen by ``indices``."""
        least = min(least_bytes, self.nbytes)
        return Part(self.memory, self.place, min(nbytes, self.nbytes), tuple(indices), least)


def covered_bytes(tensor: torch.Tensor, parts: Sequence[Part]) -> int:
    """Bytes of ``tensor`` that ``parts``, none of them chosen by indices, have together; a lower limit for several
    parts of a very large tensor that have no common granularity."""
    most = max((part.nbytes for part in parts), default=0)
    whole, size = Part.of(tensor).nbytes, tensor.untyped_storage().nbytes()
    if len(parts) < 2 or most >= whole:
        return min(most, whole)
    runs = [_runs(part) for part in parts if part.nbytes]
    unit = math.gcd(*(n for offset, run, outer in runs for n in (offset, run, *(step for step, _ in outer))))
    if size // unit > _MARKS:
        return most
    with unset_fake_temporarily():
        marks = torch.zeros(-(-size // unit), dtype=torch.bool, device="cpu")
        for offset, run, outer in runs:
            sizes, steps = [n for _, n in outer], [step // unit for step, _ in outer]
            marks.as_strided((*sizes, run // unit), (*steps, 1), offset // unit).fill_(True)
        return min(int(marks.count_nonzero()) * unit, whole)


def _runs(part: Part) -> tuple[int, int, list[tuple[int, int]]]:
    """A part as runs of bytes: where the first begins, the length of each, and (step, number) of each dimension along
    which they repeat."""
    dtype, offset, shape, strides = part.place
    run, outer = 1, list[tuple[int, int]]()
    for step, size in sorted((step, size) for step, size in zip(strides, shape, strict=True) if size > 1 and step > 0):
        if step == run and not outer:
            run *= size
        else:
            outer.append((step * dtype.itemsize, size))
    return offset * dtype.itemsize, run * dtype.itemsize, outer


def written(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Iterator[Part]:
    """New results, and arguments that the operator changes; nothing if the operator launches no kernel."""
    if func._opname in _FREE or torch.Tag.inplace_view in func.tags:
        return
    schema = func._schema
    results = result if len(schema.returns) > 1 else (result,)
    for returned, value in zip(schema.returns, results, strict=False):
        if returned.alias_info is None:
            yield from map(Part.of, tensors([value]))
    given = {argument.name: value for argument, value in zip(schema.arguments, args, strict=False)} | dict(kwargs)
    for argument in schema.arguments:
        if argument.is_write and argument.name in given:
            for tensor in tensors([given[argument.name]]):
                yield _touched(func, args, Part.of(tensor))


def read(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any, drawn: DrawnIndices) -> Iterator[Part]:
    """Operands that the operator reads."""
    operands = list(tensors([*args, *(value for name, value in kwargs.items() if name != "out")]))
    if not operands:
        return
    first, name = operands[0], func._opname
    own, *parts = map(Part.of, operands)
    if (chosen := _chosen_elements(name, args, result)) is not None:
        least = drawn.least_elements(func, args, result)
        yield own.chosen(chosen * first.element_size(), parts, least * first.element_size())
    elif name in _ADDING:
        yield _touched(func, args, own)
    elif name not in _OVERWRITING | _REPLACING:
        yield own
    yield from parts


def tensors(values: Sequence[Any]) -> Iterator[torch.Tensor]:
    """Tensors among ``values``, and in the sequences among them."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, tuple | list):
            yield from tensors(value)


def _touched(func: Any, args: Sequence[Any], own: Part) -> Part:
    """The elements of ``own``, the first operand, that an in-place operator changes."""
    if func._opname not in _REPLACING | _ADDING:
        return own
    others = list(tensors(args[1:]))
    most = max((tensor.numel() for tensor in others), default=0)
    return own.chosen(most * args[0].element_size(), [Part.of(tensor) for tensor in others])


def _chosen_elements(name: str, args: Sequence[Any], result: torch.Tensor) -> int | None:
    """Number of elements of the first operand that the operator chooses by indices; None if it reads all."""
    if name in _GATHERING:
        return int(result.numel())
    if name in _BAGS:
        return int(args[1].numel() * args[0].shape[-1])
    return int(args[1].numel()) if name in _LOSSES else None
