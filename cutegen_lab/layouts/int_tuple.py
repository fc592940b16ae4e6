"""Nested tuples of integers: shapes, strides and coordinates of CuTe (CUTLASS, media/docs/cpp/cute/01_layout.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import TypeAlias

IntTuple: TypeAlias = "int | tuple[IntTuple, ...]"


def flatten(nested: IntTuple) -> tuple[int, ...]:
    return (nested,) if isinstance(nested, int) else tuple(leaf for part in nested for leaf in flatten(part))


def product(nested: IntTuple) -> int:
    return prod(flatten(nested))


def modes(nested: IntTuple) -> tuple[IntTuple, ...]:
    """The items of a tuple; a number is its own only item."""
    return (nested,) if isinstance(nested, int) else nested


def congruent(one: IntTuple, other: IntTuple) -> bool:
    """True if two tuples have the same nesting."""
    if isinstance(one, int) or isinstance(other, int):
        return isinstance(one, int) and isinstance(other, int)
    return len(one) == len(other) and all(map(congruent, one, other))


def like(profile: IntTuple, leaves: Iterator[int]) -> IntTuple:
    """``leaves``, nested as ``profile``."""
    return next(leaves) if isinstance(profile, int) else tuple(like(part, leaves) for part in profile)


def column_major(shape: IntTuple, first: int = 1) -> IntTuple:
    """Strides of a dense layout whose leftmost mode is contiguous."""

    def strides() -> Iterator[int]:
        step = first
        for extent in flatten(shape):
            yield step
            step *= extent

    return like(shape, strides())


def idx2crd(index: int, shape: IntTuple) -> IntTuple:
    """Coordinate of ``index`` in ``shape``, leftmost mode fastest. Indices beyond the shape extend the last mode."""
    extents, found = flatten(shape), []
    for at, extent in enumerate(extents):
        last = at == len(extents) - 1
        found.append(index if last else index % extent)
        index = 0 if last else index // extent
    return like(shape, iter(found))


def written(nested: object, spelled: Callable[[int], str] = str) -> str:
    """``nested`` as CuTe prints it: ``((2,4),8)``."""
    if isinstance(nested, Sequence) and not isinstance(nested, str):
        return f"({','.join(written(part, spelled) for part in nested)})"
    return spelled(nested) if isinstance(nested, int) else str(nested)
