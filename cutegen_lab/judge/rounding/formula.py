"""Properties of a reference's formula, recorded from the operators it calls."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.weak import WeakTensorKeyDictionary

from cutegen_lab.judge.rounding.operators import (
    ACCURATE_NEAR_ZERO,
    ADDING,
    ATTENTION,
    CHOOSING,
    COMPARING,
    COMPARISONS,
    EXACT,
    INFINITE_ALONE,
    LOSSES,
    MOVING,
    OF_KNOWN_LOSS,
    PLAIN,
    PLAIN_ALONE,
    PRODUCTS,
    RANKING,
    RELATIVE,
    STRICT,
    SUMS,
    TELLS_INFINITY,
    UNBIASED,
    WRAPPING,
    aliases,
)

EXACT_INTEGERS = float(1 << 24)  # float32 represents every integer up to this one
# Casts to other types round in visible steps.
_CONTINUOUS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


class _ExactIntegers(TorchDispatchMode):
    """Tracks whether everything computed was a sum of products of integers that float32 represents, or a comparison."""

    def __init__(self) -> None:
        super().__init__()
        self.exact = True

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        known = func.overloadpacket.__name__.rstrip("_") in EXACT | SUMS or aliases(func)
        self.exact = self.exact and known
        tree_map(self._look, result)
        return result

    def _look(self, value: Any) -> None:
        if self.exact and isinstance(value, torch.Tensor) and value.is_floating_point():
            self.exact = bool(((value == value.round()) & (value.abs() <= EXACT_INTEGERS)).all())


@dataclass(frozen=True)
class FormulaKind:
    """Properties of a reference's formula: a flag is True if the sentence below it holds."""

    plain: bool
    """An infinite result is infinite in every correct formula, since no infinities are subtracted."""
    infinite: bool
    """As ``plain``, except that some formulas lose small values."""
    elementwise: bool
    """No element of a result is a sum of several elements."""
    pointwise: bool
    """Each element of a result depends on at most one element of each input."""
    strict: bool
    """Only sums, products and quotients: every operand affects the result."""
    relative: bool
    """Only products, quotients, powers and exponentials of single elements."""
    known_loss: bool
    """The error bounds of correct formulas for small results are known (:mod:`approximate`)."""
    in_double: bool
    """Everything that is rounded is float64."""
    sum_unit: float
    """Largest unit roundoff of its sums and differences."""
    rounds_nothing: bool
    """Only choices, copies, comparisons, and casts with one right result: nothing else is rounded."""
    signs_zeros: bool
    """Only copies and negations of floats, so that the sign of a zero is defined."""
    ranks: bool
    """It sorts, or takes the largest or smallest numbers or their indices (sort, topk, argmax, argmin)."""
    wraps: bool
    """Only sums, differences, products and copies, for which integers wrap around in a defined way."""
    handles_infinity: bool
    """It distinguishes infinities from numbers, so that the results of infinities are defined."""
    accurate_near_zero: bool
    """It uses ``log1p`` or ``expm1``, which are accurate near 0."""
    unbiased: bool
    """Rounding errors have a mean of zero in every correct formula."""
    infinite_factors: bool
    """With these inputs, a matrix product had an operand that is not finite."""


class _FormulaRecorder(TorchDispatchMode):
    """Records which operators are used, for :class:`FormulaKind`."""

    def __init__(self) -> None:
        super().__init__()
        self._elementwise = self._strict = self._relative = self._known_loss = self._rounds_nothing = True
        self._plain = self._plain_alone = self._infinite = self._in_double = True
        self._unbiased = self._pointwise = True
        self._wraps, self._signs_zeros, self._handles_infinity, self._sum_unit = True, True, False, 0.0
        self._rounded: WeakTensorKeyDictionary[None] = WeakTensorKeyDictionary()
        self._accurate_near_zero = self._infinite_factors = self._ranks = False

    @property
    def kind(self) -> FormulaKind:
        plain = self._plain or (self._elementwise and self._plain_alone)
        infinite = plain or (self._elementwise and self._infinite)
        in_double = self._in_double and not self._rounds_nothing
        return FormulaKind(
            plain, infinite, self._elementwise, self._pointwise, self._strict, self._relative, self._known_loss,
            in_double, self._sum_unit, self._rounds_nothing, self._signs_zeros, self._ranks, self._wraps,
            self._handles_infinity, self._accurate_near_zero, self._unbiased, self._infinite_factors,
        )  # fmt: skip

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = func.overloadpacket.__name__.rstrip("_")
        self._plain_alone = self._plain_alone and (name in PLAIN_ALONE or aliases(func))
        self._infinite = self._infinite and (name in INFINITE_ALONE or aliases(func))
        self._plain = self._plain and (name in PLAIN or aliases(func))
        self._elementwise = self._elementwise and (
            torch.Tag.pointwise in func.tags or name in CHOOSING or aliases(func)
        )
        self._strict = self._strict and (name in STRICT or aliases(func))
        self._relative = self._relative and (name in RELATIVE or aliases(func))
        self._unbiased = self._unbiased and (name in UNBIASED or aliases(func))
        self._wraps = self._wraps and (name in WRAPPING or aliases(func))
        self._handles_infinity |= name in TELLS_INFINITY or (
            name in COMPARISONS and any(isinstance(arg, float) and math.isinf(arg) for arg in args)
        )
        factors = args if name in PRODUCTS else args[:3] if name in ATTENTION else ()
        self._infinite_factors |= not all(bool(f.isfinite().all()) for f in factors if isinstance(f, torch.Tensor))
        self._accurate_near_zero |= name in ACCURATE_NEAR_ZERO
        negates = name == "neg" and args[0].is_floating_point()
        self._signs_zeros = self._signs_zeros and (name in MOVING or aliases(func) or negates)
        result = func(*args, **(kwargs or {}))
        self._ranks |= name in RANKING or (name in ("max", "min") and isinstance(result, tuple))
        alone = torch.Tag.pointwise in func.tags or (name in LOSSES and result.shape == args[0].shape)
        self._pointwise = self._pointwise and (alone or name in MOVING or aliases(func))
        steps = name == "_to_copy" and args[0].is_floating_point() and result.dtype not in _CONTINUOUS
        jumps = steps or (name in COMPARING and self._any_rounded(args))
        self._known_loss = self._known_loss and (name in OF_KNOWN_LOSS or aliases(func)) and not jumps
        if name in ADDING and result.dtype.is_floating_point:
            self._sum_unit = max(self._sum_unit, torch.finfo(result.dtype).eps / 2)
        shortens = name == "_to_copy" and result.dtype.itemsize < args[0].dtype.itemsize
        narrows = shortens and not _rounds_once(args[0].dtype, result.dtype)
        views = aliases(func) and not func._schema.is_mutable
        exact = (name in EXACT or views) and not narrows
        self._rounds_nothing = self._rounds_nothing and exact
        self._in_double = self._in_double and (exact or all(_is_double(x) for x in tree_leaves(result)))
        if not exact or shortens or self._any_rounded((args, kwargs or {})):
            tree_map(self._mark_rounded, result)
        return result

    def _any_rounded(self, values: Any) -> bool:
        return any(isinstance(x, torch.Tensor) and x in self._rounded for x in tree_leaves(values))

    def _mark_rounded(self, value: Any) -> None:
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            self._rounded[value] = None


def _is_double(value: Any) -> bool:
    """False for float tensors of other types than float64."""
    return not (isinstance(value, torch.Tensor) and value.is_floating_point()) or value.dtype is torch.float64


def _rounds_once(before: torch.dtype, after: torch.dtype) -> bool:
    """Whether a cast rounds to the nearest number, in one step in every implementation: there is one right result."""
    if before.is_floating_point:
        return before is torch.float32 and after in _CONTINUOUS
    return after is torch.float32


def run_and_classify(run: Callable[[], tuple[torch.Tensor, ...]]) -> tuple[tuple[torch.Tensor, ...], FormulaKind]:
    """Result of ``run()`` and the kind of its formula."""
    mode = _FormulaRecorder()
    with mode:
        result = run()
    return result, mode.kind


def run_and_test_exactness(run: Callable[[], tuple[torch.Tensor, ...]]) -> tuple[tuple[torch.Tensor, ...], bool]:
    """Result of ``run()``, and whether all it computed was sums of products of integers, for which every order of
    summation is exact."""
    mode = _ExactIntegers()
    with mode:
        result = run()
    return result, mode.exact
