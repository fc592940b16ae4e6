"""Validates launch plans, which are untrusted data, before they reach a device (CUDA C++ guide, cc 9.0)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cutegen_lab.core.artifact import Build, Launch
from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.core.residency import blocks_by, resident_blocks
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.core.verdict import Fault, Verdict

COOPERATIVE = 2  # CU_LAUNCH_ATTRIBUTE_COOPERATIVE: all blocks run together, or none
MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_BLOCK = (1024, 1024, 64)
# CUlaunchAttributeID to bytes of its value (CUDA driver API); the cluster shape, 4, has a field of its own. A window of
# persisting L2 (1), events (7, 12) and updatable nodes (13) reach beyond the launch: no kernel may set them.
ATTRIBUTES = {2: 4, 5: 4, 6: 4, 8: 4, 9: 8, 10: 4, 11: 12, 14: 4}
TENSOR_MAP_BYTES = 128  # size of a tensor map, whose base address may be outside its tensor: copies add coordinates


def validate_plan(build: Build, tensors: Sequence[TensorSpec], gpu: GpuSpec) -> Fault | None:
    """Fault for the first error in the plan, or None. ``tensors``: inputs, outputs, workspace."""
    if not build.plan.launches:
        return Fault(Verdict.INVALID_PLAN, "launch() launches no kernel")
    for launch in build.plan.launches:
        if problem := _geometry(launch, gpu) or _attributes(launch) or _parameters(launch, build, tensors, gpu):
            return Fault(Verdict.INVALID_PLAN, problem, kernel=launch.kernel)
    return None


def _geometry(launch: Launch, gpu: GpuSpec) -> str:
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    cluster = launch.cluster[0] * launch.cluster[1] * launch.cluster[2]
    if any(not 1 <= size <= limit for size, limit in zip(launch.grid, MAX_GRID, strict=True)):
        return f"grid {launch.grid} is outside 1..{MAX_GRID}"
    if any(not 1 <= size <= limit for size, limit in zip(launch.block, MAX_BLOCK, strict=True)):
        return f"block {launch.block} is outside 1..{MAX_BLOCK}"
    if threads > gpu.max_threads_per_block:
        return f"{threads} threads per block, more than {gpu.max_threads_per_block}"
    if not 1 <= cluster <= gpu.max_cluster:
        return f"a cluster of {cluster} blocks, outside 1..{gpu.max_cluster}"
    if any(grid % size for grid, size in zip(launch.grid, launch.cluster, strict=True)):
        return f"grid {launch.grid} is not a multiple of the cluster {launch.cluster}"
    return ""


def _attributes(launch: Launch) -> str:
    for number, value in launch.attributes.items():
        if number not in ATTRIBUTES:
            return f"launch attribute {number} is not one a kernel may set ({', '.join(map(str, ATTRIBUTES))})"
        if len(value) != ATTRIBUTES[number]:
            return f"launch attribute {number} has {len(value)} bytes, not {ATTRIBUTES[number]}"
    return ""


def _parameters(launch: Launch, build: Build, tensors: Sequence[TensorSpec], gpu: GpuSpec) -> str:
    try:
        kernel = build.kernel(launch.kernel)
    except KeyError:
        return f"the plan launches {launch.kernel!r}, which the cubin does not contain"
    shared, expected = kernel.static_smem_bytes + launch.dynamic_smem_bytes, kernel.param_sizes
    if shared > gpu.max_smem_per_block:
        return f"{shared} bytes of shared memory, static and dynamic, more than {gpu.max_smem_per_block} per block"
    if why := [what for what, blocks in blocks_by(launch, kernel, gpu).items() if not blocks]:
        return f"no block fits on a multiprocessor: {', '.join(why)} ({kernel.registers} registers per thread)"
    resident = resident_blocks(launch, kernel, gpu)
    if any(launch.attributes.get(COOPERATIVE, b"")) and math.prod(launch.grid) > resident:
        return f"a cooperative grid of {math.prod(launch.grid)} blocks, but only {resident} run at a time"
    if tuple(map(len, launch.params)) != tuple(expected):
        return f"parameter sizes {tuple(map(len, launch.params))} differ from the kernel's {tuple(expected)}"
    for r in launch.relocations:
        if not (0 <= r.param < len(launch.params) and 0 <= r.offset <= len(launch.params[r.param]) - 8):
            return f"a relocation points outside parameter {r.param}"
        if not 0 <= r.tensor < len(tensors):
            return f"a relocation refers to tensor {r.tensor}, but the plan has {len(tensors)} tensors"
        outside = not 0 <= r.tensor_offset <= tensors[r.tensor].storage_bytes
        if outside and (len(launch.params[r.param]) != TENSOR_MAP_BYTES or r.offset):
            return f"a relocation points {r.tensor_offset} bytes into {tensors[r.tensor]}"
    return ""
