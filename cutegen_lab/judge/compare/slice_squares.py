"""Sums of squares of each row and column of a large tensor, added up in parts that fit a cache."""

from __future__ import annotations

import torch


class SliceSquares:
    """Sums of squares of the rows and columns of a tensor with ``columns`` columns and the number of elements of
    ``like``."""

    def __init__(self, like: torch.Tensor, columns: int) -> None:
        self.columns, self._rows, self._columns = (
            columns,
            like.new_zeros(like.numel() // columns),
            like.new_zeros(columns),
        )
        self._most = [torch.zeros_like(self._rows), torch.zeros_like(self._columns)]

    def add(self, start: int, values: torch.Tensor, largest: bool = False) -> None:
        """Adds whole rows of flat ``values``, from flat index ``start`` on. ``largest``: also records the largest
        squares, for :meth:`largest_shares`."""
        squares = values.view(-1, self.columns).square()
        some = slice(start // self.columns, start // self.columns + len(squares))
        self._rows[some] = squares.sum(1)
        self._columns += squares.sum(0)
        if largest:
            self._most[0][some] = squares.amax(1)
            torch.maximum(self._most[1], squares.amax(0), out=self._most[1])

    def norms(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Root mean squares of the rows, and of the columns."""
        return (self._rows / len(self._columns)).sqrt_(), (self._columns / len(self._rows)).sqrt_()

    def largest_shares(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Share of the largest square in each row, and in each column; 0 where all are 0."""
        rows, columns = (m / s for m, s in zip(self._most, (self._rows, self._columns), strict=True))
        return rows.nan_to_num_(0.0), columns.nan_to_num_(0.0)
