"""Elements that are left out of a comparison, or for which either of two results is right."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from cutegen_lab.judge.compare.allowance import Allowance, conditioned_limit
from cutegen_lab.judge.compare.distances import chunks, rms

HUGE = 1e30  # larger elements count as a mask's fill value: their squares would dominate every norm
_TOWARDS = 2.0**40  # results beyond this count as tending to infinity with their inputs
# Maximum relative difference at which results for infinite and for large inputs count as equal.
_JUMP = 1e-3
_ROUNDINGS = 4  # a number beyond HUGE may be moved by this many roundings to the output's type
_OVERFLOW = 2.0  # above this multiple of a type's largest number, no rounding makes a result finite
_LOST = 1e-2  # relative error of an element beyond which PyTorch's result counts as lost

Compared = tuple[torch.Tensor, torch.Tensor, torch.Tensor, list[torch.Tensor]]


def same_value(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Elementwise equality in which NaN equals NaN."""
    return (a == b) | (a.isnan() & b.isnan())


def without_fills(
    tolerance: float, budget: float, got: torch.Tensor, own: torch.Tensor, reference: torch.Tensor,
    others: list[torch.Tensor], moved: int,
) -> Compared:  # fmt: skip
    """Replaces elements beyond ``HUGE``: by 0 if they are right, by infinity if not. Right: within ``tolerance``
    (relative) of PyTorch's own; within the effect of rounding on that element, overflow included; equal to PyTorch's
    infinity or the rounded reference's; or not finite where partial sums overflow in one of ``others``. The first
    ``moved`` of ``others`` round intermediate results to float32, the rest to the output's type, with margin
    ``budget``."""
    low, high = reference.aminmax() if reference.numel() else (reference.new_zeros(()),) * 2
    if float(low) > -HUGE and float(high) < HUGE:
        return got, own, reference, others
    fills = torch.isfinite(reference) & (reference.abs() > HUGE)
    same = (got == own) | (got == reference.to(got.dtype))  # exp(100) is finite only in float64
    same |= ~(own.isfinite() | got.isfinite())  # PyTorch may flush only a divisor to zero: x / 0 instead of 0 / 0
    numbers = torch.finfo(got.dtype)
    near = (got.double() / own.double() - 1).abs() < tolerance
    if others:
        effects = [(other.double() / reference - 1).abs() for other in others]
        # A larger effect is an overflow or another element's jump, which says nothing about this element.
        known = [torch.where(e < max(_JUMP, _ROUNDINGS * numbers.eps), e, 0.0) for e in effects]
        none = [torch.zeros_like(reference)]
        limit = conditioned_limit(torch.stack(known[:moved] or none).amax(0), 1)
        limit = torch.maximum(limit, budget * torch.stack(known[moved:] or none).amax(0))
        near |= (got.double() / reference - 1).abs() <= limit
        edge = reference.abs() * (1 + limit) > numbers.max
        fill = reference.abs() == numbers.max  # a mask's fill value, which does not overflow
        same |= edge & ~fill & got.isinf() & ((got > 0) == (reference > 0))
        overflows = torch.stack([~other.isfinite() for other in others[moved:]] or [fill]).any(0)
        same |= overflows & ~fill & ~got.isfinite()
    right = fills & (same | near)
    got = torch.where(fills, torch.where(right, 0.0, math.inf).to(got.dtype), got)
    return got, *_blank(fills, own, reference, others)


def without_jumps(got: torch.Tensor, reference: torch.Tensor, jumped: Sequence[torch.Tensor]) -> torch.Tensor:
    """``got`` changed so that each element's distance to the reference is its distance to the interval from the
    smallest to the largest of the reference and ``jumped``."""
    if not jumped:
        return got
    low, high = torch.stack([reference, *jumped]).aminmax(dim=0)
    undecided = low.isfinite() & high.isfinite() & (low < high)
    wide = got.double()
    nearest = (reference + (wide - torch.clamp(wide, low, high))).to(got.dtype)
    return torch.where(undecided, nearest, got)


def without_lost(
    got: torch.Tensor, own: torch.Tensor, reference: torch.Tensor, others: list[torch.Tensor], moved: int, whole: bool
) -> Compared:
    """Leaves out elements for which PyTorch itself has lost all accuracy, since a kernel need not use the formula of
    ``others``, and elements that overflow if PyTorch rounds intermediate results to fp32 (``others`` after the first
    ``moved``; on a CPU it keeps some in float64). ``whole``: one such element leaves out all."""
    lost = torch.empty_like(reference, dtype=torch.bool)
    for part in chunks(reference):
        lost[part] = _lost(own[part], reference[part])
    for sample in others[moved:]:
        lost |= own.isfinite() & ~sample.isfinite()
    if not bool(lost.any()):
        return got, own, reference, others
    if whole:
        lost = torch.ones_like(lost)
    return got.masked_fill(lost, 0.0), *_blank(lost, own, reference, others)


def _lost(own: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """Elements of a chunk for which PyTorch has lost all accuracy."""
    size = reference.abs()
    accurate = (size < torch.finfo(own.dtype).max).logical_and_(torch.sub(own, reference).abs_() <= size * _LOST)
    if bool(accurate.all()):
        return ~accurate
    lost, odd = torch.zeros_like(accurate), (~accurate).nonzero()
    own, reference = own[odd], reference[odd]
    numbers = own.isfinite() & reference.to(own.dtype).isfinite()
    lost[odd] = ((own - reference).abs() > reference.abs() * _LOST) | (reference.isfinite() & ~numbers)
    return lost


def saturated(
    got: torch.Tensor, own: torch.Tensor, reference: torch.Tensor, others: Sequence[torch.Tensor]
) -> torch.Tensor:
    """Finite elements that PyTorch makes infinite, where the reference (by a factor of ``_OVERFLOW``) and all
    ``others`` are beyond the type's largest number."""
    most = torch.finfo(own.dtype).max
    found = own.isinf() & got.isfinite() & (reference.sign() == own.sign())
    found &= (reference.abs() > _OVERFLOW * most) & reference.isfinite()
    for each in others:
        found &= (each.double().abs() > most) & (each.sign() == own.sign())
    return found


def without_undecided(
    got: torch.Tensor, own: torch.Tensor, reference: torch.Tensor, others: list[torch.Tensor], moved: int
) -> Compared:
    """Leaves out elements that rounding alone makes finite, infinite or NaN, except a finite result where no rounding
    gives a finite one. The first ``moved`` of ``others`` are the samples with rounding."""
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


def without_either(
    allow: Allowance, got: torch.Tensor, own: torch.Tensor, reference: torch.Tensor, others: list[torch.Tensor]
) -> Compared:
    """Resolves elements for which non-finite inputs make either of two results right: ``got`` gets the reference's
    value. Elements whose result differs between infinite and large inputs are left out."""
    if allow.nan_for_infinity:
        got = torch.where(got.isnan() & own.isinf(), own.to(got.dtype), got)
    if allow.sign_undecided is not None:
        either = allow.sign_undecided.reshape(-1) & ~(got.isfinite() | reference.isfinite())
        got = torch.where(either, reference.to(got.dtype), got)
    if allow.ignored_nan is not None:
        some = allow.ignored_nan.reshape(-1)
        got = got.masked_fill(some, 0.0)
        own, reference, others = _blank(some, own, reference, others)
    if allow.finite_limit is None:
        return got, own, reference, others
    limit = allow.finite_limit.reshape(-1)
    either = reference.isnan() & got.isinf() & (limit.abs() > _TOWARDS) & (limit.sign() == got.sign())
    got = torch.where(either, reference.to(got.dtype), got)
    # False where the limit is unknown (NaN).
    near = (limit - reference).abs() <= _JUMP * reference.abs().clamp(min=rms(reference))
    if allow.defined_at_infinity:
        return got, own, reference, others
    jumps = reference.isfinite() & ~near
    return got.masked_fill(jumps, 0.0), *_blank(jumps, own, reference, others)


def _blank(
    where: torch.Tensor, own: torch.Tensor, reference: torch.Tensor, others: list[torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor, list[torch.Tensor]]:
    """All results with 0 at the elements ``where``."""
    rest = [m.masked_fill(where, 0.0) for m in others]
    return own.masked_fill(where, 0.0), reference.masked_fill(where, 0.0), rest
