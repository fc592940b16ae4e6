"""Runs of a reference with random rounding, as many as a comparison needs."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from cutegen_lab.core.dtypes import DType
from cutegen_lab.judge.rounding import tf32
from cutegen_lab.judge.rounding.approximate import Approximate
from cutegen_lab.judge.rounding.attention_formula import AttentionFormula
from cutegen_lab.judge.rounding.noise import UNIT_ROUNDOFF
from cutegen_lab.judge.rounding.perturbed import Perturbed
from cutegen_lab.judge.rounding.rerounded import Rerounded
from cutegen_lab.problems import Reference

SAMPLES, MORE_SAMPLES = 3, 12  # more samples if there are few results, none of which may be as unlucky as the kernel's
_FEW = 4096
_RAISED = (None, 0.0, 0.5)  # scales of attention's largest weight, by sample: powers of two


def perturbed(reference: Reference, inputs: Sequence[torch.Tensor], unit: float, seed: int) -> tuple[torch.Tensor, ...]:
    """The float64 reference with inputs and intermediate results rounded to ``unit`` at random."""
    wide = [t.double() if t.is_floating_point() else t for t in inputs]
    with Perturbed(unit, seed, wide):
        return reference.run_float64(wide)


def perturbed_samples(
    reference: Reference, inputs: Sequence[torch.Tensor], seed: int, taken: int = 0
) -> list[tuple[torch.Tensor, ...]]:  # fmt: skip
    """Several such runs at the precision of kernels: float32, or float64 where an input is. ``taken``: number of runs
    already made; for large results these are enough."""
    unit = UNIT_ROUNDOFF[DType.F64] if any(t.dtype is torch.float64 for t in inputs) else UNIT_ROUNDOFF[DType.F32]
    if not taken:
        return [perturbed(reference, inputs, unit, seed ^ (index + 1)) for index in range(SAMPLES)]
    few = max(t.numel() for t in inputs) <= 2 * _FEW
    return (
        [perturbed(reference, inputs, unit, seed ^ (index + 1)) for index in range(taken, MORE_SAMPLES)] if few else []
    )


def approximate_samples(
    reference: Reference, inputs: Sequence[torch.Tensor], seed: int, of_16_bits: bool, sum_unit: float
) -> list[tuple[torch.Tensor, ...]]:
    """Several runs of the float64 reference with the losses of honest formulas (:mod:`approximate`)."""
    wide = [t.double() if t.is_floating_point() else t for t in inputs]

    def sample(index: int) -> tuple[torch.Tensor, ...]:
        with Approximate(seed ^ (index + 1), wide, of_16_bits, sum_unit):
            return reference.run_float64(wide)

    return list(map(sample, range(SAMPLES)))


def rerounded_results(
    reference: Reference, inputs: Sequence[torch.Tensor], seed: int
) -> list[tuple[torch.Tensor, ...]]:
    """PyTorch's results with other rounding of intermediate results, several times."""
    results: list[tuple[torch.Tensor, ...]] = []
    of_8_bits = any(t.is_floating_point() and t.dtype.itemsize == 1 for t in inputs)
    while len(results) < (MORE_SAMPLES if results and min(t.numel() for t in results[0]) <= _FEW else SAMPLES):
        number = len(results)
        with AttentionFormula(2, _RAISED[number % len(_RAISED)]), Rerounded(seed ^ (number + 1), of_8_bits):
            results.append(tf32.torch_result(reference, inputs))
    return results


def run_with_masked_attention(reference: Reference, inputs: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The float64 reference with attention that skips what a causal mask hides."""
    with AttentionFormula(8):
        return reference.run_float64(inputs)
