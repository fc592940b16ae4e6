"""Warpgroup matrix products (PTX ISA 9.7.15 "Asynchronous Warpgroup Level Matrix Multiply-Accumulate").

The emulator keeps accumulators as a matrix, and copies them to registers only when an instruction accesses one of them
(:mod:`wgmma_registers` finds those instructions). This file checks the order of instructions; :mod:`accumulators`
stores the matrices, :mod:`arithmetic` computes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator.counters.launch_counters import Counters
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.memory.block_memory import BlockMemory
from cutegen_lab.emulator.mma.accumulators import ROWS, THREADS, Accumulators, Form, WarpgroupLanes, operand
from cutegen_lab.emulator.mma.arithmetic import Arithmetic
from cutegen_lab.emulator.mma.matrix_descriptor import pieces
from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.races.async_proxy import AsyncProxyRaces
from cutegen_lab.emulator.roles import Blocks, Group


class MultiplyingBlocks(Blocks, Protocol):
    """The part of a CTA batch that :class:`WarpgroupProducts` needs."""

    shared: BlockMemory  # shared memory of the blocks, with operands
    counters: Counters  # counters of the launch
    async_races: AsyncProxyRaces | None  # set in race-detection mode

    def meet(self, g: Group) -> None: ...  # orders the lanes of each warp of ``g`` with each other

    def require_whole_warps(self, g: Group, what: str) -> None: ...  # traps if a warp's lanes are not all in ``g``


class WarpgroupProducts:
    """State of wgmma in a CTA batch. Most methods may raise Trap."""

    def __init__(self, ctas: MultiplyingBlocks) -> None:
        self._ctas = ctas
        self._per_block = -(-ctas.padded_threads // THREADS)
        warps = ctas.count * ctas.padded_threads // 32
        self._committed = np.zeros(warps, np.int64)
        self._done = np.zeros(warps, np.int64)
        self._sums: dict[int, Accumulators] = {}
        self._operands: dict[int, Array] = {}  # registers of A: by warp, the last wgmma group that reads them
        self._arithmetic = Arithmetic(ctas.shared, ctas.count)
        self._fences = np.zeros(warps, np.int64)  # number of wgmma.fence so far, by warp
        self._written: dict[int, Array] = {}  # by list of registers and by warp: number of fences before the last write
        # By warpgroup: number of threads that have arrived at a wgmma.fence or wgmma.
        self._came = np.zeros(ctas.count * self._per_block, np.int64)
        self._generation = np.zeros(ctas.count * self._per_block, np.int64)

    # --- order -------------------------------------------------------------------------------------------------------

    def fence(self, g: WarpgroupLanes) -> bool | Array:
        """The warps of a warpgroup wait for each other, since they execute the following wgmma together."""
        if not g.arrived:
            self._fences[g.warp_numbers()] += 1
        return self._together(g, "wgmma.fence")

    def meet(self, g: WarpgroupLanes) -> bool | Array:
        """As :meth:`fence`, before a wgmma that warps may reach at different times. Raises Trap if one of the
        warps has exited."""
        passed = self._together(g, "wgmma")
        if passed is not True:
            for gid in g.gid[~np.broadcast_to(passed, (g.n,))][::32].tolist():
                block, tid = divmod(gid, self._ctas.padded_threads)
                first = gid - tid % THREADS
                here = self._ctas.exited[first : min(first + THREADS, (block + 1) * self._ctas.padded_threads)]
                if len(here) < THREADS or here.any():
                    raise _apart(gid)
        return passed

    def _together(self, g: WarpgroupLanes, what: str) -> bool | Array:
        """By lane: True if its whole warpgroup has arrived. Warps that arrive separately are all parked, the last one
        too, so that they wake as one group."""
        at = g.block * self._per_block + (g.gid % self._ctas.padded_threads) // THREADS
        if g.arrived:
            return np.asarray(self._generation[at] != g.gen)
        if self._whole(g):
            self._ctas.meet(g)
            return True
        self._ctas.require_whole_warps(g, what)
        g.arrived, g.gen = True, self._generation[at]
        np.add.at(self._came, at, 1)
        full = self._came >= THREADS
        self._came[full] = 0
        self._generation[full] += 1
        return False

    def written(self, g: WarpgroupLanes, number: int) -> None:
        """Notes a write to registers that a wgmma may read."""
        last = self._written.setdefault(number, np.zeros(len(self._fences), np.int64))
        warps = g.warp_numbers()
        last[warps] = self._fences[warps]

    def require_fence(self, g: WarpgroupLanes, number: int, reads: Any) -> None:
        """Traps if a wgmma reads registers that were written with no fence since. ``reads``: whether it reads them."""
        if not np.any(reads):
            return
        last = self._written.setdefault(number, np.zeros(len(self._fences), np.int64))
        warps = g.warp_numbers()
        early = np.flatnonzero(self._fences[warps] <= last[warps])
        if len(early):
            message = "wgmma reads registers that were written with no wgmma.fence between"
            raise Trap(Verdict.NON_DETERMINISTIC, message, int(warps[early[0]]) * 32)

    def commit(self, g: WarpgroupLanes) -> None:
        self._ctas.require_whole_warps(g, "wgmma.commit_group")
        self._arithmetic.flush_all()
        self._committed[g.warp_numbers()] += 1

    def wait(self, g: WarpgroupLanes, pending: int) -> None:
        """The warps of ``g`` wait until at most ``pending`` groups are under way."""
        self._ctas.require_whole_warps(g, "wgmma.wait_group")
        warps = g.warp_numbers()
        self._done[warps] = np.maximum(self._done[warps], self._committed[warps] - pending)
        if self._ctas.async_races is not None:
            self._ctas.async_races.products_done(warps, self._done[warps])

    # --- products ----------------------------------------------------------------------------------------------------

    def issue(
        self, g: WarpgroupLanes, number: int, form: Form, rows: Sequence[int], a: Any, b: Any, adds: Any, operands: int
    ) -> None:
        """One wgmma.mma_async. ``rows``: register rows of the accumulators; ``a``: descriptors by lane, or four rows of
        fragments, numbered ``operands``."""
        groups, blocks = self._warpgroups(g)
        self._ctas.counters.products.update(self._ctas.numbers[blocks].tolist())
        sums = self._prepare(number, form)
        adding = self._uniform(g, adds, "the scale of D")
        if adding.any() and not sums.held[g.gid].all():
            self._arithmetic.flush(number)
            sums.gather(g, groups, rows)
        sums.held[g.gid] = True
        warps = g.gid[::32] >> 5
        sums.last[warps] = self._committed[warps] + 1
        fragments = isinstance(a, list)
        left = operand(a, form.a) if fragments else self._uniform(g, a, "a matrix descriptor")
        if fragments:
            self._operands.setdefault(operands, np.zeros(len(self._done), np.int64))[warps] = self._committed[warps] + 1
        right = self._uniform(g, b, "a matrix descriptor")
        self._look(g, blocks, None if fragments else left, right, form)
        self._arithmetic.add(number, sums, groups, blocks, adding, form, left, right)

    def holds(self, number: int, g: WarpgroupLanes) -> bool:
        """True if the matrix has the values of these accumulators for every lane of ``g``."""
        sums = self._sums.get(number)
        return sums is not None and bool(sums.held[g.gid].all())

    def settle(self, g: WarpgroupLanes, number: int, rows: Sequence[tuple[int, int]]) -> None:
        """Copies accumulators to registers, before these are accessed. ``rows``: (register, row) of the live ones."""
        sums = self._sums.get(number)
        if sums is None:
            return
        self._check(g, sums.last, "an accumulator")
        held = sums.held[g.gid]
        if not held.any():
            return
        self._arithmetic.flush(number)
        self._scatter(g, sums, rows, held)
        sums.held[g.gid] = False

    def check_operands(self, g: WarpgroupLanes, number: int) -> None:
        """Traps before a write to registers of an A operand that a wgmma in flight reads."""
        last = self._operands.get(number)
        if last is not None:
            self._check(g, last, "an operand")

    def _check(self, g: WarpgroupLanes, last: Array, what: str) -> None:
        warps = g.gid >> 5
        early = np.flatnonzero(last[warps] > self._done[warps])
        if len(early):
            message = f"accesses a register that is {what} of a wgmma which has not been waited for"
            raise Trap(Verdict.NON_DETERMINISTIC, message, int(g.gid[early[0]]))

    # --- lanes -------------------------------------------------------------------------------------------------------

    def _whole(self, g: WarpgroupLanes) -> bool:
        """True if ``g`` has all threads of each of its warpgroups."""
        value = g.cache.get("warpgroups")
        if value is None:
            ok = g.n % THREADS == 0
            if ok:
                table = g.gid.reshape(-1, THREADS)
                ok = bool(
                    (table[:, 0] % self._ctas.padded_threads % THREADS == 0).all()
                    and (table[:, -1] - table[:, 0] == THREADS - 1).all()
                )
            first = g.gid[::THREADS]
            groups = first // self._ctas.padded_threads * self._per_block + first % self._ctas.padded_threads // THREADS
            value = g.cache["warpgroups"] = (ok, groups, first // self._ctas.padded_threads)
        return bool(value[0])

    def _warpgroups(self, g: WarpgroupLanes) -> tuple[Array, Array]:
        if not self._whole(g):
            self._ctas.require_whole_warps(g, "wgmma")
            raise _apart(int(g.gid[0]))
        _, groups, blocks = g.cache["warpgroups"]
        return groups, blocks

    def _uniform(self, g: WarpgroupLanes, value: Any, what: str) -> Array:
        """One value per warpgroup; traps if it differs between threads."""
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

    def _prepare(self, number: int, form: Form) -> Accumulators:
        sums = self._sums.get(number)
        if sums is None:
            sums = self._sums[number] = Accumulators(form, len(self._generation), len(self._done) * 32)
        return sums

    def _scatter(self, g: WarpgroupLanes, sums: Accumulators, rows: Sequence[tuple[int, int]], held: Array) -> None:
        """Copies the matrix to registers, for the lanes ``held``."""
        tid = g.gid % self._ctas.padded_threads
        groups = g.block * self._per_block + tid // THREADS
        distinct = g.cache["warpgroups"][1] if self._whole(g) else np.unique(groups)
        table = sums.registers(distinct)
        if self._whole(g) and held.all():
            for register, row in rows:
                g.files[2][row] = table[register]
            return
        lane = np.searchsorted(distinct, groups) * THREADS + tid % THREADS
        for register, row in rows:
            np.copyto(g.files[2][row], table[register, lane], where=held)

    # --- operands in shared memory ------------------------------------------------------------------------------------

    def _look(self, g: WarpgroupLanes, blocks: Array, a: Array | None, b: Array, form: Form) -> None:
        """Traps for operands in shared memory that are out of bounds, uninitialised or not ordered before the wgmma."""
        for bits, rows, mn_major in ((a, ROWS, form.a_mn), (b, form.n, form.b_mn)):
            for one in set(bits.tolist()) if bits is not None else ():
                chosen = np.flatnonzero(bits == one)
                self._look_at(g.gid[chosen * THREADS], blocks[chosen], pieces((one,), rows, mn_major).ravel())

    def _look_at(self, gid: Array, blocks: Array, where: Array) -> None:
        """As :meth:`_look`, for pieces ``where`` that are read by the warpgroups with first threads ``gid``."""
        shared = self._ctas.shared
        low, high = int(where.min()) * 16, int(where.max()) * 16 + 16
        if low < shared.first or high > shared.limit:
            message = (
                f"a matrix descriptor leads outside shared memory: bytes {low - shared.first} to {high - shared.first}"
            )
            raise Trap(Verdict.OUT_OF_BOUNDS, message, int(gid[0]))
        places = where + (blocks * shared.stride >> 4)[:, None]
        if self._ctas.async_races is not None:
            for first, place in zip(gid.tolist(), places, strict=True):
                self._ctas.async_races.product_reads(first, place, int(self._committed[first >> 5]) + 1)
        if shared.all_written(places):
            return
        for first, place in zip(gid.tolist(), places, strict=True):
            for piece in place.tolist():
                if not shared.all_written(np.array(piece)):
                    byte = piece * 16 % shared.stride - shared.first
                    message = f"wgmma reads shared memory at byte {byte}, which nothing has written"
                    raise shared.missing(message, first, piece, 16, self._ctas.instruction())


def _apart(gid: int) -> Trap:
    return Trap(Verdict.BARRIER_DIVERGENCE, "wgmma is not reached by the four warps of a warpgroup together", gid)
