"""Layouts, swizzles, and a swizzle over a layout (CUTLASS, media/docs/cpp/cute/01_layout.md; cute/swizzle.hpp)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cutegen_lab.core.errors import InputError
from cutegen_lab.layouts.int_tuple import (
    IntTuple,
    column_major,
    congruent,
    flatten,
    idx2crd,
    modes,
    product,
    written,
)


@dataclass(frozen=True)
class Layout:
    """Maps coordinates of ``shape`` to indices: the sum of each coordinate times its ``stride``, of equal nesting.

    Raises InputError if the nesting differs, or for extents below 1.
    """

    shape: IntTuple
    stride: IntTuple

    def __post_init__(self) -> None:
        if not congruent(self.shape, self.stride):
            message = f"shape {written(self.shape)} and stride {written(self.stride)} are not nested alike"
            raise InputError(message, "Give one stride for each extent.")
        if any(extent < 1 for extent in flatten(self.shape)):
            raise InputError(f"shape {written(self.shape)} has an extent below 1", "Use whole numbers from 1.")

    @classmethod
    def dense(cls, shape: IntTuple) -> Layout:
        """The compact layout of ``shape`` whose leftmost mode is contiguous."""
        return cls(shape, column_major(shape))

    @classmethod
    def joined(cls, *parts: Layout) -> Layout:
        """A layout with ``parts`` as modes."""
        return cls(tuple(part.shape for part in parts), tuple(part.stride for part in parts))

    @property
    def rank(self) -> int:
        return len(modes(self.shape))

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return product(self.shape)

    @property
    def cosize(self) -> int:
        """Largest minus smallest index, plus 1."""
        return 1 + sum((extent - 1) * abs(step) for extent, step in self.pairs())

    @property
    def modes(self) -> tuple[Layout, ...]:
        return tuple(map(Layout, modes(self.shape), modes(self.stride)))

    def pairs(self) -> Iterator[tuple[int, int]]:
        """(extent, stride) of each leaf."""
        return zip(flatten(self.shape), flatten(self.stride), strict=True)

    def __call__(self, coordinate: IntTuple) -> int:
        """Index of a coordinate with the shape's nesting or a coarser one: a number indexes a mode, leftmost fastest.

        Raises InputError for one of another nesting.
        """
        return _index(coordinate, self.shape, self.stride)

    def __str__(self) -> str:
        return f"{written(self.shape)}:{written(self.stride)}"


@dataclass(frozen=True)
class Swizzle:
    """``Sw<bits,base,shift>``: xors ``bits`` bits of an index, from bit ``base`` on, with the bits ``shift`` above
    (below, if negative).

    Raises InputError if ``bits`` is more than the magnitude of ``shift``, which CuTe does not allow either.
    """

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        if self.bits < 0 or self.base < 0 or abs(self.shift) < self.bits:
            raise InputError(f"{self} is no swizzle", "Use bits and base of at least 0, and a shift of at least bits.")

    def __call__(self, index: int) -> int:
        mask = ((1 << self.bits) - 1) << self.base + max(self.shift, 0)
        chosen = index & mask
        return index ^ (chosen >> self.shift if self.shift >= 0 else chosen << -self.shift)

    def __str__(self) -> str:
        return f"Sw<{self.bits},{self.base},{self.shift}>"


@dataclass(frozen=True)
class Swizzled:
    """``Sw<…> o offset o layout``: swizzles the sum of the layout's index and the offset."""

    swizzle: Swizzle
    offset: int
    layout: Layout

    @property
    def shape(self) -> IntTuple:
        return self.layout.shape

    @property
    def size(self) -> int:
        return self.layout.size

    @property
    def cosize(self) -> int:
        """Cosize of the layout without the swizzle, as in CuTe."""
        return self.layout.cosize

    def __call__(self, coordinate: IntTuple) -> int:
        return self.swizzle(self.offset + self.layout(coordinate))

    def __str__(self) -> str:
        return f"{self.swizzle} o {self.offset} o {self.layout}"


AnyLayout = Layout | Swizzled


def plain_part(layout: AnyLayout) -> Layout:
    """The layout without its swizzle, if it has one."""
    return layout.layout if isinstance(layout, Swizzled) else layout


def _index(coordinate: IntTuple, shape: IntTuple, stride: IntTuple) -> int:
    if isinstance(coordinate, int):
        if isinstance(shape, int) and isinstance(stride, int):
            return coordinate * stride
        return _index(idx2crd(coordinate, shape), shape, stride)
    if isinstance(shape, int) or isinstance(stride, int) or len(shape) != len(coordinate):
        raise InputError(f"{written(coordinate)} is no coordinate of {written(shape)}", "Nest it like the shape.")
    return sum(map(_index, coordinate, shape, stride))
