"""Target GPUs and the speed-of-light bound (Williams et al. 2009; μCUTLASS+SOL §3: t_SOL = max(FLOPs/peak,
bytes/BW))."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.hints import Advice, Hint
from cutegen_lab.core.problem import Problem

_SCALED = "scaled from the H200's by DRAM bandwidth"


@dataclass(frozen=True)
class GpuSpec:
    """One GPU model: limits per block and per multiprocessor, and peak rates."""

    name: str
    """Model name as it occurs in CUDA's device name ("H200")."""
    arch: str
    """Target architecture of the compiler ("sm_90a")."""
    sm_count: int
    """Number of multiprocessors."""
    clock_hz: float
    """Boost clock in Hz."""
    dram_bytes_per_s: float
    """Datasheet DRAM bandwidth in bytes per second."""
    copy_bytes_per_s: float
    """Bandwidth that a large device-to-device copy reaches (reads plus writes), in bytes per second."""
    l2_bytes: int
    """Size of L2 in bytes."""
    max_smem_per_block: int
    """Maximum shared memory per block in bytes."""
    smem_per_sm: int
    """Shared memory per multiprocessor in bytes."""
    registers_per_sm: int
    """32-bit registers per multiprocessor."""
    max_threads_per_sm: int
    """Maximum number of resident threads per multiprocessor."""
    max_blocks_per_sm: int
    """Maximum number of resident blocks per multiprocessor."""
    flops: Mapping[DType, float]
    """Datasheet dense matrix rate by operand dtype, in operations per second."""
    max_threads_per_block: int = 1024
    """Maximum number of threads per block."""
    max_cluster: int = 16
    """Maximum number of blocks per cluster; 1 if the GPU has no clusters."""
    copy_source: str = _SCALED
    """Where ``copy_bytes_per_s`` is from."""

    @property
    def special_per_s(self) -> float:
        """Special functions (ex2, lg2, rcp, rsqrt, sin, cos) per second: 16 a cycle in each multiprocessor (CUDA C++
        guide, throughput of native arithmetic instructions, compute capability 8.0 to 9.0)."""
        return 16 * self.sm_count * self.clock_hz

    def peak(self, dtype: DType, tf32: bool = False) -> float:
        """Peak matrix operations per second for operands of ``dtype``.

        An fp32 product runs on tensor cores as three products of split-fp16 operands (Ootomo and Yokota 2022), or, if
        ``tf32`` rounding is allowed, as one at half bf16's rate. 8-bit floats that the tensor cores lack are multiplied
        as bf16.
        """
        if dtype is DType.F32:
            return max(self.flops[DType.F32], self.flops[DType.BF16] / (2 if tf32 else 3))
        return self.flops.get(dtype, self.flops[DType.BF16] if dtype.is_float else self.flops[DType.F32])


def _hopper(name: str, dram: float, copy: float, l2_mib: int, sms: int = 132, copy_source: str = _SCALED) -> GpuSpec:
    """Figures common to the SXM parts: NVIDIA H100/H200 datasheets; limits from the CUDA C++ guide, compute capability
    9.0."""
    return GpuSpec(
        name=name, arch="sm_90a", sm_count=sms, clock_hz=1.98e9, dram_bytes_per_s=dram, copy_bytes_per_s=copy,
        l2_bytes=l2_mib << 20, max_smem_per_block=232_448, smem_per_sm=233_472, registers_per_sm=65_536,
        max_threads_per_sm=2048, max_blocks_per_sm=32,
        flops={DType.F64: 67e12, DType.F32: 67e12, DType.BF16: 989e12, DType.F16: 989e12, DType.I8: 1979e12,
               DType.F8E4M3: 1979e12, DType.F8E5M2: 1979e12},
        copy_source=copy_source,
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

GPUS: Mapping[str, GpuSpec] = {
    "H200": _hopper("H200", dram=4.8e12, copy=4.14e12, l2_mib=60, copy_source="measured 2026-11-20, bf16 32768×8192"),
    "H100": _hopper("H100", dram=3.35e12, copy=2.9e12, l2_mib=50),
    "A100": _A100,
    "L40S": _L40S,
}


def target_gpu(arch: str, name: str = "") -> GpuSpec:
    """GPU whose speed of light bounds a run: the one whose name occurs in ``name``, or the first of ``arch``.

    Raises :class:`InputError` for an unknown arch or name, and for a GPU of another arch.
    """
    known = [gpu for gpu in GPUS.values() if gpu.arch == arch]
    if not known:
        archs = tuple(sorted({gpu.arch for gpu in GPUS.values()}))
        raise InputError(f"no speed-of-light figures for arch {arch!r}", Hint(Advice.KNOWN_ARCH, archs, arch))
    named = [gpu for gpu in GPUS.values() if gpu.name.lower() in name.lower()] if name else known
    if not named:
        raise InputError(f"no speed-of-light figures for GPU {name!r}", Hint(Advice.KNOWN_GPU, tuple(GPUS), name))
    if named[0].arch != arch:
        raise InputError(
            f"the {named[0].name} runs {named[0].arch}, not {arch}", Hint(Advice.KNOWN_ARCH, (named[0].arch,))
        )
    return named[0]


@dataclass(frozen=True)
class SpeedOfLight:
    """Lower bound on a problem's time on one GPU."""

    time_us: float
    """The bound: the larger of the two below, in microseconds."""
    memory_us: float
    """Compulsory bytes over datasheet bandwidth, in microseconds."""
    compute_us: float
    """Matrix operations over peak rate, in microseconds."""
    compulsory_bytes: int
    """Bytes of inputs that must be read, and of outputs, each moved once."""
    flops: int
    """Operations of the matrix products."""
    limiter: Literal["memory", "compute"]
    """Which of the two is larger: "memory" or "compute"."""
    gpu: str
    """Name of the GPU whose rates were used."""

    def gap(self, time_us: float) -> float:
        """``sol_gap``: ``time_us`` over the bound; 1.0 is the bound itself."""
        return time_us / self.time_us


def product_dtype(problem: Problem, gpu: GpuSpec) -> DType:
    """The main workload's element type with the highest peak: that of the operands in the fastest exact product."""
    return max((tensor.dtype for tensor in problem.workload.tensors), key=lambda d: gpu.peak(d, problem.any_tf32))


def speed_of_light(problem: Problem, gpu: GpuSpec) -> SpeedOfLight:
    """Bound for ``problem.workloads[0]``: compulsory bytes at datasheet bandwidth, matrix operations at the highest
    peak of any of its tensors' dtypes."""
    nbytes = problem.workload.compulsory_bytes
    memory_us = nbytes / gpu.dram_bytes_per_s * 1e6
    compute_us = problem.flops / gpu.peak(product_dtype(problem, gpu), problem.any_tf32) * 1e6
    limiter: Literal["memory", "compute"] = "memory" if memory_us >= compute_us else "compute"
    return SpeedOfLight(max(memory_us, compute_us), memory_us, compute_us, nbytes, problem.flops, limiter, gpu.name)
