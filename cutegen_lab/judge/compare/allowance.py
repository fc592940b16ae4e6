"""What a draw allows besides PyTorch's own error, and the least limits of errors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import TensorSpec, Tolerances
from cutegen_lab.judge.rounding import tf32

CONDITIONING = 16.0  # number of fp32 roundings that an honest kernel may accumulate; TF32 errors would be 8,192 of them
# Norm-wise error for each √term: measured 0.3 times half an epsilon, with a margin for unlucky draws.
_ERROR_PER_ROOT_TERM = 0.75 * 2.0**-24
_WALK_MARGIN = 0.75  # growth per √term (random walk), in units of the error of rounding each term once
_MOST_TERMS = 1 << 20  # keeps the limit well under TF32's 3e-4 for every shape
_LEAST_MARGIN = 4.0  # factor on the largest error of a few samples
_MOST_MARGIN = 1e-2  # largest limit that conditioning may set: a larger one would allow almost any result


@dataclass(frozen=True)
class Allowance:
    """What a draw allows besides PyTorch's own error, and which further limits it sets."""

    exact: bool = False
    """Whether float32 rounds nothing in this draw, in any order of summation (or values are only chosen and copied): no
    error is allowed where PyTorch makes none."""
    nan_for_infinity: bool = False
    """Whether NaN may stand for an infinity, because inputs are not finite (∞ − ∞, where PyTorch uses another formula).
    """
    scale: float = 0.0
    """Least magnitude to which errors are relative: the output's usual size, for inputs far from zero that put all
    results into a function's vanishing tail."""
    rerounded: tuple[torch.Tensor, ...] = ()
    """PyTorch's results with other rounding of intermediate results, since its own error may be small by luck."""
    jumped: tuple[torch.Tensor, ...] = ()
    """References in which jumps that rounding decides go the other way; an element may equal any of them or lie
    between."""
    sign_undecided: torch.Tensor | None = None
    """Elements whose sign depends on rounding: an infinite one may have either sign or be NaN."""
    finite_limit: torch.Tensor | None = None
    """Results with infinite inputs replaced by large ones: an infinity of that sign may stand for NaN; NaN elements are
    not compared."""
    defined_at_infinity: bool = False
    """Whether the formula defines results of infinite inputs; these results are then compared too."""
    ignored_nan: torch.Tensor | None = None
    """Elements that are NaN for an input they do not depend on (:mod:`independent_nan`); not compared."""
    tf32: bool = False
    """Whether products may use TF32: tensor cores lose a little accuracy with every term of a sum."""
    torch_lossy: bool = False
    """Whether elements for which PyTorch loses all accuracy are left out."""
    all_or_nothing: bool = False
    """With ``torch_lossy``: whether one inaccurate element leaves out the whole output."""
    accepted: torch.Tensor | None = None
    """Elements whose integers are right although they differ (:mod:`equivalent_integers`)."""
    by_slice: float | None = None
    """Least norm to which each row's and column's error is relative; None if slices are not compared."""
    written: torch.Tensor | None = None
    """Elements that were computed, the only ones compared; None for all."""
    relative: bool = False
    """Whether errors relative to single elements are limited (:mod:`local_errors`)."""
    by_size: float | None = None
    """Least magnitude for limits by magnitude (:mod:`local_errors`); None for no such limits."""
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
    """(norm-wise, worst element) limits that hold whatever PyTorch's own error is."""
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
