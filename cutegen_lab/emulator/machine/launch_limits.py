"""Limits of a launch (CUDA C++ Programming Guide, "Compute Capabilities", technical specifications)."""

from __future__ import annotations

import math
from contextlib import suppress
from functools import lru_cache

import numpy as np

from cutegen_lab.core.artifact import Build, Launch
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.residency import resident_blocks
from cutegen_lab.core.roofline import target_gpu
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator.program import Program

_GRID = (2**31 - 1, 65_535, 65_535)
_BLOCK = (1024, 1024, 64)
_LOCAL_BYTES = 512 << 10
_USETMAXREG = 0x9C8
_ARCHS = ("sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a")


def check(launch: Launch, program: Program, arch: str, tensors: int) -> tuple[Verdict, str] | None:
    """The first limit that a launch exceeds, or None."""
    if arch not in _ARCHS:
        return Verdict.UNSUPPORTED, f"the emulator does not run {arch}; it runs {', '.join(_ARCHS)}"
    try:
        gpu = target_gpu(arch)
        smem_limit, threads_limit, cluster_limit = gpu.max_smem_per_block, gpu.max_threads_per_block, gpu.max_cluster
    except InputError:
        smem_limit, threads_limit, cluster_limit = 166_912, 1024, 1
    problem = _shape(launch, threads_limit, cluster_limit)
    problem = problem or _directives(launch, program)
    smem = program.static_smem + launch.dynamic_smem_bytes
    if not problem and smem > smem_limit:
        problem = f"{smem} bytes of shared memory per block; {arch} allows {smem_limit}"
    if not problem and program.local_bytes > _LOCAL_BYTES:
        problem = f"{program.local_bytes} bytes of local memory per thread; at most {_LOCAL_BYTES}"
    if not problem:
        problem = _params(launch, program, tensors)
    return (Verdict.INVALID_PLAN, problem) if problem else None


def _shape(launch: Launch, threads_limit: int, cluster_limit: int) -> str:
    for name, value, limit in (("grid", launch.grid, _GRID), ("block", launch.block, _BLOCK)):
        if any(v < 1 or v > m for v, m in zip(value, limit, strict=True)):
            return f"{name} {value}; each axis must be 1 to {limit}"
    threads = math.prod(launch.block)
    if threads > threads_limit:
        return f"{threads} threads per block; at most {threads_limit}"
    if any(c < 1 for c in launch.cluster) or math.prod(launch.cluster) > cluster_limit:
        return f"cluster {launch.cluster}; at most {cluster_limit} blocks"
    if any(g % c for g, c in zip(launch.grid, launch.cluster, strict=True)):
        return f"grid {launch.grid} is not a multiple of cluster {launch.cluster}"
    return ""


def _directives(launch: Launch, program: Program) -> str:
    """Checks the kernel's directives about its launch (PTX ISA 11.4 "Performance-Tuning Directives", 11.7)."""
    kernel, threads = program.kernel, math.prod(launch.block)
    if kernel.threads is not None and kernel.threads != launch.block:
        return f"block {launch.block}; the kernel is compiled for {kernel.threads} (.reqntid)"
    if kernel.most_threads is not None and threads > kernel.most_threads:
        return f"{threads} threads per block; the kernel is compiled for at most {kernel.most_threads} (.maxntid)"
    if kernel.cluster is not None and kernel.cluster != launch.cluster:
        return f"cluster {launch.cluster}; the kernel is compiled for {kernel.cluster} (.reqnctapercluster)"
    return ""


def resident(launch: Launch, build: Build) -> int | None:
    """Blocks resident on the target GPU at a time; None if unknown."""
    with suppress(InputError):
        kernel = next((k for k in build.kernels if k.name == launch.kernel), None)
        return resident_blocks(launch, kernel, target_gpu(build.arch))
    return None


def registers(launch: Launch, build: Build) -> int | None:
    """Registers per thread at launch. None if ptxas dropped ``setmaxnreg``, which it does if a warpgroup needs more
    registers than it requests (advisory C7508)."""
    if build.cubin and not _keeps_setmaxnreg(build.cubin):
        return None
    return next((k.registers for k in build.kernels if k.name == launch.kernel), None)


@lru_cache(64)
def _keeps_setmaxnreg(cubin: bytes) -> bool:
    """True if some word of ``cubin`` may be a USETMAXREG, which has opcode 0x9c8 in sm_90's SASS."""
    words = np.frombuffer(cubin, "<u8", len(cubin) // 8)
    return bool(((words & 0xFFF) == _USETMAXREG).any())


def _params(launch: Launch, program: Program, tensors: int) -> str:
    given, wanted = [len(p) for p in launch.params], [size for _, size in program.params]
    if given != wanted:
        return f"parameters of {given} bytes; the kernel takes {wanted}"
    for moved in launch.relocations:
        if moved.param >= len(given) or not 0 <= moved.offset <= given[moved.param] - 8 or moved.tensor >= tensors:
            return f"relocation {moved} is outside the parameters or tensors"
    return ""
