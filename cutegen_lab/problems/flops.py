"""Counts the floating-point operations of a reference's matrix products, convolutions and attention."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

Shape = Sequence[int]


@dataclass(frozen=True)
class Work:
    """What a reference computes."""

    flops: int
    """Operations of its matrix products, convolutions and attention."""
    fp32_convolutions: bool
    """Whether there are convolutions of fp32 tensors."""
    images: bool
    """Whether there are convolutions of 4-d tensors."""


def counted(run: Callable[[], object]) -> Work:
    """Work of ``run()``, which computes with fake tensors on the CPU."""
    counter = FlopCounterMode(display=False, custom_mapping={_ATTENTION: _attention})
    seen = _Convolutions()
    # The fused backend passes ``is_causal`` on.
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]), counter, seen:
        run()
    return Work(int(counter.get_total_flops()), torch.float32 in seen.dtypes, 4 in seen.dims)


class _Convolutions(TorchDispatchMode):
    """Records dtype and rank of convolved tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.dtypes: set[torch.dtype] = set()
        self.dims: set[int] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is torch.ops.aten.convolution.default:
            self.dtypes.add(args[0].dtype)
            self.dims.add(args[0].dim())
        return func(*args, **(kwargs or {}))


_ATTENTION = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu  # PyTorch itself counts no operations for it


def _attention(q: Shape, k: Shape, v: Shape, dropout: float = 0.0, causal: bool = False, *_: Any, **__: Any) -> int:
    """Operations of two products over the pairs of query and key that ``is_causal`` does not exclude; with a mask,
    which is data, all pairs count. The number of heads is that of the queries, which may share keys."""
    *heads, queries, width = q
    keys = k[-2]
    seen = min(queries, keys)  # row i uses the first i + 1 keys
    pairs = seen * (seen + 1) // 2 + (queries - seen) * keys if causal else queries * keys
    return 2 * math.prod(heads) * pairs * (width + v[-1])
