"""Compares a kernel's outputs with the reference, in float64 and at the problem's own precision."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import torch

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import TensorSpec, Tolerances, Workload
from cutegen_lab.core.trial import OutputError, WorkloadCheck
from cutegen_lab.judge.compare.allowance import Allowance
from cutegen_lab.judge.compare.correctness import compare, wrong_zeros
from cutegen_lab.judge.compare.distances import rms
from cutegen_lab.judge.compare.equivalent_integers import equivalent_integers
from cutegen_lab.judge.compare.in_parts import ReferenceInParts, in_parts, largest_result
from cutegen_lab.judge.compare.independent_nan import independent_of_nan
from cutegen_lab.judge.draws.integers import terms
from cutegen_lab.judge.draws.names import (
    AROUND,
    BY_SLICE,
    CONSTANT_ROWS,
    CONSTANTS,
    FAR_FROM_ZERO,
    LOSSY_IN_TORCH,
    MOSAIC,
    NOT_FINITE,
    ONE_SIDED,
    PATCHWORK,
)
from cutegen_lab.judge.execution.host_memory import require_memory
from cutegen_lab.judge.reference_device import ReferenceDevice
from cutegen_lab.judge.rounding import tf32
from cutegen_lab.judge.rounding.formula import FormulaKind, run_and_classify, run_and_test_exactness
from cutegen_lab.judge.rounding.samples import (
    MORE_SAMPLES,
    SAMPLES,
    approximate_samples,
    few_decide,
    jump_results,
    perturbed_samples,
    regrouped_samples,
    rerounded_results,
    run_with_masked_attention,
    undecided_by_attention,
    unit_of_kernels,
    zero_signs,
)
from cutegen_lab.problems import Reference
from cutegen_lab.problems.dtypes import TORCH
from cutegen_lab.problems.tensors import moved

_PREFIX = 1024
_COPIES = 11  # copies of an intermediate result in float64 that are kept at a time: measured for an attention
_CLEAR = 4.0  # multiple of its limit beyond which the error of one part is decisive
_FEW_TERMS = 1024  # maximum number of terms that is assumed for elementwise operations
# Error of a formula that adds a term of an output's usual size (sigmoid by tanh), as a fraction of that size.
_LOST = 2.0**-24
# Fraction of the usual size below which correct formulas may lose results of elementwise functions.
_VANISHING = 0.5
_OF_16_BITS = (DType.BF16, DType.F16)
_WITH_SMALL_RESULTS = (*_OF_16_BITS, DType.F32)
_FOR_INFINITY, _NEAR_ZERO = 2.0**60, 2.0**-6
_FINITE_RUNS = 8  # number of runs with large numbers instead of infinities
_WIDE_RANGE_TYPES = (torch.bfloat16, torch.float32, torch.float64)
_WITH_SIGNED_ZEROS = (torch.float16, *_WIDE_RANGE_TYPES)
_FAR_FROM_ZERO_DRAWS = (AROUND, "offset", ONE_SIDED, CONSTANT_ROWS)
_MIXED_DRAWS = (PATCHWORK, MOSAIC, CONSTANTS)
# Errors of sparse draws are relative to this fraction of an output's usual size, or more: all results of such a draw
# may lie in a function's tail.
_SPARSE_SHARE = 0.25


class OutputComparison:
    """Compares outputs of one workload with its references, computed on ``place``. Records the usual magnitude of
    outputs on the first draw."""

    def __init__(
        self, reference: Reference, workload: Workload, tolerances: Tolerances, place: ReferenceDevice
    ) -> None:
        self._reference, self._workload, self._tolerances, self._place = reference, workload, tolerances, place
        self._usual: list[float] = []
        self._kind: FormulaKind | None = None

    def errors(
        self, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], check: WorkloadCheck,
        written: Sequence[torch.Tensor] | None = None,
    ) -> tuple[OutputError, ...]:  # fmt: skip
        """Error of each output against the reference, with limits. ``written``: elements of each output to compare;
        None for all."""

        def there(where: str) -> tuple[OutputError, ...]:
            specs = self._workload.inputs
            given = [moved(t, spec, where) for t, spec in zip(inputs, specs, strict=True)]
            masks = [t.to(where) for t in written] if written else [None] * len(outputs)
            return self._errors(given, [t.to(where) for t in outputs], check, masks)

        return self._place.run(there)

    def _errors(
        self, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], check: WorkloadCheck,
        written: Sequence[torch.Tensor | None],
    ) -> tuple[OutputError, ...]:  # fmt: skip
        (torch_results, kind), exact = self._own(inputs), False
        reference: Reference = self._reference
        if _all_bits(inputs):
            wanted, exact = run_and_test_exactness(lambda: reference.run_float64(inputs))
        else:
            wanted = reference.run_float64(inputs)
        self._usual = self._usual or [rms(out) for out in wanted]
        far = check.distribution.startswith(_FAR_FROM_ZERO_DRAWS)
        share = 1.0 if far else _LOST * (check.distribution in _MIXED_DRAWS)
        share = _SPARSE_SHARE if check.distribution == "sparse" else share
        non_finite = check.distribution in NOT_FINITE
        tf32_allowed = tf32.allowed(self._reference)
        lossy_in_torch, all_or_nothing = check.distribution in LOSSY_IN_TORCH, check.distribution == FAR_FROM_ZERO
        nan_for_infinity, by_slice = non_finite and not kind.infinite, check.distribution in BY_SLICE
        accurate = not (non_finite or lossy_in_torch)

        def allowance(spec: TensorSpec, usual: float, some: torch.Tensor | None) -> Allowance:
            vanishing = kind.elementwise and not kind.plain and by_slice
            least = (_VANISHING if vanishing else _LOST) * usual if by_slice else None
            scale = (max(share, _VANISHING) if vanishing else share) * usual
            return Allowance(
                exact or kind.rounds_nothing, nan_for_infinity, scale, tf32=tf32_allowed, torch_lossy=lossy_in_torch,
                all_or_nothing=all_or_nothing, by_slice=least, written=some,
                relative=accurate and kind.relative and not spec.dtype.is_float8,
                by_size=_VANISHING * usual if accurate and kind.elementwise and spec.dtype is DType.F32 else None,
                small=accurate and kind.known_loss and spec.dtype in _WITH_SMALL_RESULTS,
                signed_zeros=kind.signs_zeros and not spec.dtype.is_float8,
                defined_at_infinity=kind.elementwise and kind.handles_infinity,
                bias=check.distribution == "normal" and spec.dtype in _OF_16_BITS,
                unbiased=kind.unbiased,
            )  # fmt: skip

        allowances = list(map(allowance, self._workload.outputs, self._usual, written))
        moves = kind.rounds_nothing and not kind.signs_zeros and not kind.ranks
        if moves and any(map(_wrong_zero, outputs, torch_results, wanted)):
            signs = zero_signs(self._reference, inputs)
            zeros = zip(allowances, signs, self._workload.outputs, strict=True)
            allowances = [
                replace(a, zero_signs=some) if TORCH[spec.dtype] in _WITH_SIGNED_ZEROS else a for a, some, spec in zeros
            ]

        max_terms = min(terms(self._workload), _FEW_TERMS) if kind.elementwise else terms(self._workload)

        def most_terms(spec: TensorSpec) -> int:
            return 1 if kind.elementwise and kind.strict and spec.dtype is DType.F64 else max_terms

        def compared(samples: Sequence[Sequence[torch.Tensor]]) -> tuple[OutputError, ...]:
            rows = enumerate(zip(self._workload.outputs, outputs, wanted, torch_results, allowances, strict=True))
            return tuple(
                compare(spec, got, want, mine, self._tolerances, most_terms(spec), allowance, [s[i] for s in samples])
                for i, (spec, got, want, mine, allowance) in rows
            )

        errors = compared([])
        if all(error.ok for error in errors):
            return errors
        elements = largest_result(reference, inputs)
        if parts := in_parts(reference, inputs, wanted, elements):
            everything = all(some is None for some in written)
            if everything and (clear := self._clear_error(parts, errors, inputs, outputs, check)):
                return clear
            reference, elements = parts, parts.elements
        if inputs[0].device.type == "cpu":
            require_memory(_COPIES * 8 * elements)
        if any(not e.ok and not spec.dtype.is_float for e, spec in zip(errors, self._workload.outputs, strict=True)):
            right = equivalent_integers(reference, inputs, outputs)
            allowances = [replace(a, accepted=where) for a, where in zip(allowances, right, strict=True)]
        # Before a kernel is called wrong: measure how much rounding matters here, and whether PyTorch was lucky.
        unit = unit_of_kernels(inputs, kind)
        samples = perturbed_samples(reference, inputs, unit, check.seed)
        of_16_bits = any(spec.dtype in _OF_16_BITS for spec in self._workload.outputs)
        approximate = partial(approximate_samples, reference, inputs, check.seed, of_16_bits)
        if any(allowance.small for allowance in allowances):
            lossy = zip(*approximate(kind.sum_unit), strict=True)
            allowances = [replace(a, approximate=tuple(some)) for a, some in zip(allowances, lossy, strict=True)]
        errors = compared(samples)
        if all(error.ok for error in errors):
            return errors
        count = MORE_SAMPLES if few_decide(inputs, wanted) else SAMPLES
        samples += perturbed_samples(reference, inputs, unit, check.seed, range(len(samples), count))
        samples += regrouped_samples(reference, inputs, unit, check.seed, range(count))
        again = zip(*rerounded_results(reference, inputs, check.seed, range(count)), strict=True)
        allowances = [replace(a, rerounded=tuple(results)) for a, results in zip(allowances, again, strict=True)]
        if not exact and not kind.rounds_nothing and (jumped := jump_results(reference, inputs, check.seed)):
            each = zip(allowances, zip(*jumped, strict=True), strict=True)
            allowances = [replace(a, jumped=results) for a, results in each]
        vanished = [
            not kind.accurate_near_zero and rms(want) < _VANISHING * usual
            for want, usual in zip(wanted, self._usual, strict=True)
        ]
        if kind.known_loss and (by_slice or any(vanished)):
            lossy = zip(*approximate(0.0), strict=True)
            allowances = [
                replace(a, by_instructions=some, vanished=small) if spec.dtype in _WITH_SMALL_RESULTS else a
                for a, spec, some, small in zip(allowances, self._workload.outputs, lossy, vanished, strict=True)
            ]
        if non_finite:
            finite_runs = [_with_finite_inputs(reference, inputs, check.seed ^ turn) for turn in range(_FINITE_RUNS)]
            run = partial(run_with_masked_attention, reference)
            none = [None] * len(outputs)
            no_search = kind.strict or kind.rounds_nothing
            right = none if no_search else independent_of_nan(run, inputs, outputs, wanted, check.seed, kind.pointwise)
            undecided = undecided_by_attention(reference, inputs, wanted)
            ignored = [lost if some is None else some | lost for some, lost in zip(right, undecided, strict=True)]
            rows = zip(allowances, self._workload.outputs, zip(*finite_runs, strict=True), ignored, strict=True)
            allowances = [
                replace(a, sign_undecided=_sign_undecided(large), finite_limit=_common_limit(large), ignored_nan=some)
                if spec.dtype.is_float
                else a
                for a, spec, large, some in rows
            ]
        return compared(samples)

    def _own(self, inputs: Sequence[torch.Tensor]) -> tuple[tuple[torch.Tensor, ...], FormulaKind]:
        """PyTorch's results, and the kind of formula of the reference."""
        run = partial(tf32.torch_result, self._reference, inputs)
        if self._kind is not None:
            return run(), self._kind
        own, self._kind = run_and_classify(run)
        return own, self._kind

    def _clear_error(
        self, parts: ReferenceInParts, errors: Sequence[OutputError], inputs: Sequence[torch.Tensor],
        outputs: Sequence[torch.Tensor], check: WorkloadCheck,
    ) -> tuple[OutputError, ...]:  # fmt: skip
        """Errors of the part with the worst element if one of them is far over its limit, otherwise (). This avoids
        measuring the effect of rounding on all parts, which is slow."""
        first = parts.first_of_part(next(e.worst_index[parts.axis] for e in errors if not e.ok))
        some, results = parts.part(inputs, first), [parts.part_of_output(out, first) for out in outputs]
        specs = zip((*self._workload.inputs, *self._workload.outputs), (*some, *results), strict=True)
        tensors = [replace(spec, shape=tuple(t.shape), strides=()) for spec, t in specs]
        workload = replace(self._workload, inputs=tuple(tensors[: len(some)]), outputs=tuple(tensors[len(some) :]))
        of_part = OutputComparison(self._reference, workload, self._tolerances, self._place)
        of_part._usual, of_part._kind = self._usual, self._kind
        found = of_part._errors(some, results, check, [None] * len(results))
        if not any(e.norm > _CLEAR * e.limit_norm or e.worst > _CLEAR * e.limit_worst for e in found):
            return ()
        return tuple(replace(e, worst_index=parts.index(e.worst_index, first)) for e in found)


def _with_finite_inputs(reference: Reference, inputs: Sequence[torch.Tensor], seed: int) -> tuple[torch.Tensor, ...]:
    """Results of the float64 reference with a different large number in place of each infinity."""
    generator = torch.Generator(inputs[0].device).manual_seed(seed)

    def tamed(values: torch.Tensor) -> torch.Tensor:
        sizes = torch.rand(values.shape, generator=generator, device=values.device).add_(1).mul_(_FOR_INFINITY)
        return torch.where(values.isinf(), sizes.to(values.dtype).copysign(values), values)

    return reference.run_float64([tamed(t) if t.dtype in _WIDE_RANGE_TYPES else t for t in inputs])


def _wrong_zero(got: torch.Tensor, own: torch.Tensor, wanted: torch.Tensor) -> bool:
    """Whether a zero's sign differs from PyTorch's and from the reference's."""
    return got.dtype in _WITH_SIGNED_ZEROS and bool(wrong_zeros(got, own, wanted).any())


def _sign_undecided(tame: Sequence[torch.Tensor]) -> torch.Tensor:
    """Elements that are close to zero in every run of ``tame`` (large inputs instead of infinite ones): with infinite
    inputs they may have either sign."""
    return torch.stack([t.abs() < _NEAR_ZERO * rms(t) for t in tame]).all(0)


def _common_limit(tame: Sequence[torch.Tensor]) -> torch.Tensor:
    """Results of the first run of ``tame`` (large inputs instead of infinite ones); NaN where the runs differ in
    sign."""
    same = torch.stack([t.sign() == tame[0].sign() for t in tame]).all(0)
    return torch.where(same, tame[0], math.nan)


def _all_bits(inputs: Sequence[torch.Tensor]) -> bool:
    """Whether every input holds only zeros and ones (the first few elements are tested first)."""
    some = [t.reshape(-1)[:_PREFIX] for t in inputs]
    return all(bool(((t == 0) | (t == 1)).all()) for t in (*some, *inputs))
