"""bar.warp.sync (PTX ISA 9.7.13.2): the lanes of a member mask wait for each other. They do the same before a warp-wide
instruction (:mod:`~cutegen_lab.emulator.translate.meetings`).

Lanes that arrive together continue immediately. Lanes that arrive separately are all parked, the last ones too, so that
they wake as one group.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

import numpy as np

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.generated_globals import runtime
from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.races.lane_clock import by_place
from cutegen_lab.emulator.races.vector_clock import VectorClocks
from cutegen_lab.emulator.roles import Group
from cutegen_lab.emulator.translate.meetings import ANY_BAR_WARP_SYNC

Ends = Literal["come", "come if before", "are missed"]
"""How exited lanes count: always as arrived; as arrived only if they exited earlier in the program text (as a thread
without work does); never."""
_EVERY = 0xFFFF_FFFF
_Place = tuple[int, int, int]  # warp, member mask, ``where`` of :meth:`WarpBarrier.wait`


class MeetingBlocks(Protocol):
    """The part of a CTA batch that :class:`WarpBarrier` needs."""

    clocks: VectorClocks | None  # clocks of the batch's warps, in race-detection mode

    @property
    def exited(self) -> Array: ...  # by thread; padding lanes from the beginning

    def meet(self, g: Group) -> None: ...  # orders the lanes of each warp of ``g`` with each other

    def attendance(self, g: Group) -> tuple[Array, Array, Array]: ...  # (warps of ``g``, lanes in ``g``, running lanes)

    def meets_for(self, pc: int) -> str: ...  # the instruction at which lanes wait in block ``pc``, in words


class WarpBarrier:
    """State of bar.warp.sync for all warps of a CTA batch."""

    def __init__(self, ctas: MeetingBlocks) -> None:
        exited = ctas.exited
        self._ctas, self._exited, self._never = ctas, exited, exited.copy()
        self._ended_at = np.full(len(exited), -1, np.int64)  # by thread: the basic block in which it exited
        self._came: dict[_Place, int] = {}  # arrived lanes, as bits
        self._open = np.zeros(len(exited), np.bool_)  # threads that may continue

    def exit(self, g: Group) -> None:
        self._ended_at[g.gid] = g.pc

    def wait(
        self, g: Group, mask: Any, where: int | None = None, ends: Ends = "come", held: Array | None = None
    ) -> bool | Array:
        """By lane: True if it may continue. ``where``: a key shared by all instructions at which lanes may wait for
        each other (None: this one only). ``ends``: how exited lanes count. ``held``: lanes whose guard is true (None:
        all). Raises Trap if a lane's mask omits the lane itself, or if a required lane has exited."""
        if held is not None and not held.all():
            if not held.any():
                return True
        else:
            held = None
        if mask is not None and (np.asarray(mask) == _EVERY).all():
            mask = None
        place = g.pc if where is None else where
        if held is not None and mask is None:
            self._require_all_or_none(g, held)
        if mask is None and held is None and (g.whole() or self._all_here(g, place, ends)):
            self._ctas.meet(g)
            return True
        members = np.broadcast_to(np.asarray(_EVERY if mask is None else mask, np.int64), (g.n,))
        left_out = (members >> g.lane & 1) == 0
        if len(outside := np.flatnonzero(left_out if held is None else left_out & held)):
            message = (
                f"a thread executes a warp-wide instruction whose mask {int(members[outside[0]]):#x} leaves it out"
            )
            raise Trap(Verdict.BARRIER_DIVERGENCE, message, int(g.gid[outside[0]]))
        passed = self._open[g.gid]
        if held is not None:
            passed |= ~held
        self._open[g.gid] = False
        if passed.all():
            return passed
        for warp, lanes, named in by_place(g.gid[~passed], members[~passed]):
            if not (missing := self._missing(g, (warp, named, place), lanes, ends)):
                self._meet(g, warp, named)
                passed |= (g.gid >> 5 == warp) & (members == named)
            elif missing < 0:
                self._open[warp * 32 : warp * 32 + 32] |= named >> np.arange(32) & 1 != 0
        return passed

    def _require_all_or_none(self, g: Group, held: Array) -> None:
        """Raises Trap if all running lanes of a warp are in ``g`` and the guard is true for only some of them."""
        warps, here, running = self._ctas.attendance(g)
        wait = np.bincount(np.searchsorted(warps, g.gid >> 5), held)
        some = np.flatnonzero((here == running) & (wait > 0) & (wait < running))
        if len(some):
            first = int(g.gid[np.flatnonzero(held & (g.gid >> 5 == warps[some[0]]))[0]])
            raise self._missed(g, int(wait[some[0]]), int(running[some[0]]), first)

    def _all_here(self, g: Group, place: int, ends: Ends) -> bool:
        """True if all running lanes of ``g``'s warps are in ``g`` and none of them waits already."""
        warps, here, running = self._ctas.attendance(g)
        if (here != running).any() or self._open[g.gid].any():
            return False
        if ends != "come" and any(self._wanted(warp, _EVERY, g.pc, ends)[1] for warp in warps[running < 32].tolist()):
            return False
        return not self._came or all((warp, _EVERY, place) not in self._came for warp in warps.tolist())

    def _wanted(self, warp: int, named: int, pc: int, ends: Ends) -> tuple[int, int]:
        """(lanes of ``named`` that must reach ``pc``, those of them that have exited), as bits."""
        running = named & _bits(~self._exited, warp)
        if ends == "come":
            return running, 0
        ended = named & _bits(self._exited & ~self._never, warp)
        if ends == "come if before" and ended:
            ended &= _bits(self._ended_at > pc, warp)
        return running | ended, ended

    def _missing(self, g: Group, place: _Place, lanes: int, ends: Ends) -> int:
        """Lanes that are missing after the arrival of ``lanes``; 0 if all arrived together, -1 if the last of several
        groups arrives now."""
        warp, named, _ = place
        came = self._came.pop(place, 0) | lanes
        wanted, ended = self._wanted(warp, named, g.pc, ends)
        if ended & ~came:
            first = warp * 32 + (lanes & -lanes).bit_length() - 1
            raise self._missed(g, came.bit_count(), wanted.bit_count(), first)
        if missing := wanted & ~came:
            self._came[place] = came
            return missing
        if came == lanes:
            return 0
        self._meet(g, warp, named)
        return -1

    def _meet(self, g: Group, warp: int, named: int) -> None:
        if self._ctas.clocks is not None:
            members = np.flatnonzero(named >> np.arange(32) & 1)
            self._ctas.clocks.meet(warp, None if not _bits(~self._exited, warp) & ~named else members)

    def stuck(self, g: Group, what: str) -> str:
        """Message for threads that wait for ever at ``what``."""
        warp = int(g.gid[0]) >> 5
        here, running = int((g.gid >> 5 == warp).sum()), _bits(~self._exited, warp).bit_count()
        return reached_by(what, here, running)

    def _missed(self, g: Group, here: int, needed: int, gid: int) -> Trap:
        return Trap(Verdict.BARRIER_DIVERGENCE, reached_by(self._ctas.meets_for(g.pc), here, needed), gid)


def reached_by(what: str, here: int, running: int) -> str:
    """Message for an instruction that only some lanes of a warp reach."""
    return f"{what} is reached by {here} of the {running} running threads of a warp"


def _bits(threads: Array, warp: int) -> int:
    """``threads`` of one warp as a lane mask."""
    return int(np.packbits(threads[warp * 32 : warp * 32 + 32], bitorder="little").view(np.uint32)[0])


@runtime
def warp_barrier(g: Any, mask: Any) -> Any:
    """bar.warp.sync: lanes may wait at different bar.warp.sync instructions if their masks are the same."""
    return g.ctas.warp_barrier.wait(g, mask, ANY_BAR_WARP_SYNC)


@runtime
def lanes_meet(g: Any, mask: Any, where: int | None, ends: Ends, held: Any) -> Any:
    return g.ctas.warp_barrier.wait(g, mask, where, ends, held)
