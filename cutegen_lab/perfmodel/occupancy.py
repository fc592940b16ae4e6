"""How many blocks of a kernel share a multiprocessor, and what limits it (CUDA C++ guide, compute capability 9.0)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cutegen_lab.core.artifact import KernelInfo, Launch
from cutegen_lab.core.residency import blocks_by, multiprocessors
from cutegen_lab.core.roofline import GpuSpec


@dataclass(frozen=True)
class Occupancy:
    """``blocks`` resident on one multiprocessor at a time, on ``multiprocessors`` of them; ``waves`` may be
    fractional; ``limiter`` is a word or two."""

    blocks: int
    warps: int
    waves: float
    limiter: str
    registers: int
    multiprocessors: int

    @property
    def tail(self) -> float:
        """Part of the run in which the last wave leaves multiprocessors idle."""
        whole = math.ceil(self.waves)
        return (whole - self.waves) / whole if self.waves > 1 else 0.0

    def busy(self, blocks: int) -> float:
        """How many multiprocessors would take as long if each had as many blocks as the one with the most: 144 blocks
        on 132 take as long as 264, two on each."""
        return blocks / math.ceil(blocks / self.multiprocessors)


def occupancy(launch: Launch, kernel: KernelInfo | None, gpu: GpuSpec) -> Occupancy:
    """``kernel`` None: nothing is known of registers or static shared memory, and neither counts."""
    by = blocks_by(launch, kernel, gpu)
    limiter = min(by, key=lambda name: by[name])
    blocks, warps = max(by[limiter], 1), -(-math.prod(launch.block) // 32)
    on = multiprocessors(launch, blocks, gpu)
    waves = math.prod(launch.grid) / (blocks * on)
    registers = kernel.registers if kernel else 0
    return Occupancy(blocks, blocks * warps, waves, limiter if waves > 1 else "grid", registers, on)
