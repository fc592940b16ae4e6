"""Scaled dot-product attention by its formula, for tools that trace inside PyTorch's fused operator."""

from __future__ import annotations

import math

import torch


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None, causal: bool = False,
    scale: float | None = None, raised: float | None = None, plain: bool = False,
) -> torch.Tensor:  # fmt: skip
    """``torch.nn.functional.scaled_dot_product_attention`` of ``q[…, L, E]``, ``k[…, S, E]`` and ``v[…, S, Ev]``: [...,
    L, Ev] in their dtype. Scores stay in fp32, as in PyTorch's own kernels; weights are rounded to ``v``'s dtype, as
    for tensor cores.

    Keys hidden by a boolean mask or by ``causal`` are skipped: a NaN there has no effect. PyTorch's own kernels on a
    CPU add −∞ to their scores instead, so a NaN score stays NaN and +∞ becomes NaN; the judge accepts both.

    ``raised``: weights are rounded before the division by their sum, as in kernels that read the keys once; a row's
    largest weight is then 2 to the power ``raised``, since such kernels need not know the row's maximum.

    ``plain``: a row whose scores are all −∞, though not all keys are hidden, is NaN as in a plain softmax; otherwise
    it is 0, as in PyTorch.
    """
    scores = q.float() @ k.float().transpose(-2, -1) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if causal:
        rows, columns = (torch.arange(n, device=q.device) for n in scores.shape[-2:])
        scores = scores.masked_fill(columns > rows[:, None], -math.inf)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype is torch.bool else scores + mask
    nothing = scores.amax(-1, keepdim=True) == -math.inf  # rows of which every key is hidden, or has the score −∞
    if plain:
        nothing &= _all_hidden(scores, mask, causal)
    if raised is None:
        shares = torch.softmax(scores, -1).masked_fill(nothing, 0.0)
        return shares.to(v.dtype) @ v
    powers = (scores - scores.amax(-1, keepdim=True) + raised * math.log(2)).exp().masked_fill(nothing, 0.0)
    total = powers.sum(-1, keepdim=True).masked_fill(nothing, 1.0)
    return ((powers.to(v.dtype).float() @ v.float()) / total).to(v.dtype)


def _all_hidden(scores: torch.Tensor, mask: torch.Tensor | None, causal: bool) -> torch.Tensor:
    """Rows without a key that neither ``mask`` nor ``causal`` hides."""
    seen = torch.ones_like(scores, dtype=torch.bool)
    if causal:
        seen = seen.tril()
    if mask is not None:
        seen = seen & (mask if mask.dtype is torch.bool else mask != -math.inf)
    return ~seen.any(-1, keepdim=True)
