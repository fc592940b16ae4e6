"""PyTorch's fp32 products and convolutions with operands rounded to TF32, where allowed, with the same result on CPU
and GPU.

Operands are rounded to nearest, then multiplied in fp32, which is exact except for the sums. Everything else keeps its
precision, so the loss is what the products are allowed to lose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from cutegen_lab.core.problem import Problem
from cutegen_lab.problems import Reference

UNIT = 2.0**-11  # unit roundoff: 10 bits of mantissa are kept
TRUNCATED = 2.0**-26
"""Relative error of a sum for each of its terms: tensor cores add a few terms at a time and truncate below the sum's
last bit. Those of an H200 lose 2**-27 per term if all terms have one sign (measured with 8192 terms; less in cuBLAS,
which restarts its sums)."""
NOTE = "fp32 operands of matrix products may be rounded to TF32, as the problem asks"
CONVOLUTIONS_NOTE = "fp32 operands of convolutions may be rounded to TF32, as PyTorch's are"
ADVICE = (
    "the error is that of TF32 with truncated operands: tensor cores ignore the low 13 bits of an fp32 operand. Round "
    "operands to nearest first (cvt.rna.tf32.f32, or TMA with the element type TFloat32)"
)
_LOW = 13  # mantissa bits of fp32 that TF32 lacks
_PRODUCTS = {"mm": (0, 1), "bmm": (0, 1), "addmm": (1, 2), "baddbmm": (1, 2)}  # indices of the multiplied operands
_CONVOLUTIONS = {"convolution": (0, 1)}


def notes(problem: Problem) -> list[str]:
    """Notes for the verdict about what may be rounded."""
    return [NOTE] * problem.tf32 + [CONVOLUTIONS_NOTE] * problem.tf32_convolutions


def allowed(reference: Reference) -> bool:
    """Whether any operation may use TF32."""
    return reference.tf32 or reference.tf32_convolutions


def torch_result(reference: Reference, inputs: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """PyTorch's result at the problem's own precision, with TF32 if allowed."""
    if not allowed(reference):
        return reference.run(inputs)
    with _Tf32(rounded, reference):
        return reference.run(inputs)


def truncated_result(reference: Reference, inputs: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The reference's results with operands of products truncated to TF32, as tensor cores do to plain fp32 numbers."""
    with _Tf32(lambda x: _kept(x, x.view(torch.int32)), reference):
        return reference.run(inputs)


def rounded(x: torch.Tensor) -> torch.Tensor:
    """fp32 numbers rounded to nearest even in TF32; non-finite values are unchanged."""
    bits = x.view(torch.int32)
    return _kept(x, bits + ((1 << _LOW - 1) - 1) + (bits >> _LOW & 1))


def _kept(x: torch.Tensor, bits: torch.Tensor) -> torch.Tensor:
    return torch.where(x.isfinite(), (bits & -(1 << _LOW)).view(torch.float32), x)


class _Tf32(TorchDispatchMode):
    def __init__(self, to_tf32: Any, reference: Reference) -> None:
        super().__init__()
        self._to_tf32 = to_tf32
        self._multiplied = {
            **(_PRODUCTS if reference.tf32 else {}),
            **(_CONVOLUTIONS if reference.tf32_convolutions else {}),
        }

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        places = self._multiplied.get(func.overloadpacket.__name__, ())
        args = tuple(self._operand(x) if at in places else x for at, x in enumerate(args))
        return func(*args, **(kwargs or {}))

    def _operand(self, x: torch.Tensor) -> torch.Tensor:
        return self._to_tf32(x) if x.dtype is torch.float32 else x
