"""How many blocks of a kernel share a multiprocessor, and what limits it (CUDA C++ guide, compute capability 9.0)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cutegen_lab.core.artifact import KernelInfo, Launch
from cutegen_lab.core.roofline import GpuSpec

_SYSTEM_SMEM = 1024  # bytes of shared memory the system takes a block
_REGISTER_UNIT = 256  # registers are given to a warp in units of this many
_CLUSTERED_BLOCKS = 8  # that share a multiprocessor at most where they belong to clusters; an H200 says so
# Multiprocessors that clusters of more than two can fill, since each lies within one GPC. Of an H200's 132: where one
# block takes all of a multiprocessor (cuOccupancyMaxActiveClusters: 30, 15 and 7 clusters), and where more fit.
_CLUSTERED_ALONE = {4: 120 / 132, 8: 120 / 132, 16: 112 / 132}
_CLUSTERED = 124 / 132


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
    threads = math.prod(launch.block)
    warps = -(-threads // 32)
    registers = kernel.registers if kernel else 0
    static = kernel.static_smem_bytes if kernel else 0  # a cubin for sm_90 counts the system's KiB in here
    smem = launch.dynamic_smem_bytes + max(static - _SYSTEM_SMEM, 0)
    by = {"blocks a multiprocessor": gpu.max_blocks_per_sm, "threads": gpu.max_threads_per_sm // (warps * 32)}
    cluster = math.prod(launch.cluster)
    if cluster > 1:
        by["clusters"] = _CLUSTERED_BLOCKS
    if registers:
        a_warp = -(-registers * 32 // _REGISTER_UNIT) * _REGISTER_UNIT
        by["registers"] = gpu.registers_per_sm // (a_warp * warps)
    if smem:
        by["shared memory"] = gpu.smem_per_sm // (smem + _SYSTEM_SMEM)
    limiter = min(by, key=lambda name: by[name])
    blocks = max(by[limiter], 1)
    share = 1.0 if cluster <= 2 else _CLUSTERED_ALONE.get(cluster, _CLUSTERED) if blocks == 1 else _CLUSTERED
    multiprocessors = round(gpu.sm_count * share)
    waves = math.prod(launch.grid) / (blocks * multiprocessors)
    return Occupancy(blocks, blocks * warps, waves, limiter if waves > 1 else "grid", registers, multiprocessors)
