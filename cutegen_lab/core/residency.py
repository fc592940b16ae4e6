"""How many blocks of a kernel are resident on a GPU (CUDA C++ guide, "Hardware Multithreading" and compute capability
9.0)."""

from __future__ import annotations

import math
from collections.abc import Mapping

from cutegen_lab.core.artifact import KernelInfo, Launch
from cutegen_lab.core.roofline import GpuSpec

_SYSTEM_SMEM = 1024  # bytes of shared memory of each block that the system reserves
_REGISTER_UNIT = 256  # registers are allocated to a warp in multiples of this
_CLUSTERED_BLOCKS = 8  # maximum number of clustered blocks per multiprocessor, as measured on an H200
# Share of the multiprocessors that clusters of more than two blocks can use, since each cluster lies within one GPC.
# Figures for an H200's 132 multiprocessors: if one block fits on a multiprocessor (cuOccupancyMaxActiveClusters: 30, 15
# and 7 clusters), and if more fit.
_CLUSTERED_ALONE = {4: 120 / 132, 8: 120 / 132, 16: 112 / 132}
_CLUSTERED = 124 / 132


def blocks_by(launch: Launch, kernel: KernelInfo | None, gpu: GpuSpec) -> Mapping[str, int]:
    """Blocks per multiprocessor that each resource allows, by the resource's name; 0 if none fits. If ``kernel`` is
    None, registers and static shared memory are unknown and not counted."""
    warps = -(-math.prod(launch.block) // 32)
    registers = kernel.registers if kernel else 0
    smem = shared_memory(launch, kernel)
    by = {"blocks per multiprocessor": gpu.max_blocks_per_sm, "threads": gpu.max_threads_per_sm // (warps * 32)}
    if math.prod(launch.cluster) > 1:
        by["clusters"] = _CLUSTERED_BLOCKS
    if registers:
        a_warp = -(-registers * 32 // _REGISTER_UNIT) * _REGISTER_UNIT
        by["registers"] = gpu.registers_per_sm // (a_warp * warps)
    if smem:
        by["shared memory"] = gpu.smem_per_sm // (smem + _SYSTEM_SMEM)
    return by


def shared_memory(launch: Launch, kernel: KernelInfo | None) -> int:
    """Bytes of shared memory that a block requests, without those that the system reserves."""
    static = kernel.static_smem_bytes if kernel else 0  # includes the system's KiB in a cubin for sm_90
    return launch.dynamic_smem_bytes + max(static - _SYSTEM_SMEM, 0)


def multiprocessors(launch: Launch, blocks: int, gpu: GpuSpec) -> int:
    """Number of multiprocessors that the launch's clusters can use, with ``blocks`` blocks on each."""
    cluster = math.prod(launch.cluster)
    share = 1.0 if cluster <= 2 else _CLUSTERED_ALONE.get(cluster, _CLUSTERED) if blocks == 1 else _CLUSTERED
    return round(gpu.sm_count * share)


def resident_blocks(launch: Launch, kernel: KernelInfo | None, gpu: GpuSpec) -> int:
    """Blocks resident on the GPU at a time; the others wait until one ends."""
    blocks = min(blocks_by(launch, kernel, gpu).values())
    return blocks * multiprocessors(launch, blocks, gpu)
