"""The register pool of setmaxnreg (PTX ISA 9.7.19.5).

A block has the registers with which its warps were launched. A warpgroup that requests more waits until others release
enough. If they never do, it waits for ever; the emulator detects this when the block ends.
"""

from __future__ import annotations

import numpy as np

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.machine.lane_group import LaneGroup

_WARPS = 4  # warps of a warpgroup


class RegisterPool:
    """Pools of ``blocks`` blocks of ``warps`` warps, with ``registers`` per thread at launch."""

    def __init__(self, blocks: int, warps: int, registers: int) -> None:
        self._registers = registers
        self._held = np.full((blocks, warps), registers, np.int64)
        self._changed = False

    def change(self, g: LaneGroup, more: bool, registers: int) -> None:
        """Sets every warp of ``g`` to ``registers`` registers per thread. Traps if ``more`` asks for an increase and
        this is a decrease, or the reverse."""
        g.ctas.require_whole_warps(g, "setmaxnreg")
        warps = np.unique(g.gid >> 5)
        held = self._held.reshape(-1)[warps]
        if (held > registers if more else held < registers).any():
            way = "fewer" if more else "more"
            message = f"setmaxnreg to {registers} registers per thread, which are {way} than the {held.max()} it has"
            raise Trap(Verdict.LAUNCH_FAILURE, message, int(warps[0]) << 5)
        self._held.reshape(-1)[warps] = registers
        self._changed, self._last = True, g.ctas.instruction()

    def settle(self) -> None:
        """Traps if a warp still waits for registers or for its warpgroup; called after all blocks have ended."""
        if not self._changed:
            return
        blocks, warps = self._held.shape
        whole = warps // _WARPS * _WARPS
        groups = self._held[:, :whole].reshape(blocks, -1, _WARPS)
        apart = np.argwhere((groups != groups[:, :, :1]).any(axis=2))
        if len(apart) or (self._held[:, whole:] != self._registers).any():
            at = int(apart[0][1]) * _WARPS if len(apart) else whole
            self._trap(Verdict.BARRIER_DIVERGENCE, "setmaxnreg is not reached by all four warps of a warpgroup", at)
        used = self._held.sum(axis=1) * 32
        most = self._registers * 32 * warps
        if (used > most).any():
            message = (
                f"setmaxnreg asks for {int(used.max()):,} registers per block, which has {most:,} "
                f"({self._registers} per thread): a warpgroup waits for ever"
            )
            self._trap(Verdict.DEADLOCK, message, int(np.argmax(self._held[int(np.argmax(used))])))

    def _trap(self, verdict: Verdict, message: str, warp: int) -> None:
        trap = Trap(verdict, message, warp << 5)
        trap.instruction = self._last
        raise trap
