"""Attention by its formula in place of the fused operator, whose inner rounding no dispatch mode sees."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from cutegen_lab.problems.attention import attention


class AttentionFormula(TorchFunctionMode):
    """Computes attention of tensors with ``bytes`` per element by its formula. The fused operator rounds inside, where
    no other mode sees it; and values that a causal mask hides are skipped here, where PyTorch may add −∞. ``raised``,
    ``plain``: as in :func:`attention`."""

    def __init__(self, bytes: int, raised: float | None = None, plain: bool = False) -> None:
        super().__init__()
        self._bytes, self._raised, self._plain = bytes, raised, plain

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is torch.nn.functional.scaled_dot_product_attention and args[0].dtype.itemsize == self._bytes:
            result = self._formula(*args, **(kwargs or {}))
            if result is not None:
                return result
        return func(*args, **(kwargs or {}))

    def _formula(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
    ) -> torch.Tensor | None:  # fmt: skip
        if dropout_p or enable_gqa:
            return None
        return attention(q, k, v, attn_mask, is_causal, scale, self._raised, self._plain)
