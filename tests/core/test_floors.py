"""Bounds and reachable times of a workload, in one kernel and operator by operator."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_lab.bench import memory_bound, products
from cutegen_lab.bench.record import read
from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.floors import Floors, floors
from cutegen_lab.core.operations import Execution, Operation
from cutegen_lab.core.problem import Problem, TensorSpec, Workload
from cutegen_lab.core.roofline import GPUS, speed_of_light
from cutegen_lab.problems.executed import execution

H200, A100 = GPUS["H200"], GPUS["A100"]
MEASURED = Path(__file__).parents[2] / "benchmarks" / "results" / "bench_h200.json"
N = 4096
FLOPS, BYTES = 2 * N**3, 3 * 2 * N * N  # of a product of bf16


def product(dtype: DType = DType.BF16, tf32: bool = False) -> Problem:
    tensors = [TensorSpec(name, dtype, (N, N)) for name in ("a", "b", "out")]
    workload = Workload("main", tuple(tensors[:2]), tuple(tensors[2:]))
    return Problem("p", "", "reference", (workload,), flops=FLOPS, tf32=tf32)


def found(problem: Problem, *operations: Operation, gpu: str = "H200") -> Floors:
    """Limits if ``operations`` compute the problem."""
    nbytes = [spec.nbytes for spec in problem.workload.inputs]
    flops = sum(o.flops for o in operations)
    executed = Execution(operations, tuple(nbytes), flops, 67_000_000, 4_181_760)
    return floors(problem, problem.workload, executed, GPUS[gpu])


def mm(dtype: DType = DType.BF16) -> Operation:
    size = N * N * dtype.itemsize
    return Operation("aten.mm", 2 * size, size, FLOPS, dtype)


GELU = Operation("aten.gelu", BYTES // 3, BYTES // 3)


def test_one_kernel_moves_the_compulsory_bytes_and_eager_pytorch_each_operators() -> None:
    limits = found(product(), mm(), GELU)
    compute_us, copy_us = FLOPS / 989e12 * 1e6, 2 / 3 * BYTES / 4.14e12 * 1e6
    assert limits.bound == speed_of_light(product(), H200)
    assert limits.fused.bound_us == pytest.approx(compute_us)
    assert limits.fused.floor_us == pytest.approx(2 + compute_us)
    assert limits.unfused.bound_us == pytest.approx(compute_us + 2 / 3 * BYTES / 4.8e12 * 1e6)
    assert limits.unfused.floor_us == pytest.approx(2 * 2 + compute_us + copy_us)
    assert (limits.fused.limiter, limits.unfused.limiter) == ("compute", "compute")
    assert limits.copy_us == pytest.approx(BYTES / 4.14e12 * 1e6)


def test_what_sets_a_floor() -> None:
    small, large = Operation("aten.add", 8, 8), Operation("aten.add", 10**9, 10**9)
    assert [found(product(), o).unfused.limiter for o in (small, large, mm())] == ["launches", "memory", "compute"]
    assert found(product(), large).precisions == (), "without matrix operations no precision matters"


def test_vector_arithmetic_is_a_time_of_its_own() -> None:
    # 67 million operations at 67 T/s; 4.18 million special functions at 16 · 132 · 1.98 GHz
    assert found(product(), mm()).vector_us == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("dtype", "tf32", "changes"),
    [
        (DType.F32, False, ["as given", "if rounded to", "if rounded to", "if rounded to"]),
        (DType.F32, True, ["if computed in", "as given", "if rounded to", "if rounded to"]),
        (DType.BF16, False, ["if computed in", "if computed in", "as given", "if rounded to"]),
        (DType.F16, False, ["if computed in", "if computed in", "as given", "if rounded to"]),
        (DType.F8E4M3, False, ["if computed in", "if computed in", "if computed in", "as given"]),
    ],
)
def test_a_row_for_each_precision_and_the_problems_own_has_its_bound(
    dtype: DType, tf32: bool, changes: list[str]
) -> None:
    problem = product(dtype, tf32)
    limits = found(problem, mm(dtype))
    rows = limits.precisions
    assert [row.name for row in rows] == ["f32", "tf32", "bf16, f16", "f8"]
    assert [row.change for row in rows] == changes
    assert [row.peak_flops_per_s for row in rows] == pytest.approx([989e12 / 3, 989e12 / 2, 989e12, 1979e12])
    own = rows[changes.index("as given")]
    assert own.compute_us == limits.bound.compute_us == speed_of_light(problem, H200).compute_us
    assert (own.fused, own.unfused) == (limits.fused, limits.unfused)


@pytest.mark.parametrize("dtype", [DType.F64, DType.I8])
def test_float64_and_integers_are_not_rounded(dtype: DType) -> None:
    (row,) = found(product(dtype), mm(dtype)).precisions
    assert (row.name, row.change, row.peak_flops_per_s) == (dtype.value, "as given", H200.peak(dtype))


def test_an_a100_has_no_fp8() -> None:
    rows = found(product(DType.F8E4M3), mm(DType.F8E4M3), gpu="A100").precisions
    assert [(row.name, row.change) for row in rows][-1] == ("bf16, f16", "as given")
    assert rows[-1].peak_flops_per_s == A100.flops[DType.BF16]


def test_a_part_of_an_input_bounds_every_time() -> None:
    problem, size = product(), N * N * 2
    a, b = problem.workload.inputs
    workload = replace(problem.workload, inputs=(a, replace(b, least_bytes=128)))
    limits = floors(problem, workload, Execution((mm(),), (size, 128), 0, 0, 0), H200)
    assert limits.bound.compulsory_bytes == 2 * size + 128 < BYTES
    assert limits.copy_us == pytest.approx((2 * size + 128) / H200.copy_bytes_per_s * 1e6)


@pytest.mark.parametrize(
    ("name", "tf32", "special"),
    [
        ("H200", 494.7e12, 16 * 132 * 1.98e9),
        ("H100", 494.7e12, 16 * 132 * 1.98e9),
        ("A100", 156e12, 16 * 108 * 1.41e9),
        ("L40S", 183e12, 16 * 142 * 2.52e9),
    ],
)
def test_rates_agree_with_datasheets(name: str, tf32: float, special: float) -> None:
    """TF32 by the datasheet is half of bf16; no copy is as fast as DRAM."""
    gpu = GPUS[name]
    assert gpu.peak(DType.F32, tf32=True) == pytest.approx(tf32, rel=0.015)
    assert gpu.special_per_s == special
    assert 0.8 < gpu.copy_bytes_per_s / gpu.dram_bytes_per_s < 1
    assert gpu.copy_source.startswith("measured" if name == "H200" else "scaled")


CASES = (
    "softmax-bf16-16384x4096", "rms_norm-bf16-16384x4096", "layer_norm-bf16-16384x4096", "sum-bf16-32768x4096",
    "fused_add_rmsnorm-bf16-8192x4096", "silu_and_mul-bf16-10923x4096", "merge_attn_states-bf16-10923x4096",
    "cross_entropy-bf16-4096x32768", "gemm-4096x4096x4096", "gemm_tf32-4096x4096x4096", "gemm_f8-4096x4096x4096",
    "linear_bias_gelu-llama_3_8b-4096x14336x4096", "swiglu-llama_3_8b-4096x14336x4096",
    "linear_residual_norm-llama_3_8b-4096x4096x4096",
)  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_floors_agree_with_what_was_measured_on_an_h200(name: str) -> None:
    """Eager PyTorch takes longer than the floor of its operators. The templates' kernel takes at least 0.88 of one
    kernel's floor, which assumes a copy: reads alone are faster."""
    (row,) = (row for row in read(MEASURED) if row.name == name)
    (case,) = (case for case in (*memory_bound.cases(), *products.cases()) if case.name == name)
    problem = case.problem
    limits = floors(problem, problem.workload, execution(problem, problem.workload), H200)
    assert row.times_us["eager"] > limits.unfused.floor_us
    assert row.times_us["c0"] > 0.88 * limits.fused.floor_us
