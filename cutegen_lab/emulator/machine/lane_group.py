"""Lanes that execute together: their registers, and splitting and merging them."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from cutegen_lab.core.artifact import Launch
from cutegen_lab.emulator.counters.launch_counters import Counters
from cutegen_lab.emulator.mma.accumulators import WarpgroupLanes
from cutegen_lab.emulator.program import Program
from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.races.causality import Causality
from cutegen_lab.emulator.roles import Blocks, Group
from cutegen_lab.emulator.translate.cfg import Rows

_FEW = 512  # lanes whose registers are copied all at once: more are quicker register by register


class GroupedBlocks(Blocks, Protocol):
    """A chunk, as its groups of lanes know it."""

    launch: Launch  # that it is part of
    counters: Counters  # of the launch
    clock: int  # what the clocks showed when the launch began
    xyz: tuple[Array, Array, Array]  # coordinates of its blocks
    causality: Causality | None  # where strong operations may order others

    @property
    def program(self) -> Program: ...  # what it executes

    def rows_to_copy(self, g: WarpgroupLanes, pc: int) -> Rows: ...  # registers that matter at ``pc``

    def attendance(self, g: Group) -> tuple[Array, Array, Array]: ...  # (warps of ``g``, lanes there, lanes that run)

    def require_whole_warps(self, g: Group, what: str) -> None: ...  # traps where a warp's lanes are not all in ``g``


class LaneGroup:
    """Lanes at one program counter, in ascending order of ``gid`` (block · padded threads + thread)."""

    hardware, until, copies = False, None, False  # a thread's own accesses, done at once
    __slots__ = ("arrived", "block", "cache", "files", "gen", "gid", "m", "n", "pc", "strand", "views")

    def __init__(self, m: GroupedBlocks, gid: Array, pc: int) -> None:
        self.m, self.gid, self.pc, self.n = m, gid, pc, len(gid)
        rows = m.program.rows_needed
        p = np.zeros((rows["P"], self.n), np.bool_)
        h = np.empty((rows["H"], self.n), np.uint16)
        u = np.empty((rows["U"], self.n), np.uint32)
        d = np.empty((rows["D"], self.n), np.uint64)
        self.files: tuple[Array, ...] = (p, h, u, d)
        self.views = (
            p, h, h.view(np.int16), h.view(np.float16), u, u.view(np.int32), u.view(np.float32), d, d.view(np.int64),
            d.view(np.float64),
        )  # fmt: skip
        self.block = gid // m.padded_threads
        self.cache: dict[Any, Any] = {}
        self.strand = 0  # of those that run apart, the one it belongs to
        self.arrived = False  # this group has been counted at the barrier it waits at
        self.gen: Array | None = None  # the barrier generation it waits for the end of

    @property
    def lane(self) -> Array:
        """Lane number in its warp."""
        return self.gid & 31

    def whole(self) -> bool:
        """Do the lanes form complete warps of 32?"""
        value = self.cache.get("whole")
        if value is None:
            value = self.n % 32 == 0
            if value:
                warps = self.gid.reshape(-1, 32)
                value = bool(((warps[:, 0] & 31) == 0).all() and (warps[:, 31] - warps[:, 0] == 31).all())
            self.cache["whole"] = value
        return bool(value)

    def warps(self) -> int:
        """How many warps have a lane here."""
        value = self.cache.get("warps")
        if value is None:
            value = self.n // 32 if self.whole() else len(self.warp_numbers())
            self.cache["warps"] = value
        return int(value)

    def warp_numbers(self) -> Array:
        """The warps that have a lane here, counted over the chunk."""
        value = self.cache.get("warp_numbers")
        if value is None:
            value = self.cache["warp_numbers"] = self.gid[::32] >> 5 if self.whole() else np.unique(self.gid >> 5)
        return np.asarray(value)

    def subset(self, index: Array, live: Rows, pc: int) -> LaneGroup:
        """Copies lanes ``index`` with the registers in ``live``."""
        part = LaneGroup(self.m, self.gid[index], pc)
        part.strand = self.strand
        for mine, theirs, rows in zip(self.files, part.files, live, strict=True):
            if rows and part.n <= _FEW:
                at = np.array(rows)
                theirs[at] = mine[at[:, None], index]
                continue
            for row in rows:
                np.take(mine[row], index, out=theirs[row])
        return part

    def write_back(self, part: LaneGroup, index: Array, rows: Rows) -> None:
        """Copies registers ``rows`` of ``part`` into lanes ``index``."""
        for mine, theirs, selected in zip(self.files, part.files, rows, strict=True):
            if selected and part.n <= _FEW:
                at = np.array(selected)
                mine[at[:, None], index] = theirs[at]
                continue
            for row in selected:
                mine[row][index] = theirs[row]


def merge(groups: list[LaneGroup]) -> LaneGroup:
    """One group of all lanes; every group stands at the same program counter."""
    gid = np.concatenate([g.gid for g in groups])
    order = np.argsort(gid, kind="stable")
    first = groups[0]
    merged = LaneGroup(first.m, gid[order], first.pc)
    merged.strand = first.strand
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    at = 0
    for group in groups:
        merged.write_back(group, place[at : at + group.n], first.m.rows_to_copy(group, first.pc))
        at += group.n
    return merged
