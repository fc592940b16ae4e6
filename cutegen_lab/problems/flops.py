"""The floating-point operations of a reference's matrix products, convolutions and attention."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

Shape = Sequence[int]


def count(run: Callable[[], object]) -> int:
    """Those of ``run()``, which computes with fake tensors on the CPU."""
    counter = FlopCounterMode(display=False, custom_mapping={_ATTENTION: _attention})
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]), counter:  # the fused one says what is causal
        run()
    return int(counter.get_total_flops())


_ATTENTION = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu  # for which PyTorch itself counts nothing


def _attention(q: Shape, k: Shape, v: Shape, dropout: float = 0.0, causal: bool = False, *_: Any, **__: Any) -> int:
    """Two products over the pairs of a query and a key that ``is_causal`` leaves. What a mask leaves is data: all.
    Heads are those of the queries, which may share keys."""
    *heads, queries, width = q
    keys = k[-2]
    seen = min(queries, keys)  # row i sees the first i + 1 keys
    pairs = seen * (seen + 1) // 2 + (queries - seen) * keys if causal else queries * keys
    return 2 * math.prod(heads) * pairs * (width + v[-1])
