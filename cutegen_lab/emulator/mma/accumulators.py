"""Accumulators of wgmma: one matrix per warpgroup in the emulator, registers in PTX (9.7.15.5.1.1 "Register
Fragments").

Row 16w+8h+q and column 8c+2p+e of D are in element e of register 2c+h (16-bit sums) or register 4c+2h+e of lane
32w+4q+p. Register r of A holds rows +8·(r & 1) and the half r >> 1 of K.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from cutegen_lab.emulator.ptx.formats import to_f32
from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.roles import Group

ROWS = 64
THREADS = 128


@dataclass(frozen=True)
class Form:
    """``a``, ``b`` and ``d`` are number formats; ``sign`` multiplies the product; ``*_mn``: MN-major operands."""

    n: int
    a: str
    b: str
    d: str
    sign: int = 1
    a_mn: bool = False
    b_mn: bool = False
    saturates: bool = False

    @property
    def registers(self) -> int:
        """Number of 32-bit accumulator registers per thread."""
        return self.n // (4 if self.d == "f16" else 2)


class WarpgroupLanes(Group, Protocol):
    """Lanes that execute a wgmma, with their registers."""

    files: tuple[Array, ...]  # registers by file
    cache: dict[Any, Any]  # values computed once for the group
    arrived: bool  # True if the barrier where they wait has counted them
    gen: Array | None  # the barrier generation whose end they wait for

    @property
    def views(self) -> tuple[Array, ...]: ...  # registers by view


class Accumulators:
    """Accumulators in one list of registers: ``matrix`` [warpgroups, 64, n], in the order of the warpgroups' first
    use."""

    def __init__(self, form: Form, warpgroups: int, lanes: int) -> None:
        self.form = form
        self.matrix: Array = np.zeros((0, ROWS, form.n), np.int32 if form.d == "s32" else np.float32)
        # By lane: True while ``matrix``, not the lane's registers, holds its accumulators.
        self.held: Array = np.zeros(lanes, np.bool_)
        self.last: Array = np.zeros(lanes // 32, np.int64)  # by warp: the last wgmma group that uses it
        self._places: Array = np.full(warpgroups, -1)  # index of each warpgroup in the matrix, -1 for none

    def at(self, groups: Array) -> Any:
        """Index of ``groups`` in the matrix; a slice if they are adjacent."""
        found = self._places[groups]
        if (found < 0).any():
            fresh = groups[found < 0]
            count = int(self._places.max()) + 1
            self._places[fresh] = np.arange(count, count + len(fresh))
            if count + len(fresh) > len(self.matrix):
                more = np.zeros((max(len(fresh), len(self.matrix)), *self.matrix.shape[1:]), self.matrix.dtype)
                self.matrix = np.concatenate([self.matrix, more])
            found = self._places[groups]
        first, last = int(found[0]), int(found[-1])
        together = last - first == len(found) - 1 and bool((found[1:] > found[:-1]).all())
        return slice(first, last + 1) if together else found

    def gather(self, g: WarpgroupLanes, groups: Array, rows: Sequence[int]) -> None:
        """Copies registers to the matrix, for the lanes of ``groups`` that are not ``held``."""
        form, count, missing = self.form, len(groups), ~self.held[g.gid]
        if form.d == "f16":
            table = np.stack([g.views[4][rows[i]] for i in range(form.registers)])
            halves = table.view(np.float16).reshape(form.n // 8, 2, count, 4, 8, 4, 2)
            found = halves.transpose(2, 3, 1, 4, 0, 5, 6)  # c h . w q p e -> . w h q c p e
        else:
            view = 5 if form.d == "s32" else 6
            table = np.stack([g.views[view][rows[i]] for i in range(form.registers)])
            found = table.reshape(form.n // 8, 2, 2, count, 4, 8, 4).transpose(3, 4, 1, 5, 0, 6, 2)
        given = np.asarray(found.reshape(count, ROWS, form.n), self.matrix.dtype)
        at = self.at(groups)
        if not missing.all():
            lanes = missing.reshape(count, 4, 1, 8, 1, 4, 1)
            mask = np.broadcast_to(lanes, (count, 4, 2, 8, form.n // 8, 4, 2)).reshape(given.shape)
            given = np.where(mask, given, self.matrix[at])
        self.matrix[at] = given

    def registers(self, groups: Array) -> Array:
        """The matrix as registers: [register, lane of the warpgroups ``groups``] of 32 bits."""
        form = self.form
        parts = self.matrix[self.at(groups)].reshape(len(groups), 4, 2, 8, form.n // 8, 4, 2)
        if form.d == "f16":
            order = np.ascontiguousarray(parts.astype(np.float16).transpose(4, 2, 0, 1, 3, 5, 6)).view(np.uint32)
        else:
            order = np.ascontiguousarray(parts.transpose(4, 2, 6, 0, 1, 3, 5)).view(np.uint32)
        return order.reshape(form.registers, -1)


def operand(rows: list[Array], kind: str) -> Array:
    """A from registers: [warpgroups, 64, K] as float32."""
    groups = rows[0].shape[0] // THREADS
    values = to_f32(np.stack(rows, axis=1), kind).reshape(groups, 4, 8, 4, 2, 2, -1)
    return np.ascontiguousarray(values.transpose(0, 1, 5, 2, 4, 3, 6)).reshape(groups, ROWS, -1)
