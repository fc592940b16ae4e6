"""Runs of a reference with random rounding, as many as a comparison needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch

from cutegen_lab.core.dtypes import DType
from cutegen_lab.judge.rounding import tf32
from cutegen_lab.judge.rounding.approximate import Approximate
from cutegen_lab.judge.rounding.attention_formula import AttentionFormula
from cutegen_lab.judge.rounding.few_numbers import largest_share
from cutegen_lab.judge.rounding.formula import FormulaKind
from cutegen_lab.judge.rounding.jumps import Jump, Jumping, JumpRecorder, rounding_errors
from cutegen_lab.judge.rounding.noise import UNIT_ROUNDOFF
from cutegen_lab.judge.rounding.perturbed import Perturbed
from cutegen_lab.judge.rounding.regrouped import Regrouped
from cutegen_lab.judge.rounding.rerounded import Rerounded
from cutegen_lab.problems import Reference

SAMPLES, MORE_SAMPLES = 3, 12  # more samples if few numbers dominate: a few samples may all have small errors
# Few numbers: elements of an output; effective elements of a norm (1 / the share of its largest number).
_FEW, _FEW_LARGE = 8192, 64
_SMALLEST = 2.0**-1000  # smaller than any number that is drawn
# Exponent of two of attention's largest weight, by sample (None: rounded after the division by the sum).
_RAISED = (None, 0.0, 0.5)

Results = tuple[torch.Tensor, ...]


def few_decide(inputs: Sequence[torch.Tensor], results: Sequence[torch.Tensor]) -> bool:
    """Whether few numbers decide: the largest input or a result is small (``_FEW`` elements), or one number dominates
    the norm of a result."""
    if min(max(t.numel() for t in inputs), *(t.numel() for t in results)) <= _FEW:
        return True
    return any(float(largest_share(t.reshape(-1))) * _FEW_LARGE > 1 for t in results)


def perturbed(reference: Reference, inputs: Sequence[torch.Tensor], unit: float, seed: int) -> Results:
    """The float64 reference with inputs and intermediate results rounded to ``unit`` at random."""
    return _in_float64(reference, inputs, partial(Perturbed, unit, seed))


def perturbed_samples(
    reference: Reference, inputs: Sequence[torch.Tensor], unit: float, seed: int, numbers: range = range(SAMPLES)
) -> list[Results]:
    """Several runs of :func:`perturbed`."""
    return [perturbed(reference, inputs, unit, seed ^ (number + 1)) for number in numbers]


def regrouped_samples(
    reference: Reference, inputs: Sequence[torch.Tensor], unit: float, seed: int, numbers: range = range(SAMPLES)
) -> list[Results]:
    """Several runs of the float64 reference with sums and their products regrouped (:mod:`regrouped`)."""
    return [_in_float64(reference, inputs, partial(Regrouped, unit, seed ^ (number + 1))) for number in numbers]


def unit_of_kernels(inputs: Sequence[torch.Tensor], kind: FormulaKind) -> float:
    """Unit roundoff that kernels compute with: float64's if an input is float64 or the reference converts all to it,
    otherwise float32's."""
    double = kind.in_double or any(t.dtype is torch.float64 for t in inputs)
    return UNIT_ROUNDOFF[DType.F64 if double else DType.F32]


def approximate_samples(
    reference: Reference, inputs: Sequence[torch.Tensor], seed: int, of_16_bits: bool, sum_unit: float
) -> list[Results]:
    """Several runs of the float64 reference with the errors of correct formulas (:mod:`approximate`)."""
    mode = partial(Approximate, of_16_bits=of_16_bits, sum_unit=sum_unit)
    return [_in_float64(reference, inputs, partial(mode, seed ^ (number + 1))) for number in range(SAMPLES)]


def rerounded_results(
    reference: Reference, inputs: Sequence[torch.Tensor], seed: int, numbers: range = range(SAMPLES)
) -> list[Results]:
    """PyTorch's results with other rounding of intermediate results, several times."""
    return [_rerounded(reference, inputs, seed, number)[0] for number in numbers]


def _rerounded(
    reference: Reference, inputs: Sequence[torch.Tensor], seed: int, number: int
) -> tuple[Results, list[Jump]]:
    of_8_bits = any(t.is_floating_point() and t.dtype.itemsize == 1 for t in inputs)
    rerounded = Rerounded(seed ^ (number + 1), of_8_bits, overflows=number % 2 == 1)
    with AttentionFormula(2, _RAISED[number % len(_RAISED)]), rerounded as mode:
        return tf32.torch_result(reference, inputs), mode.jumps


def jump_results(reference: Reference, inputs: Sequence[torch.Tensor], seed: int) -> list[Results]:
    """The float64 reference with each jump that depends on rounding taken up, down, and at random (:mod:`jumps`); none
    if there are no such jumps."""
    with JumpRecorder() as exact:
        reference.run_float64(inputs)
    if not exact.jumps:
        return []
    with JumpRecorder() as own:
        tf32.torch_result(reference, inputs)
    rounded = [_rerounded(reference, inputs, seed, number)[1] for number in range(MORE_SAMPLES)]
    errors = rounding_errors(exact.jumps, own.jumps, rounded)
    results: list[Results] = []
    for side in (1, -1, 0) if any(bool(error.any()) for error in errors) else ():
        with Jumping(errors, side, seed):
            results.append(reference.run_float64(inputs))
    return results


def _in_float64(
    reference: Reference, inputs: Sequence[torch.Tensor], mode: Callable[[Sequence[torch.Tensor]], Perturbed]
) -> Results:
    """The float64 reference under ``mode``, which is made from the float64 inputs."""
    wide = [t.double() if t.is_floating_point() else t for t in inputs]
    with mode(wide):
        return reference.run_float64(wide)


def zero_signs(reference: Reference, inputs: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """1 or −1 for elements that are an input's zero of that sign, whichever of +0 and −0 a comparison takes for the
    larger; 0 for others. Every formula that only compares and moves numbers keeps that sign; one that negates them may
    not, since ``0 - x`` is a negation too."""

    def with_small(plus: float, minus: float) -> list[torch.Tensor]:
        """The inputs in float64 with ``plus`` for +0 and ``minus`` for −0."""
        wide = (t.double() if t.is_floating_point() else t for t in inputs)
        return [
            torch.where(t == 0, torch.full_like(t, plus).masked_fill(t.signbit(), minus), t)
            if t.is_floating_point()
            else t
            for t in wide
        ]

    plus, minus = _SMALLEST, 2 * _SMALLEST
    ones = reference.run_float64(with_small(plus, -minus))
    others = reference.run_float64(with_small(-plus, minus))
    return tuple(
        ((a == plus) & (b == -plus)).to(a.dtype) - ((a == -minus) & (b == minus)).to(a.dtype)
        for a, b in zip(ones, others, strict=True)
    )


def undecided_by_attention(
    reference: Reference, inputs: Sequence[torch.Tensor], wanted: Results
) -> tuple[torch.Tensor, ...]:
    """Elements that are finite with PyTorch's attention and NaN with a plain softmax: rows whose scores are all −∞."""
    with AttentionFormula(8, plain=True):
        plain = reference.run_float64(inputs)
    return tuple(a.isnan() & b.isfinite() for a, b in zip(plain, wanted, strict=True))


def run_with_masked_attention(reference: Reference, inputs: Sequence[torch.Tensor]) -> Results:
    """The float64 reference with attention that skips what a causal mask hides."""
    with AttentionFormula(8):
        return reference.run_float64(inputs)
