"""Finds which dimensions of different tensors are the same: broadcasting as unification.

Every dimension of every input gets a symbol. If two values are combined, the symbols of aligned dimensions (from the
right, as PyTorch broadcasts) are unified, unless one dimension has size 1 and the other is larger. The remaining
symbols are the dimensions of the iteration space, for any ranks and any unsqueezing in the reference.

A view that regroups dimensions splits symbols into parts and joins symbols. A joined symbol stands for its parts,
outermost first; unified dimensions are split in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


class Misfit(Exception):
    """A view's dimensions cannot be expressed as parts, or products of parts, of the dimensions they are unified
    with."""


class Axes:
    """The symbols of all dimensions: which are unified, their sizes (elements), and the parts of split ones. Methods
    raise :class:`Misfit` if a view does not fit the parts."""

    def __init__(self) -> None:
        self._parent: list[int] = []
        self._size: list[int] = []
        self._made: set[int] = set()
        self._parts: dict[int, tuple[int, ...]] = {}

    def fresh(self, size: int, *, made: bool = False) -> int:
        """A new symbol of ``size``. ``made``: the reference inserted this size-1 dimension (unsqueeze, keepdim)."""
        self._parent.append(len(self._parent))
        self._size.append(size)
        if made:
            self._made.add(len(self._parent) - 1)
        return len(self._parent) - 1

    def find(self, symbol: int) -> int:
        while self._parent[symbol] != symbol:
            symbol = self._parent[symbol]
        return symbol

    def resolve(self, symbols: Sequence[int]) -> tuple[int, ...]:
        """``symbols`` with each split symbol replaced by its parts."""
        return tuple(part for s in symbols for part in self.parts(s))

    def parts(self, symbol: int) -> tuple[int, ...]:
        symbol = self.find(symbol)
        return self.resolve(self._parts[symbol]) if symbol in self._parts else (symbol,)

    def whole(self, symbol: int) -> bool:
        return self.find(symbol) not in self._parts

    def split(self, symbol: int, sizes: Sequence[int]) -> tuple[int, ...]:
        """Splits ``symbol`` into symbols of ``sizes``, whose product is its size, and returns these. Raises Misfit if
        ``symbol`` already has incompatible parts."""
        made = self.join([self.fresh(size) for size in sizes])
        self.unify(symbol, made)
        return self._parts[made]

    def join(self, symbols: Sequence[int]) -> int:
        """The symbol of a dimension that is the product of ``symbols``; the same symbol in every call."""
        wanted = self.resolve(symbols)
        if len(wanted) == 1:
            return wanted[0]
        for symbol in self._parts:
            if self.parts(symbol) == wanted:
                return symbol
        joined = self.fresh(math.prod(self.size(s) for s in wanted))
        self._parts[joined] = tuple(symbols)
        return joined

    def regrouped(self, symbols: Sequence[int], sizes: Sequence[int]) -> list[int]:
        """Symbols of the dimensions of a view of ``symbols`` with ``sizes``, none of which is 1. Raises Misfit."""
        shape = [self.size(s) for s in symbols]
        left = [s for s in self.resolve(symbols) if self.size(s) > 1]
        result = []
        for size in sizes:
            taken = list[int]()
            while (reached := math.prod(map(self.size, taken))) < size and left:
                lacking, rest = divmod(size, reached)
                first = left.pop(0)
                if self.size(first) > lacking and not rest and not self.size(first) % lacking:
                    first, second = self.split(first, (lacking, self.size(first) // lacking))
                    left.insert(0, second)
                taken.append(first)
            if reached != size:
                raise Misfit(f"a view that neither splits nor joins whole dimensions ({shape} as {list(sizes)})")
            result.append(self.join(taken))
        return result

    def size(self, symbol: int) -> int:
        return self._size[self.find(symbol)]

    def is_made(self, symbol: int) -> bool:
        """Whether ``symbol`` is a size-1 dimension that the reference inserted."""
        return self.find(symbol) in self._made

    def unify(self, first: int, second: int) -> int:
        """Makes both symbols the same dimension. Raises Misfit if their parts are incompatible."""
        first, second = self.find(first), self.find(second)
        if first != second and not (self.whole(first) and self.whole(second)):
            self._align(first, second)
        elif first != second:
            self._parent[second] = first
            if second not in self._made:
                self._made.discard(first)
        return first

    def _align(self, first: int, second: int) -> None:
        """Splits both symbols into parts of equal sizes."""
        for one, other in ((first, second), (second, first)):
            if self.whole(one):
                self._parts[one] = self._parts[other]
                return
        mine, theirs = ([p for p in self.parts(s) if self.size(p) > 1] for s in (first, second))
        while mine and theirs:
            small, large, rest = mine.pop(0), theirs.pop(0), theirs
            if self.size(small) > self.size(large):
                small, large, rest = large, small, mine
            if self.size(small) < self.size(large):
                count, uneven = divmod(self.size(large), self.size(small))
                if uneven:
                    raise Misfit("views with incompatible dimensions")
                large, left = self.split(large, (self.size(small), count))
                rest.insert(0, left)
            self.unify(small, large)

    def broadcast(self, values: Sequence[Sequence[int]]) -> tuple[int, ...]:
        """Axes of an elementwise result of values with these axes."""
        rank = max((len(v) for v in values), default=0)
        result = []
        for position in range(-rank, 0):
            here = [v[position] for v in values if len(v) >= -position]
            large = [s for s in here if self.size(s) > 1]
            walking = large or here
            symbol = walking[0]
            for other in walking[1:]:
                symbol = self.unify(symbol, other)
            result.append(symbol)
        return tuple(result)
