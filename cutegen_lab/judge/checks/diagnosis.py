"""Chooses the verdict and its wording for an error."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import Workload
from cutegen_lab.core.trial import OutputError
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.judge.checks.likeness import likeness
from cutegen_lab.judge.compare.distances import distances
from cutegen_lab.judge.execution.buffers import Buffers
from cutegen_lab.judge.rounding import tf32
from cutegen_lab.judge.rounding.noise import UNIT_ROUNDOFF
from cutegen_lab.judge.rounding.samples import perturbed
from cutegen_lab.problems import Reference

# Maximum number of elements of a workload whose reference is run again only to explain an error.
_EXPLAINED_ELEMENTS = 1 << 22
# Truncation to TF32 is named as the cause if the errors differ by at most this factor (truncation is deterministic).
_TRUNCATION_FACTOR = 1.05
_PRECISION_FACTOR = 6.0  # a lower precision is named as the cause if the errors differ by at most this factor
_LOWER = {
    DType.F64: (("float32", UNIT_ROUNDOFF[DType.F32]), ("TF32 or float16", UNIT_ROUNDOFF[DType.F16])),
    DType.F32: (("TF32 or float16", UNIT_ROUNDOFF[DType.F16]), ("bfloat16", UNIT_ROUNDOFF[DType.BF16])),
    DType.F16: (("bfloat16", UNIT_ROUNDOFF[DType.BF16]),),
    DType.BF16: (("bfloat16 for intermediate results", UNIT_ROUNDOFF[DType.BF16]),),
}
_BELOW_TF32 = (("bfloat16", UNIT_ROUNDOFF[DType.BF16]),)


def compare_runs(
    workload: Workload, first: Buffers, second: Buffers, deterministic: bool
) -> tuple[Verdict, str] | None:
    """Verdict and reason if two runs with different poison differ in any bit: stale data was read, or elements were
    left unwritten."""
    for index, spec in enumerate(workload.outputs):
        a, b = first.outputs[index], second.outputs[index]
        changed = (_bits(a) != _bits(b)).reshape(-1)
        if not bool(changed.any()):
            continue
        left = int((first.unwritten(index) & second.unwritten(index)).sum())
        if left:
            return Verdict.UNWRITTEN_OUTPUT, f"{left} of {spec.numel} elements of {spec.name!r} were never written"
        if deterministic:
            count = int(changed.sum())
            reason = f"{count} of {spec.numel} elements of {spec.name!r} differ between two runs on the same inputs"
            return Verdict.NON_DETERMINISTIC, reason
    return None


def diagnose(error: OutputError, unwritten: int, workload: Workload, index: int) -> tuple[Verdict, str]:
    """Verdict and reason for an error of output ``index``. ``unwritten``: number of its elements that still hold the
    poison."""
    spec = workload.outputs[index]
    # One random 8-bit value in 256 equals the poison by chance.
    if unwritten and spec.dtype.is_float and not spec.dtype.is_float8:
        return Verdict.UNWRITTEN_OUTPUT, f"{unwritten} of {spec.numel} elements of {spec.name!r} were never written"
    where = error.worst_place
    if not spec.dtype.is_float:
        return (
            Verdict.WRONG_RESULT,
            f"{error.norm:.1%} of {spec.name!r} is wrong; {where} is {error.got:g}, not {error.expected:g}",
        )
    kind, value, most, own = "error", error.norm, error.limit_norm, error.torch_norm
    if value <= most:
        kind, value, most, own = "error of one element", error.worst, error.limit_worst, error.torch_worst
    limit = f"limit {most:.2e}, " if most else "limit 0: nothing is rounded in this draw; "
    measure = f"{kind} {value:.2e} against float64 ({limit}PyTorch {own:.2e})"
    return Verdict.WRONG_RESULT, f"{measure}; worst at {where}: got {error.got:g}, expected {error.expected:g}"


def remark(
    reference: Reference, inputs: Sequence[torch.Tensor], index: int, error: OutputError, workload: Workload,
    got: torch.Tensor | None,
) -> str:  # fmt: skip
    """Clause for the reason of an error of output ``index``: a pattern in its values (``got``; None if only some were
    compared), or a lower precision whose errors are as large; "" if neither is found."""
    if sum(t.numel for t in workload.tensors) > _EXPLAINED_ELEMENTS:
        return ""
    if not error.norm > error.limit_norm:  # only errors of single elements exceed their limit
        return ""
    exact = reference.run_float64(inputs)[index]
    spec = workload.outputs[index]
    noise = max(error.torch_norm, UNIT_ROUNDOFF.get(spec.dtype, 0.0) / 2)  # rms of random rounding errors
    if got is not None and (found := likeness(got, exact, spec.name, error.limit_norm, noise)):
        return f"; {found}"
    return _of_precision(reference, inputs, index, error, workload, exact.reshape(-1)) if error.norm < 1 else ""


def _of_precision(
    reference: Reference, inputs: Sequence[torch.Tensor], index: int, error: OutputError, workload: Workload,
    exact: torch.Tensor,
) -> str:  # fmt: skip
    dtype = workload.outputs[index].dtype
    lower = _BELOW_TF32 if tf32.allowed(reference) and dtype is DType.F32 else _LOWER.get(dtype)
    if lower is None:
        return ""

    def apart(results: Sequence[torch.Tensor]) -> float:
        """Absolute logarithm of the ratio between the error and that of ``results``."""
        result = results[index].reshape(-1)
        effect = distances(result, result, exact)[0].norm
        return abs(math.log(error.norm / effect)) if 0 < effect < math.inf else math.inf

    if lower is _BELOW_TF32:
        mine = "the TF32 that the problem allows"
    else:
        mine = "float32" if dtype is DType.BF16 else f"the problem's {dtype.value}"
    if tf32.allowed(reference) and apart(tf32.truncated_result(reference, inputs)) < math.log(_TRUNCATION_FACTOR):
        return f"; {tf32.ADVICE}"
    found = [(apart(perturbed(reference, inputs, unit, index + 1)), name) for name, unit in lower]
    if min(found)[0] > math.log(_PRECISION_FACTOR):
        return ""
    return f"; computing in {min(found)[1]} instead of {mine} also gives errors of this size"


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    widths = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return tensor.reshape(-1).view(widths[tensor.element_size()])
