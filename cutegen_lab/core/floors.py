"""How fast a workload can be computed on a GPU: in one kernel or as eager PyTorch executes it, by operand precision."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.operations import Execution, Operation
from cutegen_lab.core.predicted import LAUNCH_US, with_launch
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.core.roofline import GpuSpec, SpeedOfLight, product_dtype, speed_of_light

Limiter = Literal["memory", "compute", "launches"]
_TF32 = "tf32"
_PRECISIONS = (("f32", DType.F32), (_TF32, DType.F32), ("bf16, f16", DType.BF16), ("f8", DType.F8E4M3))  # widest first


@dataclass(frozen=True)
class Limit:
    """Time of kernels that run one after another."""

    bound_us: float
    """Lower bound: for each kernel the longer of its bytes at DRAM bandwidth and its matrix operations at peak rate."""
    floor_us: float
    """Reachable time: for each kernel a launch, and the longer of a copy of its bytes and its matrix operations."""
    limiter: Limiter
    """What most of ``floor_us`` is."""


@dataclass(frozen=True)
class Precision:
    """Limits if the operands of all matrix products are rounded (or widened) to one precision; all tensors in memory
    stay as they are."""

    name: str
    """"f32", "tf32", "bf16, f16", "f8", or the problem's own dtype."""
    change: Literal["as given", "if rounded to", "if computed in"]
    """Whether it is that of the problem, a narrower one, or a wider one."""
    peak_flops_per_s: float
    """Peak rate; f32 without TF32 is three products of fp16 operands, or the fp32 units if these are faster."""
    compute_us: float
    """Matrix operations at that rate."""
    fused: Limit
    """One kernel."""
    unfused: Limit
    """A kernel for each operator."""


@dataclass(frozen=True)
class Floors:
    """Limits of one workload on one GPU."""

    gpu: GpuSpec
    bound: SpeedOfLight
    """Speed of light."""
    copy_us: float
    """Time of a copy of the bytes of ``bound``."""
    vector_us: float
    """Lower bound by vector arithmetic at the fp32 units' rate, and by special functions at theirs, if they run at the
    same time. Packed 16-bit instructions and polynomials may be faster, so no bound includes it."""
    fused: Limit
    """One kernel."""
    unfused: Limit
    """A kernel for each operator that eager PyTorch executes."""
    precisions: tuple[Precision, ...]
    """Widest first; empty without matrix operations."""


def floors(problem: Problem, workload: Workload, execution: Execution, gpu: GpuSpec) -> Floors:
    """Limits of ``workload`` of ``problem``, for which eager PyTorch executes ``execution``, on ``gpu``."""
    alone = replace(problem, workloads=(workload,), flops=execution.flops)
    bound, operations, nbytes = speed_of_light(alone, gpu), execution.operations, workload.compulsory_bytes
    return Floors(
        gpu=gpu,
        bound=bound,
        copy_us=nbytes / gpu.copy_bytes_per_s * 1e6,
        vector_us=_vector_us(execution, gpu),
        fused=_limit([(nbytes, bound.compute_us)], gpu),
        unfused=_unfused(operations, gpu, partial(gpu.peak, tf32=problem.any_tf32)),
        precisions=_precisions(alone, bound, operations, gpu) if execution.flops else (),
    )


def _vector_us(execution: Execution, gpu: GpuSpec) -> float:
    plain = execution.vector_operations / gpu.flops[DType.F32]  # counts a fused multiply-add as two
    return max(plain, execution.special_functions / gpu.special_per_s) * 1e6


def _limit(kernels: Iterable[tuple[int, float]], gpu: GpuSpec) -> Limit:
    """Limit of kernels, given as (bytes moved, microseconds of matrix operations)."""
    bound_us = floor_us = 0.0
    parts: dict[Limiter, float] = {"memory": 0.0, "compute": 0.0, "launches": 0.0}
    for nbytes, compute_us in kernels:
        copy_us = nbytes / gpu.copy_bytes_per_s * 1e6
        bound_us += max(nbytes / gpu.dram_bytes_per_s * 1e6, compute_us)
        floor_us += with_launch(copy_us, compute_us)
        parts["memory" if copy_us >= compute_us else "compute"] += max(copy_us, compute_us)
        parts["launches"] += LAUNCH_US
    return Limit(bound_us, floor_us, max(parts, key=lambda name: parts[name]))


def _unfused(operations: Sequence[Operation], gpu: GpuSpec, peak: Callable[[DType], float]) -> Limit:
    """Limit with a kernel for each operator. ``peak``: operations per second for a dtype of operands."""
    return _limit(((o.bytes_moved, o.flops / peak(o.operand_dtype or DType.F32) * 1e6) for o in operations), gpu)


def _precisions(
    problem: Problem, bound: SpeedOfLight, operations: Sequence[Operation], gpu: GpuSpec
) -> tuple[Precision, ...]:
    own, given = partial(gpu.peak, tf32=problem.any_tf32), _given(problem, gpu)
    rows = [(name, gpu.peak(dtype, name == _TF32)) for name, dtype in _PRECISIONS if dtype in gpu.flops]
    if given not in dict(rows):  # float64 and integers
        rows = [(given, own(product_dtype(problem, gpu)))]
    found = []
    for name, rate in rows:
        compute_us = problem.flops / rate * 1e6
        fused = _limit([(bound.compulsory_bytes, compute_us)], gpu)
        unfused = _unfused(operations, gpu, own if name == given else partial(_always, rate))
        found.append(Precision(name, _change(name, given), rate, compute_us, fused, unfused))
    return tuple(found)


def _always(rate: float, dtype: DType) -> float:
    return rate


def _change(name: str, given: str) -> Literal["as given", "if rounded to", "if computed in"]:
    names = [name for name, _ in _PRECISIONS]
    if name == given:
        return "as given"
    return "if rounded to" if names.index(name) > names.index(given) else "if computed in"


def _given(problem: Problem, gpu: GpuSpec) -> str:
    """Name of the problem's own precision."""
    dtype = product_dtype(problem, gpu)
    if dtype is DType.F32:
        return _TF32 if problem.any_tf32 else "f32"
    if not dtype.is_float or dtype is DType.F64:
        return str(dtype.value)
    return "f8" if dtype.is_float8 and dtype in gpu.flops else "bf16, f16"
