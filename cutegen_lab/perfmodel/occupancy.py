"""How many blocks of a kernel share a multiprocessor, and what limits it (CUDA C++ guide, compute capability 9.0)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cutegen_lab.core.artifact import KernelInfo, Launch
from cutegen_lab.core.residency import blocks_by, multiprocessors
from cutegen_lab.core.roofline import GpuSpec


@dataclass(frozen=True)
class Occupancy:
    """Residency of a launch on a GPU."""

    blocks: int
    """Blocks resident on one multiprocessor."""
    warps: int
    """Warps resident on one multiprocessor."""
    waves: float
    """Blocks of the grid over blocks resident on the GPU; may be fractional."""
    limiter: str
    """Resource that limits the blocks, in a word or two."""
    registers: int
    """Registers per thread."""
    multiprocessors: int
    """Multiprocessors that can hold blocks."""

    @property
    def tail(self) -> float:
        """Fraction of the run in which the last wave leaves multiprocessors idle."""
        whole = math.ceil(self.waves)
        return (whole - self.waves) / whole if self.waves > 1 else 0.0

    def resident(self, blocks: int) -> int:
        """Blocks of a grid of ``blocks`` that share the fullest multiprocessor."""
        return min(self.blocks, math.ceil(blocks / self.multiprocessors))

    def busy(self, blocks: int) -> float:
        """Number of multiprocessors that would take as long if each had as many blocks as the fullest: 144 blocks on
        132 multiprocessors take as long as on 72, two on each."""
        return blocks / math.ceil(blocks / self.multiprocessors)


def occupancy(launch: Launch, kernel: KernelInfo | None, gpu: GpuSpec) -> Occupancy:
    """Occupancy of ``launch`` on ``gpu``. If ``kernel`` is None, registers and static shared memory are unknown and not
    counted."""
    by = blocks_by(launch, kernel, gpu)
    limiter = min(by, key=lambda name: by[name])
    blocks, warps = max(by[limiter], 1), -(-math.prod(launch.block) // 32)
    on = multiprocessors(launch, blocks, gpu)
    waves = math.prod(launch.grid) / (blocks * on)
    registers = kernel.registers if kernel else 0
    return Occupancy(blocks, blocks * warps, waves, limiter if waves > 1 else "grid", registers, on)
