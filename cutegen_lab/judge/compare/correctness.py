"""Compares one output with the float64 reference, within a multiple of PyTorch's own error at the same precision."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice

import torch

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import TensorSpec, Tolerances
from cutegen_lab.core.trial import OutputError
from cutegen_lab.judge.compare import float8, local_errors
from cutegen_lab.judge.compare.allowance import Allowance, conditioned_limit, least_limits
from cutegen_lab.judge.compare.distances import distances, finite_difference, finite_errors, rms, same_kind
from cutegen_lab.judge.compare.exclusions import (
    HUGE,
    same_value,
    saturated,
    without_either,
    without_fills,
    without_jumps,
    without_lost,
    without_undecided,
)
from cutegen_lab.judge.compare.local_errors import LOSSES
from cutegen_lab.judge.compare.slices import error_squares, squares_by_slice, worst_slice
from cutegen_lab.judge.rounding import tf32
from cutegen_lab.judge.rounding.few_numbers import largest_share, rounding_limit

_VAGUE = 0.5  # a larger limit would only check the size of results (for outputs with at least _ENOUGH elements)
_ENOUGH = 64
_SAME_SIZE = 16.0  # ratio between the sizes of correct answers above which rounding decides the size
_BY_SIZE = 1e-6  # error that a polynomial approximation may have in fp32 results of similar size
_NORMAL = 2.0  # results below this multiple of the smallest normal number may be flushed to zero
_BIAS = 1 / 16  # fraction of a 16-bit epsilon that a mean error may reach; truncation reaches a third
_ROUNDED_PRODUCTS = 2.0**-18  # mean error of a product or quotient of two 16-bit roundings of one number


def compare(
    spec: TensorSpec,
    got: torch.Tensor,
    reference: torch.Tensor,
    torch_result: torch.Tensor,
    limits: Tolerances,
    terms: int = 1,
    allowance: Allowance | None = None,
    moved: Sequence[torch.Tensor] = (),
) -> OutputError:
    """Errors of ``got`` (shape and dtype of ``spec``) against ``reference`` (float64), and PyTorch's own.

    Integers and booleans must equal those of the float64 reference or of PyTorch, or be right although they differ,
    such as an argmax that points at an equal value; booleans that follow from rounded floats may also equal one of
    ``moved``, or PyTorch's results with other rounding. 8-bit floats are compared before their
    rounding (:mod:`float8`). Finite elements beyond ``HUGE``, such as a mask's fill value (``finfo.min``), must equal
    PyTorch's within rounding. NaN and infinities must be where the reference has them, rounded to the output's dtype;
    where PyTorch and the reference differ in that, either is accepted.

    Limits grow with ``terms``, the maximum number of terms that an element of this workload can sum: the error of one
    float32 accumulator is a random walk of √terms roundings.

    ``moved`` are float64 references with random float32 rounding. A sum whose terms cancel amplifies rounding; a limit
    that ignores this would reject honest kernels by luck. Elements that are finite only with some roundings are not
    compared, and limits are at least ``CONDITIONING`` times the effect of rounding. If rounding decides all of an
    answer, that limit is unbounded, but a result far smaller than every rounded one is still wrong.
    """
    allow = allowance or Allowance()
    if allow.written is not None:
        return _compared_where(allow.written, spec, [got, reference, torch_result, *moved], limits, terms, allow)
    got, reference, own = got.reshape(-1), reference.reshape(-1), torch_result.reshape(-1)
    if not spec.dtype.is_float:
        return _exact(spec, got, reference, own, allow, [m.reshape(-1) for m in (*moved, *allow.rerounded)])
    given, wanted = got, reference
    if allow.signed_zeros or allow.zero_signs is not None:
        wrong = wrong_zeros(got, own, reference)
        if allow.zero_signs is not None:
            wrong &= allow.zero_signs.reshape(-1) == torch.ones_like(own).copysign(own)
        got = got.masked_fill(wrong, math.inf)
    again = [a.reshape(-1) for a in allow.rerounded]
    if spec.dtype.is_float8:
        got, own, *again = (float8.unrounded(result, reference) for result in (got, own, *again))
        spec, limits = float8.before_rounding(spec, limits)
    got = without_jumps(got, reference, [j.reshape(-1) for j in allow.jumped])
    every = [m.reshape(-1) for m in (*moved, *again, *allow.approximate, *allow.by_instructions)]
    floor, element = least_limits(spec, limits, terms, allow.tf32)
    rounding = partial(rounding_limit, limits.floor_eps * spec.dtype.eps, spec.dtype.eps)
    floor = max(floor, limits.floor_eps * spec.dtype.eps)
    got, own, reference, every = without_undecided(got, own, reference, every, len(moved))
    lossy_infinite = allow.torch_lossy and bool(own.isinf().any())
    overflow = saturated(got, own, reference, every) if lossy_infinite else None
    if allow.torch_lossy:
        got, own, reference, every = without_lost(got, own, reference, every, len(moved), allow.all_or_nothing)
    else:
        if allow.finite_limit is not None:  # elements with a mask's fill value stay compared
            towards = allow.finite_limit.reshape(-1).masked_fill(reference.isfinite() & (reference.abs() > HUGE), 0.0)
            allow = replace(allow, finite_limit=towards)
        got, own, reference, every = without_fills(
            max(2 * spec.dtype.eps, element), limits.budget, got, own, reference, every, len(moved)
        )
    got, own, reference, every = without_either(allow, got, own, reference, every)
    if overflow is not None:
        got = got.masked_fill(overflow, math.inf)
    rest, kinds = iter(every), (moved, again, allow.approximate, allow.by_instructions)
    moved, again, lossy, instructions = (list(islice(rest, len(kind))) for kind in kinds)
    slices = squares_by_slice(spec.shape, reference) if allow.by_slice is not None else []
    mine, theirs = distances(got, own, reference, allow.scale, slices)
    finite = (
        torch.where(same_kind(a, own), a, own) for a in again
    )  # results that are infinite because of rounding do not widen the limit
    lucky = [theirs, *(distances(a, own, reference, allow.scale)[0] for a in finite)]
    norm = max(limits.budget * max(d.norm for d in lucky), floor)
    element = max(limits.budget * max(d.worst for d in lucky), limits.element_eps * spec.dtype.eps, element)
    if mine.norm > norm and got.numel():
        norm = max(norm, float(rounding(largest_share(reference))))
    if allow.exact and bool(same_value(own, reference.to(own.dtype)).all()):
        mine, theirs = distances(got, own, own.double())
        norm, element = 0.0, 0.0
    elif moved:
        shaken = [distances(m, own, reference, allow.scale)[0] for m in moved]
        known = [[e.norm, e.worst] for e in shaken if math.isfinite(e.norm + e.worst)]
        largest = torch.tensor(known or [[0.0, 0.0]], dtype=torch.float64).amax(0)
        least_norm, least_element = conditioned_limit(largest, terms).tolist()
        norm, element = max(norm, least_norm), max(element, least_element)
    if norm > _VAGUE and got.numel() >= _ENOUGH:
        norm = _unless_small(norm, got, [reference, own, *again, *moved])
    for lost in (distances(m, own, reference, allow.scale)[0] for m in instructions if allow.vanished):
        norm, element = max(norm, LOSSES * lost.norm), max(element, LOSSES * lost.worst)
    index = mine.index
    if slices and allow.by_slice is not None and mine.norm <= norm and mine.worst <= element:
        apart, torch_apart = slices

        def limit(luck: torch.Tensor, effect: torch.Tensor) -> torch.Tensor:
            return torch.maximum(limits.budget * luck, conditioned_limit(effect, terms)).clamp_(min=floor)

        also, effects, losses = (
            [error_squares(x, own, reference, apart.columns) for x in some] for some in (again, moved, instructions)
        )
        luck, results = [torch_apart, *also], (got, own, reference)
        one = worst_slice(results, apart, luck, effects, losses, allow.by_slice, limit, rounding)
        if not one.norm <= one.limit:
            mine, theirs, norm = replace(mine, norm=one.norm), replace(theirs, norm=one.own), one.limit
            index = one.index
    if mine.norm <= norm and mine.worst <= element:
        for found in _local_errors(spec, got, [own, *again], reference, moved, lossy, limits, element, terms, allow):
            if not found.error <= found.limit:
                mine, theirs, norm = replace(mine, norm=found.error), replace(theirs, norm=found.own), found.limit
                index = found.index
                break
    return OutputError(
        output=spec.name, norm=mine.norm, worst=mine.worst, torch_norm=theirs.norm, torch_worst=theirs.worst,
        limit_norm=norm, limit_worst=element,
        worst_index=_unravel(index, spec.shape), got=_value(given, index), expected=_value(wanted, index),
    )  # fmt: skip


def wrong_zeros(got: torch.Tensor, own: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """Zeros whose sign is neither PyTorch's nor the reference's."""
    zeros = (got == 0) & (own == 0) & (reference == 0)
    return zeros & (got.signbit() != own.signbit()) & (got.signbit() != reference.signbit())


def _local_errors(
    spec: TensorSpec, got: torch.Tensor, own: Sequence[torch.Tensor], reference: torch.Tensor,
    moved: Sequence[torch.Tensor], lossy: Sequence[torch.Tensor], limits: Tolerances, element: float, terms: int,
    allow: Allowance,
) -> Iterator[local_errors.LocalError]:  # fmt: skip
    """The local errors that ``allow`` asks for."""

    def limit(floor: float) -> local_errors.Limit:
        return lambda luck, effect: torch.maximum(limits.budget * luck, conditioned_limit(effect, 1)).clamp(min=floor)

    found: list[local_errors.LocalError | None] = []
    if allow.relative:
        found.append(local_errors.worst_relative(got, own, reference, moved, limit(element)))
    if allow.small or allow.by_size is not None:
        step = local_errors.sampling_step(reference.numel())
        exact, torch_result = reference[::step], own[0][::step]
        mine = finite_difference(got[::step], torch_result, exact)
        luck, effects, losses = (
            [finite_errors(x[::step], torch_result, exact) for x in some] for some in (own, moved, lossy)
        )
        bins: list[local_errors.LocalError | None] = []
        if allow.by_size is not None:
            bins.append(local_errors.worst_bin(mine, luck, exact, effects, (), allow.by_size, limit(_BY_SIZE)))
        if allow.small:
            least = _NORMAL * torch.finfo(got.dtype).smallest_normal
            normal = (exact.abs() >= least).double()
            luck, effects, losses = ([x * normal for x in some] for some in (luck, effects, losses))
            floor = max(limits.element_eps * spec.dtype.eps, limits.floor_element)
            bins.append(local_errors.worst_bin(mine * normal, luck, exact, effects, losses, least, limit(floor)))
        found += [one and replace(one, index=one.index * step) for one in bins]
    if allow.bias:
        floor = _BIAS * spec.dtype.eps
        # Tensor cores truncate their sums, which adds to the mean error.
        slack = min(_ROUNDED_PRODUCTS + tf32.TRUNCATED * terms, floor) if allow.unbiased else None
        found.append(local_errors.mean_bias(spec.shape, got, own, reference, floor, slack, limits.budget))
    return (one for one in found if one is not None)


def _compared_where(
    written: torch.Tensor, spec: TensorSpec, results: Sequence[torch.Tensor], limits: Tolerances, terms: int,
    allow: Allowance,
) -> OutputError:  # fmt: skip
    """:func:`compare` on the elements ``written`` only: row by row and column by column too if they are whole rows."""

    def some(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.reshape(-1)[written]

    columns = spec.shape[-1] if spec.shape else 1
    rows = written.view(-1, columns)
    whole = bool((rows.all(1) == rows.any(1)).all())
    count = int(written.sum())
    shape = (count // columns, columns) if whole else (count,)
    names = ("sign_undecided", "finite_limit", "ignored_nan", "accepted", "zero_signs")
    also = {name: some(value) for name in names if (value := getattr(allow, name)) is not None}
    lists = (allow.rerounded, allow.by_instructions, allow.jumped)
    rerounded, instructions, jumped = (tuple(map(some, results)) for results in lists)
    fewer = replace(
        allow, written=None, by_size=None, small=False, bias=False, rerounded=rerounded, approximate=(),
        by_instructions=instructions, jumped=jumped, by_slice=allow.by_slice if whole else None, **also,
    )  # fmt: skip
    got, reference, own, *moved = map(some, results)
    found = compare(replace(spec, shape=shape, strides=()), got, reference, own, limits, terms, fewer, moved)
    at = found.worst_index[0] * columns + found.worst_index[1] if whole else found.worst_index[0]
    return replace(found, worst_index=_unravel(int(written.nonzero()[at]), spec.shape))


def _unless_small(norm: float, got: torch.Tensor, right: Sequence[torch.Tensor]) -> float:
    """The limit ``norm``, or a smaller one that ``got`` exceeds if ``got`` is less than half as large as every correct
    answer. It stays ``norm`` if rounding decides even the size of an answer, as in ``(exp(x) - 1 - x) / x²`` for a tiny
    x."""
    sizes = [rms(answer) for answer in right]
    if max(sizes) > _SAME_SIZE * min(sizes):
        return norm
    return min(norm, _VAGUE) if rms(got.nan_to_num(0.0, 0.0, 0.0)) < _VAGUE * min(sizes) else norm


def _exact(
    spec: TensorSpec, got: torch.Tensor, reference: torch.Tensor, own: torch.Tensor, allow: Allowance,
    moved: Sequence[torch.Tensor],
) -> OutputError:  # fmt: skip
    integers = (got.view(torch.uint8) if got.dtype is torch.bool else got).to(torch.int64)  # only the byte 1 is True
    differs = (integers != reference.to(torch.int64)) & (integers != own.to(torch.int64))
    for other in moved if spec.dtype is DType.BOOL and not allow.exact else ():
        differs &= integers != other.to(torch.int64)
    if allow.jumped:
        low, high = torch.stack([reference, *(j.reshape(-1) for j in allow.jumped)]).to(torch.int64).aminmax(dim=0)
        differs &= (integers < low) | (integers > high)
    if allow.accepted is not None:
        differs &= ~allow.accepted
    wrong = torch.nonzero(differs).reshape(-1)
    share = wrong.numel() / max(got.numel(), 1)
    index = int(wrong[0]) if wrong.numel() else 0
    return OutputError(
        output=spec.name, norm=share, worst=float(wrong.numel() > 0), torch_norm=0.0, torch_worst=0.0,
        limit_norm=0.0, limit_worst=0.0, worst_index=_unravel(index, spec.shape),
        got=_value(integers, index), expected=_value(reference, index),
    )  # fmt: skip


def _value(tensor: torch.Tensor, index: int) -> float:
    return float(tensor[index]) if tensor.numel() else 0.0


def _unravel(index: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    position = []
    for size in reversed(shape):
        position.append(index % size)
        index //= size
    return tuple(reversed(position))
