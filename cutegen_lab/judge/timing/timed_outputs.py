"""Inputs of a timing, and the check of outputs left by timed calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import torch

from cutegen_lab.core.problem import Problem
from cutegen_lab.core.trial import OutputError
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.judge.compare.correctness import compare
from cutegen_lab.judge.draws.inputs import draw, fill
from cutegen_lab.judge.reference_device import ReferenceDevice
from cutegen_lab.judge.rounding import tf32
from cutegen_lab.judge.timing.measured import OutputCheck
from cutegen_lab.problems import Reference
from cutegen_lab.problems.tensors import moved

Tensors = Sequence[torch.Tensor]
LENIENCE = 16.0
"""Multiple of a check's tightest limits that a timed output may reach. The check has judged rounding; this comparison
finds skipped work, whose error is as large as the values."""


def inputs_for(problem: Problem, reference: Reference, seed: int) -> list[torch.Tensor]:
    """Inputs of the main workload; a Model's parameters stay near their own values, as in a check."""
    workload, parameters = problem.workload, reference.parameters
    own = tuple(spec for spec in workload.inputs if spec.name in parameters)
    values = draw(replace(workload, inputs=own), "normal", seed, parameters)
    drawn = {spec.name: value for spec, value in zip(own, values, strict=True)}
    return [
        drawn.get(spec.name, value) for spec, value in zip(workload.inputs, fill(workload, seed), strict=True)
    ]  # fmt: skip


def output_errors(
    problem: Problem, reference: Reference, place: ReferenceDevice
) -> Callable[[Tensors, Tensors], list[OutputError]]:
    """Function from inputs and outputs to each output's error against the float64 reference, computed at ``place``."""

    def compared(inputs: Tensors, outputs: Tensors) -> list[OutputError]:
        def there(where: str) -> list[OutputError]:
            given = [moved(t, spec, where) for t, spec in zip(inputs, problem.workload.inputs, strict=True)]
            exact, own = reference.run_float64(given), tf32.torch_result(reference, given)
            results = zip(problem.workload.outputs, outputs, exact, own, strict=True)
            return [compare(spec, got.to(where), want, mine, problem.tolerances) for spec, got, want, mine in results]

        return place.run(there)

    return compared


def output_check(problem: Problem, reference: Reference, place: ReferenceDevice) -> OutputCheck:
    """Check of outputs against the float64 reference of their inputs, computed at ``place``."""
    compared = output_errors(problem, reference, place)
    return lambda inputs, outputs, seed: skipped_work(compared(inputs, outputs))


def skipped_work(found: Iterable[OutputError]) -> Fault | None:
    """Fault for the first error that shows that work was skipped; None if there is none."""
    return next((Fault(Verdict.WRONG_RESULT, _error_text(error)) for error in found if _far_off(error)), None)


def _far_off(error: OutputError) -> bool:
    return not (error.norm <= LENIENCE * error.limit_norm and error.worst <= LENIENCE * error.limit_worst)


def _error_text(error: OutputError) -> str:
    return (
        f"error {error.norm:.2e} against float64 (limit {error.limit_norm:.2e}); worst at {error.worst_place}: "
        f"got {error.got:g}, expected {error.expected:g}"
    )
