"""Compares one output with the float64 reference, within a multiple of PyTorch's own error at the same precision."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import TensorSpec, Tolerances
from cutegen_lab.core.trial import OutputError
from cutegen_lab.judge import finer, float8, tf32
from cutegen_lab.judge.distances import alike, difference, distances, rms
from cutegen_lab.judge.slices import worst_slice

CONDITIONING = 16.0  # number of fp32 roundings that an honest kernel may accumulate; TF32 would be 8,192
_WALK = 0.75 * 2.0**-24  # norm-wise error a √term: measured 0.3 of an epsilon's half, and room for bad luck
_WALKED = 0.75  # … in units of what rounding every term once does
_MOST_TERMS = 1 << 20  # the limit stays well under TF32's 3e-4 whatever the shape
HUGE = 1e30  # a mask's fill rather than a result: its square would drown every other element
_TOWARDS = 2.0**40  # results beyond go to infinity with their inputs
_JUMP = 1e-3  # largest relative difference of results between infinite and large inputs; beyond it formulas differ
_LOST = 1e-2  # relative error of an element beyond which PyTorch has lost it
_LEAST_MARGIN = 4.0  # margin over the largest of a few samples
_VAGUE = 0.5  # a limit beyond which a draw tells next to nothing but how large results are, if there are
_ENOUGH = 64  # of them
_SAME_SIZE = 16.0  # factor between right answers beyond which rounding decides the size
_BY_SIZE = 1e-6  # of fp32 results of alike size: a polynomial of a function's may be this far off, and no further
_BIAS = 1 / 16  # of a 16-bit epsilon: the mean that truncation leaves is a third of one
_MOST_MARGIN = 1e-2  # of a limit that conditioning widens: beyond, a draw tells too little to be lenient about it

Compared = tuple[torch.Tensor, torch.Tensor, torch.Tensor, list[torch.Tensor]]


@dataclass(frozen=True)
class Allowance:
    """What a draw allows besides PyTorch's own error, and what else it limits."""

    exact: bool = False
    """Whether float32 rounds nothing here, in any order of summation (or values are only chosen and copied): no error
    is allowed where PyTorch made none."""
    nan_for_infinity: bool = False
    """Whether NaN may stand for an infinity, because inputs are not finite (∞ − ∞, where PyTorch uses another formula).
    """
    scale: float = 0.0
    """Errors are relative to at least this: the output's usual size, for inputs far from zero that put all results into
    a function's vanishing tail."""
    again: tuple[torch.Tensor, ...] = ()
    """PyTorch's results with other rounding of intermediate results, since its own error may be small by luck."""
    vague: torch.Tensor | None = None
    """Elements whose sign rounding decides: an infinite one may have either sign or be NaN."""
    towards: torch.Tensor | None = None
    """Limits of results as infinite inputs are replaced by large ones: an infinity of that sign may stand for NaN;
    where it is NaN nothing is compared."""
    unneeded: torch.Tensor | None = None
    """Elements that are NaN for an input they do not depend on (:mod:`unneeded`); not compared."""
    tf32: bool = False
    """Whether products may use TF32, whose tensor-core sums lose a little with every term."""
    edge: bool = False
    """Whether elements that PyTorch loses are left out."""
    whole: bool = False
    """With ``edge``: whether an output with any such element is left out whole."""
    right: torch.Tensor | None = None
    """Integers that are right whatever they are (:mod:`chosen`)."""
    by_slice: float | None = None
    """Least norm to which each row's and column's error is relative; None if slices are not compared."""
    written: torch.Tensor | None = None
    """Elements that were computed, the only ones compared; None for all."""
    relative: bool = False
    """Whether errors relative to single elements are limited (:mod:`finer`)."""
    by_size: float | None = None
    """Least magnitude for limits by magnitude (:mod:`finer`); None for no such limits."""
    bias: bool = False
    """Whether the mean relative difference is limited (:mod:`finer`)."""


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

    Integers and booleans must equal float64's or PyTorch's, or be right by what they point at; booleans that follow
    from rounded floats may equal one of ``moved``. 8-bit floats are compared before their rounding (:mod:`float8`).
    Finite elements beyond ``HUGE`` must match PyTorch's own value, the output dtype's ``finfo``. NaN and infinities
    must stand where the reference has them, rounded to the output's dtype; where PyTorch and the reference differ in
    that, either is accepted.

    Limits grow with ``terms``, the most terms that an element of this workload can sum: the error of one float32
    accumulator is a random walk of √terms roundings.

    ``moved`` are float64 references with random float32 rounding. A sum whose terms cancel amplifies rounding; a limit
    without this would reject honest kernels by luck. Elements that rounding makes finite or not are not compared, and
    limits are at least ``CONDITIONING`` times the effect of rounding. If rounding decides all of an answer that limit
    is unbounded, but a result far smaller than every rounded one is still wrong.
    """
    allow = allowance or Allowance()
    if allow.written is not None:
        return _compared_where(allow.written, spec, [got, reference, torch_result, *moved], limits, terms, allow)
    got, reference, own = got.reshape(-1), reference.reshape(-1), torch_result.reshape(-1)
    if not spec.dtype.is_float:
        return _exact(spec, got, reference, own, allow, [m.reshape(-1) for m in moved])
    given, again = got, [a.reshape(-1) for a in allow.again]
    if spec.dtype.is_float8:
        got, own, *again = (float8.unrounded(result, reference) for result in (got, own, *again))
        spec, limits = float8.before_rounding(spec, limits)
    every = [*(m.reshape(-1) for m in moved), *again]
    floor, element = _floors(spec, limits, terms, allow.tf32)
    floor = max(floor, limits.floor_eps * spec.dtype.eps)
    got, own, reference, every = _without_undecided(got, own, reference, every, len(moved))
    if allow.edge:
        got, own, reference, every = _without_lost(got, own, reference, every, len(moved), allow.whole)
    else:
        if allow.towards is not None:  # a fill is itself whatever large numbers go to
            towards = allow.towards.reshape(-1).masked_fill(reference.isfinite() & (reference.abs() > HUGE), 0.0)
            allow = replace(allow, towards=towards)
        got, own, reference, every = _without_fills(max(2 * spec.dtype.eps, element), got, own, reference, every)
    got, own, reference, every = _without_either(allow, got, own, reference, every)
    moved, again = every[: len(moved)], every[len(moved) :]
    mine, theirs = distances(got, own, reference, allow.scale)
    finite = (
        torch.where(alike(a, own), a, own) for a in again
    )  # results that rounding makes infinite do not widen the limit
    lucky = [theirs, *(distances(a, own, reference, allow.scale)[0] for a in finite)]
    norm = max(limits.budget * max(d.norm for d in lucky), floor)
    element = max(limits.budget * max(d.worst for d in lucky), limits.element_eps * spec.dtype.eps, element)
    if allow.exact and bool(_same(own, reference.to(own.dtype)).all()):
        mine, theirs = distances(got, own, own.double())
        norm, element = 0.0, 0.0
    elif moved:
        shaken = [distances(m, own, reference, allow.scale)[0] for m in moved]
        known = [[e.norm, e.worst] for e in shaken if math.isfinite(e.norm + e.worst)]
        largest = torch.tensor(known or [[0.0, 0.0]], dtype=torch.float64).amax(0)
        least_norm, least_element = _conditioned(largest, terms).tolist()
        norm, element = max(norm, least_norm), max(element, least_element)
    if norm > _VAGUE and got.numel() >= _ENOUGH:
        norm = _unless_small(norm, got, [reference, own, *again, *moved])
    index = mine.index
    if allow.by_slice is not None and mine.norm <= norm and mine.worst <= element:

        def limit(luck: torch.Tensor, effect: torch.Tensor) -> torch.Tensor:
            return torch.maximum(limits.budget * luck, _conditioned(effect, terms)).clamp_(min=floor)

        luck, effects = ([_luck(x, own, reference) for x in some] for some in ([own, *again], moved))
        apart = difference(got, own, reference)
        one = worst_slice(spec.shape, reference, apart, luck, effects, allow.by_slice, limit)
        if one is not None and not one.norm <= one.limit:
            mine, theirs, norm = replace(mine, norm=one.norm), replace(theirs, norm=one.own), one.limit
            index = one.index
    if mine.norm <= norm and mine.worst <= element:
        for found in _finer(spec, got, [own, *again], reference, moved, limits, element, allow):
            if not found.error <= found.limit:
                mine, theirs, norm = replace(mine, norm=found.error), replace(theirs, norm=found.own), found.limit
                index = found.index
                break
    return OutputError(
        output=spec.name, norm=mine.norm, worst=mine.worst, torch_norm=theirs.norm, torch_worst=theirs.worst,
        limit_norm=norm, limit_worst=element,
        worst_index=_unravel(index, spec.shape), got=_value(given, index), expected=_value(reference, index),
    )  # fmt: skip


def _finer(
    spec: TensorSpec, got: torch.Tensor, own: Sequence[torch.Tensor], reference: torch.Tensor,
    moved: Sequence[torch.Tensor], limits: Tolerances, element: float, allow: Allowance,
) -> Iterator[finer.Finding]:  # fmt: skip
    """The finer errors that ``allow`` asks for."""

    def limit(floor: float) -> finer.Limit:
        return lambda luck, effect: torch.maximum(limits.budget * luck, _conditioned(effect, 1)).clamp(min=floor)

    found: list[finer.Finding | None] = []
    if allow.relative:
        found.append(finer.worst_relative(got, own, reference, moved, limit(element)))
    if allow.by_size is not None:
        luck, effects = ([_luck(x, own[0], reference) for x in some] for some in (own, moved))
        mine = difference(got, own[0], reference)
        found.append(finer.worst_bin(mine, luck, reference, effects, allow.by_size, limit(_BY_SIZE)))
    if allow.bias:
        floor = _BIAS * spec.dtype.eps
        found.append(finer.bias(spec.shape, got, own, reference, floor, limits.budget))
    return (one for one in found if one is not None)


def _compared_where(
    written: torch.Tensor, spec: TensorSpec, results: Sequence[torch.Tensor], limits: Tolerances, terms: int,
    allow: Allowance,
) -> OutputError:  # fmt: skip
    """:func:`compare` on some elements: with slices if they are whole rows, otherwise without."""

    def some(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.reshape(-1)[written]

    columns = spec.shape[-1] if spec.shape else 1
    rows = written.view(-1, columns)
    whole = bool((rows.all(1) == rows.any(1)).all())
    count = int(written.sum())
    shape = (count // columns, columns) if whole else (count,)
    names = ("vague", "towards", "unneeded", "right")
    also = {name: some(value) for name in names if (value := getattr(allow, name)) is not None}
    fewer = replace(
        allow, written=None, by_size=None, bias=False, again=tuple(map(some, allow.again)),
        by_slice=allow.by_slice if whole else None, **also,
    )  # fmt: skip
    got, reference, own, *moved = map(some, results)
    found = compare(replace(spec, shape=shape, strides=()), got, reference, own, limits, terms, fewer, moved)
    at = found.worst_index[0] * columns + found.worst_index[1] if whole else found.worst_index[0]
    return replace(found, worst_index=_unravel(int(written.nonzero()[at]), spec.shape))


def _luck(result: torch.Tensor, own: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    return difference(result, own, reference).nan_to_num_(0.0, 0.0, 0.0)


def _floors(spec: TensorSpec, limits: Tolerances, terms: int, with_tf32: bool) -> tuple[float, float]:
    """Least limits, norm-wise and for the worst element, whatever PyTorch's own error is."""
    roundings = math.sqrt(min(terms, _MOST_TERMS))
    if spec.dtype is DType.F64:
        # The reference is float64 too, so "PyTorch's error" is 0: a few roundings, and float32 is 1e8 times as far.
        return (4 + roundings) * spec.dtype.eps, (40 + 10 * roundings) * spec.dtype.eps
    sums = min(tf32.TRUNCATED * terms, tf32.UNIT) if with_tf32 else 0.0
    return limits.floor_norm + _WALK * roundings + sums, limits.floor_element + 10 * _WALK * roundings + 2 * sums


def _conditioned(effect: torch.Tensor, terms: int) -> torch.Tensor:
    """Limit for rounding's own ``effect``, in a sum of that many terms added one after another. The margin shrinks
    where it would allow any result at all."""
    margin = CONDITIONING + _WALKED * math.sqrt(min(terms, _MOST_TERMS))
    return torch.maximum(_LEAST_MARGIN * effect, (margin * effect).clamp(max=_MOST_MARGIN))


def _unless_small(norm: float, got: torch.Tensor, right: Sequence[torch.Tensor]) -> float:
    """The limit ``norm``, or one that ``got`` exceeds if it is less than half as large as every right answer. (Rounding
    may decide even an answer's size, as in ``(exp(x) - 1 - x) / x²`` of a tiny x.)"""
    sizes = [rms(answer) for answer in right]
    if max(sizes) > _SAME_SIZE * min(sizes):
        return norm
    return min(norm, _VAGUE) if rms(got.nan_to_num(0.0, 0.0, 0.0)) < _VAGUE * min(sizes) else norm


def _same(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a == b) | (a.isnan() & b.isnan())


def _without_fills(
    tolerance: float, got: torch.Tensor, own: torch.Tensor, reference: torch.Tensor, others: list[torch.Tensor]
) -> Compared:
    """Elements beyond ``HUGE`` replaced by 0 if right and by infinity if wrong. Right: within ``tolerance`` of
    PyTorch's own, or the infinity that it or the rounded reference is."""
    low, high = reference.aminmax() if reference.numel() else (reference.new_zeros(()),) * 2
    if float(low) > -HUGE and float(high) < HUGE:
        return got, own, reference, others
    fills = torch.isfinite(reference) & (reference.abs() > HUGE)
    same = (got == own) | (got == reference.to(got.dtype))  # exp(100) is finite in float64 alone
    same |= ~(own.isfinite() | got.isfinite())  # PyTorch divides by what vanished: x / 0 where others have 0 / 0
    right = fills & (same | ((got.double() / own.double() - 1).abs() < tolerance))
    got = torch.where(fills, torch.where(right, 0.0, math.inf).to(got.dtype), got)
    return got, *_blank(fills, own, reference, others)


def _without_lost(
    got: torch.Tensor, own: torch.Tensor, reference: torch.Tensor, others: list[torch.Tensor], moved: int, whole: bool
) -> Compared:
    """Leaves out elements that PyTorch itself loses, since no kernel needs to follow the formula of ``others``, and
    those that overflow when PyTorch rounds intermediate results in fp32 (``others`` after the first ``moved``; on a CPU
    it keeps some in float64). ``whole``: leaves out all elements if there is such a one."""
    lost = (own.double() - reference).abs() > _LOST * reference.abs()
    lost |= reference.isfinite() & ~(own.isfinite() & reference.to(own.dtype).isfinite())
    for sample in others[moved:]:
        lost |= own.isfinite() & ~sample.isfinite()
    if not bool(lost.any()):
        return got, own, reference, others
    if whole:
        lost = torch.ones_like(lost)
    return got.masked_fill(lost, 0.0), *_blank(lost, own, reference, others)


def _without_undecided(
    got: torch.Tensor, own: torch.Tensor, reference: torch.Tensor, others: list[torch.Tensor], moved: int
) -> Compared:
    """Leaves out elements that are finite, infinite or NaN by rounding alone, unless the result is a number where no
    rounding gives one. The first ``moved`` of ``others`` show which."""
    if not moved:
        return got, own, reference, others
    undecided = torch.zeros_like(reference, dtype=torch.bool)
    number = reference.isfinite() | own.isfinite()
    for sample in others[:moved]:
        undecided |= (sample.isfinite() != reference.isfinite()) | (sample.isnan() != reference.isnan())
        number |= sample.isfinite()
    undecided &= number | ~got.isfinite()
    if not bool(undecided.any()):
        return got, own, reference, others
    return got.masked_fill(undecided, 0.0), *_blank(undecided, own, reference, others)


def _without_either(
    allow: Allowance, got: torch.Tensor, own: torch.Tensor, reference: torch.Tensor, others: list[torch.Tensor]
) -> Compared:
    """``got`` with the reference's value where non-finite inputs make either of two results right, leaving out elements
    whose result differs between infinite and large inputs."""
    if allow.nan_for_infinity:
        got = torch.where(got.isnan() & own.isinf(), own.to(got.dtype), got)
    if allow.vague is not None:
        either = allow.vague.reshape(-1) & ~(got.isfinite() | reference.isfinite())
        got = torch.where(either, reference.to(got.dtype), got)
    if allow.unneeded is not None:
        some = allow.unneeded.reshape(-1)
        got = got.masked_fill(some, 0.0)
        own, reference, others = _blank(some, own, reference, others)
    if allow.towards is None:
        return got, own, reference, others
    limit = allow.towards.reshape(-1)
    either = reference.isnan() & got.isinf() & (limit.abs() > _TOWARDS) & (limit.sign() == got.sign())
    got = torch.where(either, reference.to(got.dtype), got)
    near = (limit - reference).abs() <= _JUMP * reference.abs().clamp(min=rms(reference))  # not where that is unknown
    jumps = reference.isfinite() & ~near
    return got.masked_fill(jumps, 0.0), *_blank(jumps, own, reference, others)


def _blank(
    where: torch.Tensor, own: torch.Tensor, reference: torch.Tensor, others: list[torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor, list[torch.Tensor]]:
    rest = [m.masked_fill(where, 0.0) for m in others]
    return own.masked_fill(where, 0.0), reference.masked_fill(where, 0.0), rest


def _exact(
    spec: TensorSpec, got: torch.Tensor, reference: torch.Tensor, own: torch.Tensor, allow: Allowance,
    moved: Sequence[torch.Tensor],
) -> OutputError:  # fmt: skip
    integers = (got.view(torch.uint8) if got.dtype is torch.bool else got).to(torch.int64)  # True is 1, and no other
    differs = (integers != reference.to(torch.int64)) & (integers != own.to(torch.int64))
    for other in moved if spec.dtype is DType.BOOL else ():
        differs &= integers != other.to(torch.int64)
    if allow.right is not None:
        differs &= ~allow.right
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
