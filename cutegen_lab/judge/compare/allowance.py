"""What a draw allows besides PyTorch's own error, and lower bounds of the limits of errors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import TensorSpec, Tolerances
from cutegen_lab.judge.rounding import tf32

# Number of fp32 roundings that an honest kernel may accumulate; one TF32 rounding is as large as 8,192 of them.
CONDITIONING = 16.0
# Norm-wise error of a sum, divided by the square root of its number of terms: 0.3 times half an epsilon was measured;
# the rest is a margin for unlucky draws.
_ERROR_PER_ROOT_TERM = 0.75 * 2.0**-24
_WALK_MARGIN = 0.75  # further fp32 roundings per square root of the number of terms (a random walk)
_MOST_TERMS = 1 << 20  # more terms do not raise the limit, which stays well under TF32's error of 3e-4 for every shape
_LEAST_MARGIN = 4.0  # minimum factor on the largest effect in a few samples
# Maximum limit, unless _LEAST_MARGIN sets a larger one: a larger limit would allow almost any result.
_MOST_MARGIN = 1e-2


@dataclass(frozen=True)
class Allowance:
    """What a draw allows besides PyTorch's own error, and which further limits it sets."""

    exact: bool = False
    """Whether float32 rounds nothing in this draw, in any order of summation (or values are only chosen and copied):
    then no error is allowed if PyTorch makes none."""
    nan_for_infinity: bool = False
    """Whether NaN is accepted if PyTorch gives an infinity, because inputs are not finite (another formula may compute
    ∞ − ∞)."""
    scale: float = 0.0
    """Minimum magnitude to which errors are relative: the output's usual size, or a fraction of it, for draws whose
    results may all be in a function's vanishing tail."""
    rerounded: tuple[torch.Tensor, ...] = ()
    """PyTorch's results with other rounding of intermediate results, since its own error may be small by luck."""
    jumped: tuple[torch.Tensor, ...] = ()
    """References in which comparisons and roundings to integers that depend on rounding errors (:mod:`jumps`) go the
    other way; an element may equal any of them or lie between them."""
    sign_undecided: torch.Tensor | None = None
    """Elements whose sign depends on rounding: an infinite one may have either sign or be NaN."""
    finite_limit: torch.Tensor | None = None
    """Results with infinite inputs replaced by large ones. If the reference is NaN, an infinity with the sign of such a
    large result is right too. Elements whose finite reference differs from this result are not compared."""
    defined_at_infinity: bool = False
    """Whether the formula defines results of infinite inputs; these results are then compared too."""
    ignored_nan: torch.Tensor | None = None
    """Elements that are NaN because of an input that they do not depend on (:mod:`independent_nan`); not compared."""
    tf32: bool = False
    """Whether products may use TF32: tensor cores lose a little accuracy with every term of a sum."""
    torch_lossy: bool = False
    """Whether elements for which PyTorch loses all accuracy are left out."""
    all_or_nothing: bool = False
    """With ``torch_lossy``: whether one such element excludes the whole output."""
    accepted: torch.Tensor | None = None
    """Elements whose integer is right although it differs from the reference's (:mod:`equivalent_integers`)."""
    by_slice: float | None = None
    """Minimum norm to which the error of each row and column is relative; None if rows and columns have no limits of
    their own."""
    written: torch.Tensor | None = None
    """Elements that were computed, the only ones compared; None for all."""
    relative: bool = False
    """Whether the error of each element relative to that element is limited (:mod:`local_errors`)."""
    by_size: float | None = None
    """Minimum magnitude to which errors of elements of similar magnitude are relative (:mod:`local_errors`); None if
    these have no limits of their own."""
    signed_zeros: bool = False
    """Whether the sign of a zero counts where PyTorch and the reference agree on it."""
    zero_signs: torch.Tensor | None = None
    """Without ``signed_zeros``: sign (±1) of each zero whose sign counts, 0 elsewhere; None if no sign counts."""
    small: bool = False
    """Whether small results are compared with results of their own magnitude (:mod:`local_errors`)."""
    approximate: tuple[torch.Tensor, ...] = ()
    """References with the errors that correct formulas may make in small results."""
    by_instructions: tuple[torch.Tensor, ...] = ()
    """As ``approximate``, without the errors of another summation order."""
    vanished: bool = False
    """Whether all results are small: ``by_instructions`` then also widens the norm's limit."""
    bias: bool = False
    """Whether the mean relative difference is limited (:mod:`local_errors`)."""
    unbiased: bool = False
    """With ``bias``: whether rounding errors have a mean of zero in every correct formula."""


def least_limits(spec: TensorSpec, limits: Tolerances, terms: int, with_tf32: bool) -> tuple[float, float]:
    """Lower bounds of the (norm-wise, worst element) limits, whatever PyTorch's own error is."""
    roundings = math.sqrt(min(terms, _MOST_TERMS))
    if spec.dtype is DType.F64:
        # The reference is float64 too, so PyTorch's error is 0. The limit is a few roundings; an error of float32 is
        # 1e8 times larger.
        return (4 + roundings) * spec.dtype.eps, (40 + 10 * roundings) * spec.dtype.eps
    sums = min(tf32.TRUNCATED * terms, tf32.UNIT) if with_tf32 else 0.0
    return (
        limits.floor_norm + _ERROR_PER_ROOT_TERM * roundings + sums,
        limits.floor_element + 10 * _ERROR_PER_ROOT_TERM * roundings + 2 * sums,
    )


def conditioned_limit(effect: torch.Tensor, terms: int) -> torch.Tensor:
    """Limit from the measured ``effect`` of rounding, for ``terms`` terms added one after another. The margin is
    smaller where it would allow almost any result."""
    margin = CONDITIONING + _WALK_MARGIN * math.sqrt(min(terms, _MOST_TERMS))
    return torch.maximum(_LEAST_MARGIN * effect, (margin * effect).clamp(max=_MOST_MARGIN))
