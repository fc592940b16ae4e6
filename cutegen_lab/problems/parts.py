"""Finds which dimensions a reference divides into equal parts: halves of a rotary embedding, thirds of a fused QKV
projection.

A derived workload must be divided in the same way; otherwise the reference would be another function on it: ``x[...,
:32]`` is half of 64 but not half of 61, and neither is ``x[..., : x.shape[-1] // 2]``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_MOST_PARTS = 4

Cut = tuple[Fraction, ...]  # start and end of a part, as fractions of the dimension's size


class Cuts(TorchDispatchMode):
    """While active, records every slice and split in order: ``found``."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Cut] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        self.found += _cuts(str(func), args)
        return func(*args, **(kwargs or {}))


def alike(main: Sequence[Cut], other: Sequence[Cut]) -> bool:
    """Whether ``other`` has every cut of ``main`` into equal parts, at the same fractions."""
    if not any(map(_equal_parts, main)):
        return True
    return len(main) == len(other) and all(a == b for a, b in zip(main, other, strict=True) if _equal_parts(a))


def _equal_parts(cut: Cut) -> bool:
    return any(0 < at < 1 for at in cut) and all(at.denominator <= _MOST_PARTS for at in cut)


def _cuts(operator: str, args: tuple[Any, ...]) -> Iterator[Cut]:
    tensor = args[0] if args else None
    if not isinstance(tensor, torch.Tensor) or not tensor.dim():
        return
    if operator == "aten.slice.Tensor":
        dim = args[1] if len(args) > 1 else 0
        start, end = (*args[2:4], None, None)[:2]
        size = tensor.shape[dim]
        if size:
            begin, stop, _ = slice(start, end).indices(size)
            yield Fraction(begin, size), Fraction(stop, size)
    elif operator in ("aten.split.Tensor", "aten.split_with_sizes.default"):
        size = tensor.shape[args[2] if len(args) > 2 else 0]
        sizes = [args[1]] if isinstance(args[1], int) else list(args[1])
        if size:
            yield tuple(Fraction(sum(sizes[:count]), size) for count in range(1, len(sizes) + 1))
