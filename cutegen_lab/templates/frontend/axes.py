"""Which dimensions of different tensors are one and the same: broadcasting as unification.

Every dimension of every input gets a symbol. Combining two values unifies the symbols of dimensions that walk together
(aligned from the right, as PyTorch broadcasts) and leaves a dimension of size 1 apart from a larger one. What remains
are the dimensions of the iteration space, whatever the tensors' ranks and however the reference unsqueezed them.

A view that regroups dimensions splits symbols into parts and makes symbols of several: each stands for its parts, the
outermost first, and dimensions that walk together are split alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


class Misfit(Exception):
    """A view's dimensions are no whole parts, or products of parts, of those that they walk with."""


class Axes:
    def __init__(self) -> None:
        self._parent: list[int] = []
        self._size: list[int] = []
        self._made: set[int] = set()
        self._parts: dict[int, tuple[int, ...]] = {}

    def fresh(self, size: int, *, made: bool = False) -> int:
        """A new symbol. ``made``: the reference inserted this size-1 dimension (unsqueeze, keepdim)."""
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
        """Those that ``symbols`` stand for, their parts where they have some."""
        return tuple(part for s in symbols for part in self.parts(s))

    def parts(self, symbol: int) -> tuple[int, ...]:
        symbol = self.find(symbol)
        return self.resolve(self._parts[symbol]) if symbol in self._parts else (symbol,)

    def whole(self, symbol: int) -> bool:
        return self.find(symbol) not in self._parts

    def split(self, symbol: int, sizes: Sequence[int]) -> tuple[int, ...]:
        """Symbols of ``sizes`` that ``symbol``, their product long, stands for from now on. Raises Misfit where it has
        parts that do not fit into those."""
        made = self.join([self.fresh(size) for size in sizes])
        self.unify(symbol, made)
        return self._parts[made]

    def join(self, symbols: Sequence[int]) -> int:
        """A symbol for a dimension that walks along all of ``symbols``: the same one at every call."""
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
        """The dimensions of a view of ``symbols`` with ``sizes``, none of which is 1. Raises Misfit."""
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
                raise Misfit(f"a view that mixes dimensions ({shape} as {list(sizes)})")
            result.append(self.join(taken))
        return result

    def size(self, symbol: int) -> int:
        return self._size[self.find(symbol)]

    def is_made(self, symbol: int) -> bool:
        """Only ever a size-1 dimension that the reference itself inserted."""
        return self.find(symbol) in self._made

    def unify(self, first: int, second: int) -> int:
        """Both walk together from now on. Raises Misfit where one's parts do not fit into the other's."""
        first, second = self.find(first), self.find(second)
        if first != second and not (self.whole(first) and self.whole(second)):
            self._align(first, second)
        elif first != second:
            self._parent[second] = first
            if second not in self._made:
                self._made.discard(first)
        return first

    def _align(self, first: int, second: int) -> None:
        """Splits parts of both until they are alike."""
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
                    raise Misfit("views whose dimensions do not fit into each other")
                large, left = self.split(large, (self.size(small), count))
                rest.insert(0, left)
            self.unify(small, large)

    def broadcast(self, values: Sequence[Sequence[int]]) -> tuple[int, ...]:
        """The axes of an elementwise result of values with these axes."""
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
