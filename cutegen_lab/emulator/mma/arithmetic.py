"""Arithmetic of wgmma (PTX ISA 9.7.15.5 "Asynchronous wgmma.mma_async Operations").

Consecutive products on the same accumulators are deferred until ``commit_group`` and done as one matrix product.
Products of 16-bit operands and of integers are exact in float32 and are summed there, in BLAS's order; hardware sums in
another order and truncates, which a check's tolerance must allow. FP8 loses more: see :mod:`fp8_accumulate`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cutegen_lab.emulator.memory.block_memory import BlockMemory
from cutegen_lab.emulator.mma import fp8_accumulate
from cutegen_lab.emulator.mma.accumulators import ROWS, Accumulators, Form
from cutegen_lab.emulator.mma.matrix_descriptor import pieces
from cutegen_lab.emulator.ptx.formats import EIGHT, to_f32
from cutegen_lab.emulator.ptx.types import Array


@dataclass
class _Steps:
    """Deferred products of the same warpgroups on the same accumulators. ``a`` are descriptors or fragments."""

    sums: Accumulators
    form: Form
    groups: Array
    blocks: Array
    adds: Array  # by warpgroup: whether the first product adds to the accumulators
    a: list[Array] = field(default_factory=list)
    b: list[Array] = field(default_factory=list)

    def takes(self, form: Form, groups: Array) -> bool:
        return self.form == form and self.groups is groups


class Arithmetic:
    """Deferred products, by the number of their accumulators. ``shared``: shared memory of ``count`` blocks."""

    def __init__(self, shared: BlockMemory, count: int) -> None:
        self._shared, self._count = shared, count
        self._steps: dict[int, _Steps] = {}
        self._read: dict[Any, Array] = {}  # operands already read in one :meth:`flush_all`

    def add(
        self, number: int, sums: Accumulators, groups: Array, blocks: Array, adds: Array, form: Form, a: Array, b: Array
    ) -> None:
        """Defers one product of each of the warpgroups ``groups``. ``a``: descriptors, or [warpgroups, 64, K]."""
        steps = self._steps.get(number)
        if steps is None or not steps.takes(form, groups) or not adds.all():
            self.flush(number)
            steps = self._steps[number] = _Steps(sums, form, groups, blocks, adds)
        steps.a.append(a)
        steps.b.append(b)

    def flush(self, number: int) -> None:
        """Performs the deferred products on accumulators ``number``."""
        if number in self._steps:
            self._perform(self._steps.pop(number))
        self._read.clear()

    def flush_all(self) -> None:
        """Performs all deferred products, which often share operands."""
        waiting, self._steps = self._steps, {}
        for steps in waiting.values():
            self._perform(steps)
        self._read.clear()

    def _perform(self, steps: _Steps) -> None:
        descriptors = steps.b if steps.a[0].ndim == 3 else steps.b + steps.a
        keys = np.stack(descriptors, axis=1)
        if (keys == keys[0]).all():
            self._multiply(steps, None)
            return
        _, inverse = np.unique(keys, axis=0, return_inverse=True)
        for i in range(int(inverse.max()) + 1):
            self._multiply(steps, np.flatnonzero(inverse.ravel() == i))

    def _multiply(self, steps: _Steps, chosen: Array | None) -> None:
        """The products of the warpgroups ``chosen`` (None: all), which have the same descriptors."""
        form, sums = steps.form, steps.sums
        at = slice(None) if chosen is None else chosen
        first = 0 if chosen is None else int(chosen[0])
        groups, blocks, adds = steps.groups[at], steps.blocks[at], steps.adds[at]
        if steps.a[0].ndim == 3:
            left = np.concatenate([a[at] for a in steps.a], axis=2)
        else:
            left = self._operand([int(a[first]) for a in steps.a], blocks, ROWS, form.a_mn, form.a)
        distinct = blocks[np.r_[True, blocks[1:] != blocks[:-1]]]
        right = self._operand([int(b[first]) for b in steps.b], distinct, form.n, form.b_mn, form.b).swapaxes(1, 2)
        if form.a in EIGHT:
            _add_eight(sums, groups, left, right[np.searchsorted(distinct, blocks)], adds, form)
            return
        each = len(blocks) // len(distinct)
        if each > 1 and (blocks.reshape(-1, each) == distinct[:, None]).all():
            product = np.matmul(left.reshape(len(distinct), each * ROWS, -1), right).reshape(-1, ROWS, form.n)
        elif len(distinct) == len(blocks):
            product = np.matmul(left, right)
        else:
            product = np.matmul(left, right[np.searchsorted(distinct, blocks)])
        _accumulate(sums, groups, product if form.sign > 0 else -product, adds, form)

    def _operand(self, steps: list[int], blocks: Array, rows: int, mn_major: bool, kind: str) -> Array:
        """[blocks, rows, K] as float32, from shared memory. Several accumulators often share an operand."""
        key = (tuple(steps), blocks.tobytes(), rows, mn_major, kind)
        found = self._read.get(key)
        if found is None:
            found = self._read[key] = self._fetch(key[0], blocks, rows, mn_major, kind)
        return found

    def _fetch(self, steps: tuple[int, ...], blocks: Array, rows: int, mn_major: bool, kind: str) -> Array:
        shared = self._shared
        where = pieces(steps, rows, mn_major)
        if len(blocks) == self._count:
            raw = shared.views[16].reshape(len(blocks), -1).take(where.ravel(), axis=1)
        else:
            raw = shared.views[16].take(blocks[:, None] * (shared.stride // 16) + where.ravel())
        values = to_f32(raw, kind).reshape(len(blocks), len(where), -1)
        return values.swapaxes(1, 2) if mn_major else values


def _add_eight(sums: Accumulators, groups: Array, left: Array, right: Array, adds: Array, form: Form) -> None:
    at = sums.at(groups)
    before = np.where(adds[:, None, None], sums.matrix[at], np.float32(0))
    given = left if form.sign > 0 else -left
    with np.errstate(invalid="ignore", over="ignore"):
        sums.matrix[at] = fp8_accumulate.add(before, given, right, (form.a, form.b), form.d == "f16")


def _accumulate(sums: Accumulators, groups: Array, product: Array, adds: Array, form: Form) -> None:
    at = sums.at(groups)
    if not adds.all():
        sums.matrix[sums.at(groups[~adds])] = 0
    matrix = sums.matrix
    if form.d == "s32":
        total = matrix[at].astype(np.int64) + np.rint(product).astype(np.int64)
        matrix[at] = np.clip(total, -(1 << 31), (1 << 31) - 1) if form.saturates else total.astype(np.int32)
    elif isinstance(at, slice):
        matrix[at] += product
    else:
        product += matrix[at]
        matrix[at] = product
    if form.d == "f16":
        matrix[at] = matrix[at].astype(np.float16)
