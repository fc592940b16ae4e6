"""Groups of lanes that execute together: their registers, splitting and merging."""

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

_FEW = 512  # up to this many lanes, copying all registers at once is faster than one by one


class GroupedBlocks(Blocks, Protocol):
    """The part of a CTA batch that its lane groups need."""

    launch: Launch  # the launch that it is part of
    counters: Counters  # counters of the launch
    clock: int  # value of the clock registers when the launch began
    xyz: tuple[Array, Array, Array]  # coordinates of the batch's blocks
    causality: Causality | None  # set if strong operations may order others

    @property
    def program(self) -> Program: ...  # the program that it executes

    def rows_to_copy(self, g: WarpgroupLanes, pc: int) -> Rows: ...  # rows of registers that are live at ``pc``

    def attendance(self, g: Group) -> tuple[Array, Array, Array]: ...  # (warps of ``g``, lanes in ``g``, running lanes)

    def require_whole_warps(self, g: Group, what: str) -> None: ...  # traps if a warp's lanes are not all in ``g``


class LaneGroup:
    """Lanes at one program counter, in ascending order of ``gid`` (block · padded threads + thread)."""

    hardware, until, copies = False, None, False  # accesses by the threads themselves, which complete immediately
    __slots__ = ("arrived", "block", "cache", "ctas", "files", "gen", "gid", "n", "pc", "strand", "views")

    def __init__(self, ctas: GroupedBlocks, gid: Array, pc: int) -> None:
        self.ctas, self.gid, self.pc, self.n = ctas, gid, pc, len(gid)
        rows = ctas.program.rows_needed
        p = np.zeros((rows["P"], self.n), np.bool_)
        h = np.empty((rows["H"], self.n), np.uint16)
        u = np.empty((rows["U"], self.n), np.uint32)
        d = np.empty((rows["D"], self.n), np.uint64)
        self.files: tuple[Array, ...] = (p, h, u, d)
        self.views = (
            p, h, h.view(np.int16), h.view(np.float16), u, u.view(np.int32), u.view(np.float32), d, d.view(np.int64),
            d.view(np.float64),
        )  # fmt: skip
        self.block = gid // ctas.padded_threads
        self.cache: dict[Any, Any] = {}
        self.strand = 0  # number of the group's strand in :class:`Interleaving`
        self.arrived = False  # whether the barrier at which it waits has counted it
        self.gen: Array | None = None  # the barrier generation whose end it waits for

    @property
    def lane(self) -> Array:
        """Lane number in its warp."""
        return self.gid & 31

    def whole(self) -> bool:
        """True if the lanes form complete warps of 32."""
        value = self.cache.get("whole")
        if value is None:
            value = self.n % 32 == 0
            if value:
                warps = self.gid.reshape(-1, 32)
                value = bool(((warps[:, 0] & 31) == 0).all() and (warps[:, 31] - warps[:, 0] == 31).all())
            self.cache["whole"] = value
        return bool(value)

    def warps(self) -> int:
        """Number of warps with a lane in the group."""
        value = self.cache.get("warps")
        if value is None:
            value = self.n // 32 if self.whole() else len(self.warp_numbers())
            self.cache["warps"] = value
        return int(value)

    def warp_numbers(self) -> Array:
        """Numbers, in the CTA batch, of the warps with a lane in the group."""
        value = self.cache.get("warp_numbers")
        if value is None:
            value = self.cache["warp_numbers"] = self.gid[::32] >> 5 if self.whole() else np.unique(self.gid >> 5)
        return np.asarray(value)

    def subset(self, index: Array, live: Rows, pc: int) -> LaneGroup:
        """Copies lanes ``index`` with the registers in ``live``."""
        part = LaneGroup(self.ctas, self.gid[index], pc)
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
    """One group of all lanes of ``groups``, which are at the same program counter."""
    gid = np.concatenate([g.gid for g in groups])
    order = np.argsort(gid, kind="stable")
    first = groups[0]
    merged = LaneGroup(first.ctas, gid[order], first.pc)
    merged.strand = first.strand
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    at = 0
    for group in groups:
        merged.write_back(group, place[at : at + group.n], first.ctas.rows_to_copy(group, first.pc))
        at += group.n
    return merged
