"""Target GPUs and the speed-of-light bound (Williams et al. 2009; μCUTLASS+SOL §3: t_SOL = max(FLOPs/peak,
bytes/BW))."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.problem import Problem


@dataclass(frozen=True)
class GpuSpec:
    """One GPU model. Rates are per second; ``dram_bytes_per_s`` and ``flops`` are the vendor's datasheet figures,
    ``copy_bytes_per_s`` what a large device-to-device copy was measured to reach (reads plus writes)."""

    name: str
    arch: str
    sm_count: int
    clock_hz: float
    dram_bytes_per_s: float
    copy_bytes_per_s: float
    l2_bytes: int
    max_smem_per_block: int
    smem_per_sm: int
    registers_per_sm: int
    max_threads_per_sm: int
    max_blocks_per_sm: int
    flops: Mapping[DType, float]  # dense matrix rate by operand dtype
    max_threads_per_block: int = 1024
    max_cluster: int = 16

    def peak(self, dtype: DType, tf32: bool = False) -> float:
        """The most matrix operations a second on operands of ``dtype``.

        fp32 operands are two fp16 halves each and three products on tensor cores (Ootomo and Yokota 2022), or, where
        they may be rounded to ``tf32``, one product at half bf16's rate. 8-bit floats that tensor cores do not take are
        multiplied as bf16.
        """
        if dtype is DType.F32:
            return max(self.flops[DType.F32], self.flops[DType.BF16] / (2 if tf32 else 3))
        return self.flops.get(dtype, self.flops[DType.BF16] if dtype.is_float else self.flops[DType.F32])


def _hopper(name: str, dram: float, copy: float, l2_mib: int, sms: int = 132) -> GpuSpec:
    """What the SXM parts share: NVIDIA H100/H200 datasheets; limits from the CUDA C++ guide, compute capability 9.0."""
    return GpuSpec(
        name=name, arch="sm_90a", sm_count=sms, clock_hz=1.98e9, dram_bytes_per_s=dram, copy_bytes_per_s=copy,
        l2_bytes=l2_mib << 20, max_smem_per_block=232_448, smem_per_sm=233_472, registers_per_sm=65_536,
        max_threads_per_sm=2048, max_blocks_per_sm=32,
        flops={DType.F64: 67e12, DType.F32: 67e12, DType.BF16: 989e12, DType.F16: 989e12, DType.I8: 1979e12,
               DType.F8E4M3: 1979e12, DType.F8E5M2: 1979e12},
    )  # fmt: skip


_A100 = GpuSpec(  # NVIDIA A100 80GB SXM datasheet; limits of compute capability 8.0
    name="A100", arch="sm_80", sm_count=108, clock_hz=1.41e9, dram_bytes_per_s=2.039e12, copy_bytes_per_s=1.76e12,
    l2_bytes=40 << 20, max_smem_per_block=166_912, smem_per_sm=167_936, registers_per_sm=65_536,
    max_threads_per_sm=2048, max_blocks_per_sm=32, max_cluster=1,
    flops={DType.F64: 19.5e12, DType.F32: 19.5e12, DType.BF16: 312e12, DType.F16: 312e12, DType.I8: 624e12},
)  # fmt: skip
_L40S = GpuSpec(  # NVIDIA L40S datasheet; limits of compute capability 8.9
    name="L40S", arch="sm_89", sm_count=142, clock_hz=2.52e9, dram_bytes_per_s=0.864e12, copy_bytes_per_s=0.745e12,
    l2_bytes=96 << 20, max_smem_per_block=101_376, smem_per_sm=102_400, registers_per_sm=65_536,
    max_threads_per_sm=1536, max_blocks_per_sm=24, max_cluster=1,
    flops={DType.F64: 1.4e12, DType.F32: 91.6e12, DType.BF16: 362e12, DType.F16: 362e12, DType.I8: 733e12,
           DType.F8E4M3: 733e12, DType.F8E5M2: 733e12},
)  # fmt: skip

# Copy rates: the H200's was measured (2026-11-20, 32768×8192 bf16), the others are scaled by its ratio to the bus.
GPUS: Mapping[str, GpuSpec] = {
    "H200": _hopper("H200", dram=4.8e12, copy=4.14e12, l2_mib=60),
    "H100": _hopper("H100", dram=3.35e12, copy=2.9e12, l2_mib=50),
    "A100": _A100,
    "L40S": _L40S,
}


def target_gpu(arch: str, name: str = "") -> GpuSpec:
    """The GPU a run optimises for: the one whose name is in ``name``, or the first that runs ``arch``.

    Raises :class:`InputError` for an arch or name without figures, and for a GPU of another arch.
    """
    known = [gpu for gpu in GPUS.values() if gpu.arch == arch]
    if not known:
        archs = ", ".join(sorted({gpu.arch for gpu in GPUS.values()}))
        raise InputError(f"no speed-of-light figures for arch {arch!r}", f"Use --arch with one of: {archs}.")
    named = [gpu for gpu in GPUS.values() if gpu.name.lower() in name.lower()] if name else known
    if not named:
        raise InputError(f"no speed-of-light figures for GPU {name!r}", f"Use --gpu with one of: {', '.join(GPUS)}.")
    if named[0].arch != arch:
        raise InputError(f"the {named[0].name} runs {named[0].arch}, not {arch}", f"Use --arch {named[0].arch}.")
    return named[0]


@dataclass(frozen=True)
class SpeedOfLight:
    """The lower bound on time, in microseconds, and what sets it."""

    time_us: float
    memory_us: float
    compute_us: float
    compulsory_bytes: int
    flops: int
    limiter: Literal["memory", "compute"]
    gpu: str

    def gap(self, time_us: float) -> float:
        """``sol_gap = time / sol_time``: 1.0 is the bound."""
        return time_us / self.time_us


def speed_of_light(problem: Problem, gpu: GpuSpec) -> SpeedOfLight:
    """Bound for ``problem.workloads[0]``: compulsory bytes at the datasheet's bandwidth, matrix FLOPs at the highest
    peak that the dtype of one of its tensors has."""
    workload = problem.workload
    memory_us = workload.compulsory_bytes / gpu.dram_bytes_per_s * 1e6
    peak = max(gpu.peak(tensor.dtype, problem.any_tf32) for tensor in workload.tensors)
    compute_us = problem.flops / peak * 1e6
    limiter: Literal["memory", "compute"] = "memory" if memory_us >= compute_us else "compute"
    return SpeedOfLight(
        max(memory_us, compute_us), memory_us, compute_us, workload.compulsory_bytes, problem.flops, limiter, gpu.name
    )
