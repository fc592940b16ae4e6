"""Rules out builds by the compiler's figures, before they take any device time."""

from __future__ import annotations

import math

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.roofline import target_gpu

SPILLED = 256  # bytes per thread above which spills dominate a kernel; a few spilled registers cost little


def unpromising(build: Build, arch: str) -> str:
    """Why a build cannot run on ``arch``'s GPU or cannot be fast there; empty if no figure rules it out."""
    gpu = target_gpu(arch)
    kernels = {k.name: k for k in build.kernels}
    for launch in build.plan.launches:
        info, threads = kernels.get(launch.kernel), math.prod(launch.block)
        if info is None:
            continue
        if info.spill_store_bytes + info.spill_load_bytes > SPILLED:
            spilled = info.spill_store_bytes + info.spill_load_bytes
            return f"{spilled} B per thread are spilled"
        if info.registers * threads > gpu.registers_per_sm:
            return f"{threads} threads of {info.registers} registers each do not fit a multiprocessor"
        smem = info.static_smem_bytes + launch.dynamic_smem_bytes
        if smem > gpu.max_smem_per_block:
            return f"{smem} B of shared memory are more than a block can have ({gpu.max_smem_per_block})"
    return ""
