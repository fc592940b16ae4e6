"""Warpgroup matrix products of a chunk (PTX ISA 9.7.15 "Asynchronous Warpgroup Level Matrix Multiply-Accumulate").

The sums of a warpgroup stay a matrix here, and are put into registers only when an instruction touches one of them
(:mod:`registers_in_flight` finds those instructions). Products that follow each other on the same sums wait for
``commit_group`` and are then one matrix product. Products of 16-bit and narrower operands are exact in float32 and are
summed there, in the order of BLAS; hardware sums in another order and truncates, which a check's tolerance must allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.formats import to_f32
from cutegen_lab.emulator.matrix_descriptor import pieces
from cutegen_lab.emulator.types import Array

if TYPE_CHECKING:
    from cutegen_lab.emulator.chunk import Chunk
    from cutegen_lab.emulator.group import Group

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
        """32-bit registers of sums a thread holds."""
        return self.n // (4 if self.d == "f16" else 2)


@dataclass
class Sums:
    """One list of registers: ``matrix`` [warpgroups, 64, n], which lanes' values are there, and when last used."""

    form: Form
    matrix: Array  # in the order in which warpgroups first came
    places: Array  # of each warpgroup in it, -1 for none
    held: Array  # by lane
    last: Array  # by warp: the group of products that used it last

    def at(self, groups: Array) -> Any:
        """Where ``groups`` are in the matrix: a slice where they lie together."""
        found = self.places[groups]
        if (found < 0).any():
            fresh = groups[found < 0]
            count = int(self.places.max()) + 1
            self.places[fresh] = np.arange(count, count + len(fresh))
            if count + len(fresh) > len(self.matrix):
                more = np.zeros((max(len(fresh), len(self.matrix)), *self.matrix.shape[1:]), self.matrix.dtype)
                self.matrix = np.concatenate([self.matrix, more])
            found = self.places[groups]
        first, last = int(found[0]), int(found[-1])
        together = last - first == len(found) - 1 and bool((found[1:] > found[:-1]).all())
        return slice(first, last + 1) if together else found


@dataclass
class _Steps:
    """Products on the same sums by the same warpgroups, to be done as one. ``a`` are descriptors or fragments."""

    sums: Sums
    form: Form
    groups: Array
    blocks: Array
    adds: Array  # by warpgroup: does the first of them add to what is there?
    a: list[Array] = field(default_factory=list)
    b: list[Array] = field(default_factory=list)

    def takes(self, form: Form, groups: Array) -> bool:
        return self.form == form and self.groups is groups


class WarpgroupProducts:
    """State of wgmma in a chunk. ``issue``, ``settle`` … raise Trap."""

    def __init__(self, m: Chunk) -> None:
        self._m = m
        self._per_block = -(-m.padded_threads // THREADS)
        warps = m.count * m.padded_threads // 32
        self._committed = np.zeros(warps, np.int64)
        self._done = np.zeros(warps, np.int64)
        self._sums: dict[int, Sums] = {}
        self._operands: dict[int, Array] = {}  # A in registers: by warp, the group that reads it last
        self._steps: dict[int, _Steps] = {}  # by sums
        self._read: dict[Any, Array] = {}  # operands of the group of products being done
        self._came = np.zeros(m.count * self._per_block, np.int64)  # warps at wgmma.fence
        self._generation = np.zeros(m.count * self._per_block, np.int64)

    # --- order -------------------------------------------------------------------------------------------------------

    def fence(self, g: Group) -> bool | Array:
        """Warps of a warpgroup wait for each other here, since what follows they do together."""
        if not g.arrived and self._whole(g):
            return True
        at = g.block * self._per_block + (g.gid % self._m.padded_threads) // THREADS
        if not g.arrived:
            g.m.require_whole_warps(g, "wgmma.fence")
            g.arrived, g.gen = True, self._generation[at]
            np.add.at(self._came, at, 1)
            full = self._came >= THREADS
            self._came[full] = 0
            self._generation[full] += 1
        return np.asarray(self._generation[at] != g.gen)

    def commit(self, g: Group) -> None:
        self._flush(*self._steps)
        self._committed[np.unique(g.gid >> 5)] += 1

    def wait(self, g: Group, pending: int) -> None:
        """The warps of ``g`` wait until at most ``pending`` groups are under way."""
        warps = np.unique(g.gid >> 5)
        self._done[warps] = np.maximum(self._done[warps], self._committed[warps] - pending)
        if self._m.async_races is not None:
            self._m.async_races.products_done(warps, self._done[warps])

    # --- products ----------------------------------------------------------------------------------------------------

    def issue(
        self, g: Group, number: int, form: Form, rows: Sequence[int], a: Any, b: Any, adds: Any, operands: int
    ) -> None:
        """One wgmma.mma_async. ``rows``: register rows of the sums; ``a``: descriptors by lane, or four rows of
        fragments, then ``operands`` is their number."""
        groups, blocks = self._warpgroups(g)
        sums = self._prepare(g, number, form)
        adding = self._uniform(g, adds, "the scale of D")
        if adding.any():
            self._gather(g, sums, number, rows)
        sums.held[g.gid] = True
        warps = g.gid[::32] >> 5
        sums.last[warps] = self._committed[warps] + 1
        fragments = isinstance(a, list)
        left = self._fragment(g, a, form) if fragments else self._uniform(g, a, "a matrix descriptor")
        if fragments:
            self._operands.setdefault(operands, np.zeros(len(self._done), np.int64))[warps] = self._committed[warps] + 1
        right = self._uniform(g, b, "a matrix descriptor")
        if self._m.async_races is not None or self._m.shared.written is not None:
            self._look(g, blocks, None if fragments else left, right, form)
        steps = self._steps.get(number)
        if steps is None or not steps.takes(form, groups) or not adding.all():
            self._flush(number)
            steps = self._steps[number] = _Steps(sums, form, groups, blocks, adding)
        steps.a.append(left)
        steps.b.append(right)

    def holds(self, number: int, g: Group) -> bool:
        """Are these sums a matrix here for every lane of ``g``?"""
        sums = self._sums.get(number)
        return sums is not None and bool(sums.held[g.gid].all())

    def settle(self, g: Group, number: int, rows: Sequence[tuple[int, int]]) -> None:
        """Before registers of these sums are touched; ``rows``: (register, row) of those whose values still matter."""
        sums = self._sums.get(number)
        if sums is None:
            return
        self._check(g, sums.last, "a sum")
        held = sums.held[g.gid]
        if not held.any():
            return
        self._flush(number)
        self._scatter(g, sums, rows, held)
        sums.held[g.gid] = False

    def check_operands(self, g: Group, number: int) -> None:
        """Before registers that hold an A operand are written."""
        last = self._operands.get(number)
        if last is not None:
            self._check(g, last, "an operand")

    def _check(self, g: Group, last: Array, what: str) -> None:
        warps = g.gid >> 5
        early = np.flatnonzero(last[warps] > self._done[warps])
        if len(early):
            message = f"touches a register that is {what} of a wgmma which has not been waited for"
            raise Trap(Verdict.NON_DETERMINISTIC, message, int(g.gid[early[0]]))

    # --- lanes -------------------------------------------------------------------------------------------------------

    def _whole(self, g: Group) -> bool:
        """Is every warpgroup of ``g`` here with all its threads?"""
        value = g.cache.get("warpgroups")
        if value is None:
            ok = g.n % THREADS == 0
            if ok:
                table = g.gid.reshape(-1, THREADS)
                ok = bool(
                    (table[:, 0] % self._m.padded_threads % THREADS == 0).all()
                    and (table[:, -1] - table[:, 0] == THREADS - 1).all()
                )
            first = g.gid[::THREADS]
            groups = first // self._m.padded_threads * self._per_block + first % self._m.padded_threads // THREADS
            value = g.cache["warpgroups"] = (ok, groups, first // self._m.padded_threads)
        return bool(value[0])

    def _warpgroups(self, g: Group) -> tuple[Array, Array]:
        if not self._whole(g):
            g.m.require_whole_warps(g, "wgmma")
            message = "wgmma is not reached by the four warps of a warpgroup together"
            raise Trap(Verdict.BARRIER_DIVERGENCE, message, int(g.gid[0]))
        _, groups, blocks = g.cache["warpgroups"]
        return groups, blocks

    def _uniform(self, g: Group, value: Any, what: str) -> Array:
        """One value a warpgroup."""
        lanes = np.asarray(value)
        if lanes.ndim == 0:
            return np.full(g.n // THREADS, lanes)
        table = lanes.reshape(-1, THREADS)
        same = table == table[:, :1]
        if not same.all():
            lane = int(np.flatnonzero(~same.ravel())[0])
            message = f"{what} of a wgmma differs between the threads of a warpgroup"
            raise Trap(Verdict.NON_DETERMINISTIC, message, int(g.gid[lane]))
        return table[:, 0].copy()

    def _prepare(self, g: Group, number: int, form: Form) -> Sums:
        sums = self._sums.get(number)
        if sums is None:
            kind = np.int32 if form.d == "s32" else np.float32
            sums = self._sums[number] = Sums(
                form, np.zeros((0, ROWS, form.n), kind), np.full(len(self._generation), -1),
                np.zeros(len(g.m.exited), np.bool_),
                np.zeros(len(self._done), np.int64),
            )  # fmt: skip
        return sums

    # --- registers and matrices --------------------------------------------------------------------------------------
    # Row 16w+8h+q and column 8c+2p+e are in element e of register 2c+h (16-bit sums) or register 4c+2h+e of lane
    # 32w+4q+p (PTX ISA 9.7.15.5.1.1, "Register Fragments … accumulator matrix D").

    def _gather(self, g: Group, sums: Sums, number: int, rows: Sequence[int]) -> None:
        """Registers to matrix, for lanes whose values are not there."""
        missing = ~sums.held[g.gid]
        if not missing.any():
            return
        form, count = sums.form, g.n // THREADS
        if form.d == "f16":
            table = np.stack([g.views[4][rows[i]] for i in range(form.registers)])
            halves = table.view(np.float16).reshape(form.n // 8, 2, count, 4, 8, 4, 2)
            found = halves.transpose(2, 3, 1, 4, 0, 5, 6)  # c h . w q p e -> . w h q c p e
        else:
            view = 5 if form.d == "s32" else 6
            table = np.stack([g.views[view][rows[i]] for i in range(form.registers)])
            found = table.reshape(form.n // 8, 2, 2, count, 4, 8, 4).transpose(3, 4, 1, 5, 0, 6, 2)
        self._flush(number)
        groups = g.cache["warpgroups"][1]
        given = np.asarray(found.reshape(count, ROWS, form.n), sums.matrix.dtype)
        at = sums.at(groups)
        if not missing.all():
            lanes = missing.reshape(count, 4, 1, 8, 1, 4, 1)
            mask = np.broadcast_to(lanes, (count, 4, 2, 8, form.n // 8, 4, 2)).reshape(given.shape)
            given = np.where(mask, given, sums.matrix[at])
        sums.matrix[at] = given

    def _scatter(self, g: Group, sums: Sums, rows: Sequence[tuple[int, int]], held: Array) -> None:
        """Matrix to registers, for the lanes ``held``."""
        form = sums.form
        tid = g.gid % self._m.padded_threads
        groups = g.block * self._per_block + tid // THREADS
        distinct = g.cache["warpgroups"][1] if self._whole(g) else np.unique(groups)
        parts = sums.matrix[sums.at(distinct)].reshape(len(distinct), 4, 2, 8, form.n // 8, 4, 2)
        if form.d == "f16":
            order = np.ascontiguousarray(parts.astype(np.float16).transpose(4, 2, 0, 1, 3, 5, 6)).view(np.uint32)
        else:
            order = np.ascontiguousarray(parts.transpose(4, 2, 6, 0, 1, 3, 5)).view(np.uint32)
        table = order.reshape(form.registers, -1)
        if self._whole(g) and held.all():
            for register, row in rows:
                g.files[2][row] = table[register]
            return
        lane = np.searchsorted(distinct, groups) * THREADS + tid % THREADS
        for register, row in rows:
            np.copyto(g.files[2][row], table[register, lane], where=held)

    def _fragment(self, g: Group, rows: list[Array], form: Form) -> Array:
        """A from registers: [warpgroups, 64, K]. Register r holds rows +8·(r & 1) and the half r >> 1 of K."""
        values = to_f32(np.stack(rows, axis=1), form.a).reshape(g.n // THREADS, 4, 8, 4, 2, 2, -1)
        return np.ascontiguousarray(values.transpose(0, 1, 5, 2, 4, 3, 6)).reshape(g.n // THREADS, ROWS, -1)

    # --- arithmetic --------------------------------------------------------------------------------------------------

    def _flush(self, *numbers: int) -> None:
        """Does the products that wait on these sums, which may share operands."""
        for number in numbers:
            if number in self._steps:
                self._perform(self._steps.pop(number))
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
        each = len(blocks) // len(distinct)
        if each > 1 and (blocks.reshape(-1, each) == distinct[:, None]).all():
            product = np.matmul(left.reshape(len(distinct), each * ROWS, -1), right).reshape(-1, ROWS, form.n)
        elif len(distinct) == len(blocks):
            product = np.matmul(left, right)
        else:
            product = np.matmul(left, right[np.searchsorted(distinct, blocks)])
        self._add(sums, groups, product if form.sign > 0 else -product, adds)

    def _add(self, sums: Sums, groups: Array, product: Array, adds: Array) -> None:
        at, form = sums.at(groups), sums.form
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

    def _operand(self, steps: list[int], blocks: Array, rows: int, mn_major: bool, kind: str) -> Array:
        """[blocks, rows, K] as float32, out of shared memory. Sums that are added to together often share one."""
        key = (tuple(steps), blocks.tobytes(), rows, mn_major, kind)
        found = self._read.get(key)
        if found is None:
            found = self._read[key] = self._fetch(key[0], blocks, rows, mn_major, kind)
        return found

    def _fetch(self, steps: tuple[int, ...], blocks: Array, rows: int, mn_major: bool, kind: str) -> Array:
        shared = self._m.shared
        where = pieces(steps, rows, mn_major)
        if len(blocks) == self._m.count:
            raw = shared.views[16].reshape(len(blocks), -1).take(where.ravel(), axis=1)
        else:
            raw = shared.views[16].take(blocks[:, None] * (shared.stride // 16) + where.ravel())
        values = to_f32(raw, kind).reshape(len(blocks), len(where), -1)
        return values.swapaxes(1, 2) if mn_major else values

    def _look(self, g: Group, blocks: Array, a: Array | None, b: Array, form: Form) -> None:
        """Are the operands in shared memory there, and ordered before this?"""
        for i, block in enumerate(blocks.tolist()):
            gid = int(g.gid[i * THREADS])
            for bits, rows, mn_major in ((a, ROWS, form.a_mn), (b, form.n, form.b_mn)):
                if bits is not None:
                    self._look_at(gid, block, int(bits[i]), rows, mn_major)

    def _look_at(self, gid: int, block: int, bits: int, rows: int, mn_major: bool) -> None:
        shared = self._m.shared
        where = pieces((bits,), rows, mn_major).ravel()
        low, high = int(where.min()) * 16, int(where.max()) * 16 + 16
        if low < shared.first or high > shared.limit:
            message = (
                f"a matrix descriptor reaches bytes {low - shared.first} to {high - shared.first} of shared memory"
            )
            raise Trap(Verdict.OUT_OF_BOUNDS, message, gid)
        place = where + (block * shared.stride >> 4)
        if self._m.async_races is not None:
            self._m.async_races.product_reads(gid, place, int(self._committed[gid >> 5]) + 1)
        if shared.written is not None and not shared.written.reshape(-1, 16)[place].all():
            bad = int(where[~shared.written.reshape(-1, 16)[place].all(axis=1)][0]) * 16 - shared.first
            message = f"wgmma reads shared memory at byte {bad}, which nothing has written"
            raise Trap(Verdict.UNINITIALISED_READ, message, gid)
