"""Operators that need several kernels, written as PyTorch operators between which a pipeline can be cut."""

from __future__ import annotations

from typing import Any

import torch

from cutegen_lab.core.errors import NotCovered
from cutegen_lab.problems import attention as formula

MEAN, SUM = 1, 2  # PyTorch's numbers for ``reduction``


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None, dropout: float = 0.0,
    causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
) -> torch.Tensor:  # fmt: skip
    """Attention in steps that separate kernels can compute. 16-bit operands are multiplied without conversion to
    fp32."""
    if dropout or enable_gqa:
        what = "dropout" if dropout else "fewer heads of keys than of queries"
        raise NotCovered(f"the templates do not cover scaled_dot_product_attention with {what}")
    return formula.attention(q, k, v, mask, causal, scale)


def cross_entropy(
    a: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None = None, reduction: int = MEAN,
    ignored: int = -100, smoothing: float = 0.0,
) -> Any:  # fmt: skip
    """For scores (batch, classes, positions, …): a column reduction, then the loss of each position's class."""
    if a.dim() < 3 or weight is not None or smoothing or target.dim() == a.dim():
        return NotImplemented
    wide = a.float()
    top = wide.amax(1, keepdim=True)
    total = torch.log(torch.exp(wide - top).sum(1)) + top.squeeze(1)  # an infinity gives NaN, as in log_softmax
    return _of_targets(total - _named(wide, target), target, reduction, ignored).to(a.dtype)


def nll_loss(
    a: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None = None, reduction: int = MEAN,
    ignored: int = -100,
) -> Any:  # fmt: skip
    if a.dim() < 2 or weight is not None:
        return NotImplemented
    return _of_targets(-_named(a.float(), target), target, reduction, ignored).to(a.dtype)


def _named(a: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return a.gather(1, target.unsqueeze(1)).squeeze(1)


def _of_targets(loss: torch.Tensor, target: torch.Tensor, reduction: int, ignored: int) -> torch.Tensor:
    """The reduced loss. The mean is over positions whose class is not ignored."""
    ignoring = target == ignored
    loss = loss.masked_fill(ignoring, 0.0)
    if reduction not in (MEAN, SUM):
        return loss
    return loss.sum() / (~ignoring).float().sum() if reduction == MEAN else loss.sum()


IN_STEPS = {
    torch.ops.aten.scaled_dot_product_attention.default: attention,
    torch.ops.aten.cross_entropy_loss.default: cross_entropy,
    torch.ops.aten.nll_loss_nd.default: nll_loss,
}
