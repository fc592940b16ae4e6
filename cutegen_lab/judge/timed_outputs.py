"""The values a timing runs on, and whether what a timed call left behind is right for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from cutegen_lab.core.problem import Problem
from cutegen_lab.core.trial import OutputError
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.judge.correctness import compare
from cutegen_lab.judge.inputs import draw, fill
from cutegen_lab.judge.place import Place
from cutegen_lab.judge.timing import OutputCheck
from cutegen_lab.problems import Reference
from cutegen_lab.problems.tensors import moved

LENIENCE = 16.0
"""How far beyond a check's tightest limits an output may be: rounding was judged there, here work not done is looked
for, and what was left undone is wrong by as much as the values themselves."""


def inputs_for(problem: Problem, reference: Reference, seed: int) -> list[torch.Tensor]:
    """Inputs of the main workload; a Model's parameters stay near their own values, as in a check."""
    workload, parameters = problem.workload, reference.parameters
    own = tuple(spec for spec in workload.inputs if spec.name in parameters)
    values = draw(replace(workload, inputs=own), "normal", seed, parameters)
    drawn = {spec.name: value for spec, value in zip(own, values, strict=True)}
    return [
        drawn.get(spec.name, value) for spec, value in zip(workload.inputs, fill(workload, seed), strict=True)
    ]  # fmt: skip


def answers(problem: Problem, reference: Reference, place: Place) -> OutputCheck:
    """A check of outputs against the float64 reference of the inputs they were computed from, at ``place``."""

    def check(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], seed: int) -> Fault | None:
        def there(where: str) -> Fault | None:
            given = [moved(t, spec, where) for t, spec in zip(inputs, problem.workload.inputs, strict=True)]
            exact, own = reference.run_float64(given), reference.run(given)
            for spec, got, want, mine in zip(problem.workload.outputs, outputs, exact, own, strict=True):
                error = compare(spec, got.to(where), want, mine, problem.tolerances)
                if _beyond(error):
                    return Fault(Verdict.WRONG_RESULT, _told(error))
            return None

        return place.run(there)

    return check


def _beyond(error: OutputError) -> bool:
    return not (error.norm <= LENIENCE * error.limit_norm and error.worst <= LENIENCE * error.limit_worst)


def _told(error: OutputError) -> str:
    return (
        f"error {error.norm:.2e} against float64 (limit {error.limit_norm:.2e}); worst at {error.worst_place}: "
        f"got {error.got:g}, expected {error.expected:g}"
    )
