"""Which dimensions of different tensors are one and the same: broadcasting as unification.

Every dimension of every input gets a symbol. Combining two values unifies the symbols of dimensions that walk together
(aligned from the right, as PyTorch broadcasts) and leaves a dimension of size 1 apart from a larger one. What remains
are the dimensions of the iteration space, whatever the tensors' ranks and however the reference unsqueezed them.
"""

from __future__ import annotations

from collections.abc import Sequence


class Axes:
    def __init__(self) -> None:
        self._parent: list[int] = []
        self._size: list[int] = []
        self._made: set[int] = set()

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
        return tuple(self.find(s) for s in symbols)

    def size(self, symbol: int) -> int:
        return self._size[self.find(symbol)]

    def is_made(self, symbol: int) -> bool:
        """Only ever a size-1 dimension that the reference itself inserted."""
        return self.find(symbol) in self._made

    def unify(self, first: int, second: int) -> int:
        first, second = self.find(first), self.find(second)
        if first != second:
            self._parent[second] = first
            if second not in self._made:
                self._made.discard(first)
        return first

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
