"""Conversion between torch's element types and ours."""

from __future__ import annotations

import torch

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.errors import ProblemError

TORCH = {
    DType.F64: torch.float64, DType.F32: torch.float32, DType.F16: torch.float16, DType.BF16: torch.bfloat16,
    DType.I64: torch.int64, DType.I32: torch.int32, DType.I16: torch.int16, DType.I8: torch.int8,
    DType.U8: torch.uint8, DType.BOOL: torch.bool, DType.F8E4M3: torch.float8_e4m3fn, DType.F8E5M2: torch.float8_e5m2,
}  # fmt: skip
_OURS = {theirs: ours for ours, theirs in TORCH.items()}


def from_torch(dtype: torch.dtype, where: str) -> DType:
    """Raises ProblemError naming ``where`` (``input 'x'``) for an unsupported dtype."""
    if dtype not in _OURS:
        known = ", ".join(d.value for d in TORCH)
        raise ProblemError(
            f"{where} has the unsupported dtype {str(dtype).removeprefix('torch.')}", f"Use one of {known}."
        )
    return _OURS[dtype]
