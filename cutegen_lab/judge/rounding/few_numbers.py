"""Norms dominated by a few large numbers: their rounding errors do not average out."""

from __future__ import annotations

import math

import torch

_RARE = math.log(1e6)  # log of the inverse probability that a correct kernel exceeds the limit
# In epsilons: three roundings of half an epsilon each; their root mean square is half an epsilon.
_MOST = 1.5


def rounding_limit(usual: float, eps: float, largest: torch.Tensor, norms: int = 1) -> torch.Tensor:
    """Limit of a relative norm of rounding errors that one of several ``norms`` exceeds with a probability of 1e-6.

    ``usual``: the norm if no number dominates. ``eps``: the type's epsilon. ``largest``: share of the largest number in
    the sum of squares, 0 to 1, for each norm.

    Rounding errors are uniform, hence strictly sub-Gaussian. Among weights up to ``largest``, equal weights make the
    tail of the weighted sum of squares heaviest: chi-squared with 1 / ``largest`` degrees of freedom, bounded by B.
    Laurent and P. Massart (2000), lemma 1.
    """
    odds = largest * (_RARE + math.log(max(norms, 1)))
    return (usual * (1 + 2 * odds.sqrt() + 2 * odds).sqrt()).clamp(max=max(usual, _MOST * eps))


def largest_share(values: torch.Tensor) -> torch.Tensor:
    """Share of the largest finite number in the sum of squares of flat ``values``; 0 if all are 0."""
    sizes = values.double().nan_to_num(0.0, 0.0, 0.0).abs_()
    return sizes.div_(sizes.amax()).square_().sum().reciprocal().nan_to_num(0.0)
