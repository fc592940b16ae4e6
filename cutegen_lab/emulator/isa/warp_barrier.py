"""bar.warp.sync (PTX ISA 9.7.13.2): the lanes of a member mask wait for each other, however far apart they are. So they
do before an instruction that takes a whole warp (:mod:`~cutegen_lab.emulator.translate.meetings`), which none of those
that run may leave out by ending.

Lanes that come together go on at once. Of those that come apart all are parked, the last too, so that they are asked
at once and go on as one group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.races.lane_clock import by_place
from cutegen_lab.emulator.registry import runtime

if TYPE_CHECKING:
    from cutegen_lab.emulator.machine.lane_group import LaneGroup

_EVERY = 0xFFFF_FFFF
_Place = tuple[int, int, int]  # warp, member mask, where they wait


class WarpBarrier:
    """Of all warps of a chunk; ``exited`` by thread."""

    def __init__(self, exited: Array) -> None:
        self._exited = exited
        self._came: dict[_Place, int] = {}  # lanes as bits
        self._owed: dict[_Place, int] = {}  # … that ran when the first came, where all of these are needed
        self._open = np.zeros(len(exited), np.bool_)  # threads that may go on

    def wait(self, g: LaneGroup, mask: Any, all_running: bool = False) -> bool | Array:
        """By lane: may it go on? ``all_running``: lanes that end do not count as come. Raises Trap where a mask leaves
        out the lane that gives it."""
        if mask is None and (g.whole() or self._all_here(g)):
            g.m.meet(g)
            return True
        members = np.broadcast_to(np.asarray(_EVERY if mask is None else mask, np.int64), (g.n,))
        if len(outside := np.flatnonzero((members >> g.lane & 1) == 0)):
            message = (
                f"a thread executes a warp-wide instruction whose mask {int(members[outside[0]]):#x} leaves it out"
            )
            raise Trap(Verdict.BARRIER_DIVERGENCE, message, int(g.gid[outside[0]]))
        passed = self._open[g.gid]
        self._open[g.gid] = False
        if passed.all():
            return passed
        for warp, lanes, named in by_place(g.gid[~passed], members[~passed]):
            if not (missing := self._missing(g, warp, lanes, named, all_running)):
                self._meet(g, warp, named)
                passed |= (g.gid >> 5 == warp) & (members == named)
            elif missing < 0:
                self._open[warp * 32 : warp * 32 + 32] |= named >> np.arange(32) & 1 != 0
        return passed

    def _all_here(self, g: LaneGroup) -> bool:
        """Are all running lanes of its warps in ``g``, which nobody has waited for?"""
        warps, here, running = g.m.attendance(g)
        if (here != running).any() or self._open[g.gid].any():
            return False
        return not self._owed or all((warp, _EVERY, g.pc) not in self._owed for warp in warps.tolist())

    def _missing(self, g: LaneGroup, warp: int, lanes: int, named: int, all_running: bool) -> int:
        """Lanes that have not come yet, or -1 where the last have come now."""
        place = warp, named, g.pc
        wanted = named & self._running(warp)
        if all_running:
            wanted = self._owed.setdefault(place, wanted)
        came = self._came.pop(place, 0) | lanes
        if missing := wanted & ~came:
            self._came[place] = came
            return missing
        self._owed.pop(place, None)
        if came == lanes:
            return 0
        self._meet(g, warp, named)
        return -1

    def _meet(self, g: LaneGroup, warp: int, named: int) -> None:
        if g.m.clocks is not None:
            members = np.flatnonzero(named >> np.arange(32) & 1)
            g.m.clocks.meet(warp, None if not self._running(warp) & ~named else members)

    def _running(self, warp: int) -> int:
        return int(np.packbits(~self._exited[warp * 32 : warp * 32 + 32], bitorder="little").view(np.uint32)[0])

    def stuck(self, g: LaneGroup, what: str) -> str:
        """Of threads that will wait for ever at ``what``."""
        warp = int(g.gid[0]) >> 5
        owed = [lanes for (where, _, pc), lanes in self._owed.items() if (where, pc) == (warp, g.pc)]
        here, running = int((g.gid >> 5 == warp).sum()), (owed[0] if owed else self._running(warp)).bit_count()
        return f"{what} is reached by {here} of the {running} running threads of a warp"


@runtime
def warp_barrier(g: Any, mask: Any) -> Any:
    return g.m.warp_barrier.wait(g, mask)


@runtime
def lanes_meet(g: Any, mask: Any) -> Any:
    return g.m.warp_barrier.wait(g, mask, all_running=True)
