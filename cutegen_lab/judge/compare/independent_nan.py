"""Accepts numbers where the reference has NaN, if the NaN comes from an input that the result does not depend on.

Example: in attention PyTorch multiplies the values of masked keys by weights of zero and adds −∞ to their scores, so a
NaN or infinity among the values spreads. Kernels that skip masked keys never read it. Dependence is found by trial:
non-finite elements are replaced by finite numbers, and an output that keeps every bit does not depend on them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, combinations

import torch

from cutegen_lab.judge.compare.distances import rms
from cutegen_lab.judge.draws.values import between

Run = Callable[[Sequence[torch.Tensor]], tuple[torch.Tensor, ...]]
_MOST_TRIED = 48  # maximum number of elements, and of sets of elements, that are tried
# Factors on a random number above 0.5: several magnitudes, since a large term hides small ones.
_FACTORS = (3.0, -1024.0, 1024.0, -(2.0**100), 2.0**100)
_TOLERANCE = 2.0**-4


def independent_of_nan(
    run: Run, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor],
    seed: int, pointwise: bool = False,
) -> list[torch.Tensor]:  # fmt: skip
    """For each output, the elements that are right although ``wanted`` (float64) has NaN there.

    ``run`` computes the reference in float64. With too many non-finite elements, or too many sets of them, outputs that
    do not depend on all of them count as right: draws with one NaN or one infinity still test them. ``pointwise``: each
    result depends on one element of an input at most, so that all non-finite elements of an input are tried together,
    and nothing counts as right without a trial.
    """
    trial = _DependenceSearch(run, inputs, outputs, wanted, seed)
    if not trial.over() and not trial.settle(trial.given) and not trial.of_some_inputs(2 if pointwise else 1):
        trial.follow(pointwise)
    return trial.right


class _DependenceSearch:
    def __init__(
        self, run: Run, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor],
        wanted: Sequence[torch.Tensor], seed: int,
    ) -> None:  # fmt: skip
        self._run, self._outputs = run, outputs
        self.given = [t.double() if t.is_floating_point() else t for t in inputs]
        self.open = [want.isnan() & ~got.isnan() for got, want in zip(outputs, wanted, strict=True)]
        self.right = [torch.zeros_like(some) for some in self.open]
        self._generator = torch.Generator(inputs[0].device).manual_seed(seed)

        def healthy(tensor: torch.Tensor) -> torch.Tensor:
            numbers = torch.randn(tensor.shape, generator=self._generator, device=tensor.device)
            return torch.where(tensor.isfinite(), tensor, numbers.to(tensor))

        self._healthy = [healthy(t) for t in self.given]

    def settle(self, inputs: Sequence[torch.Tensor], among: Sequence[torch.Tensor] | None = None) -> bool:
        """Marks elements as right that agree with the reference's answer to ``inputs``. Returns whether all elements
        are settled."""
        answers = self._run(inputs)
        for at, (got, answer) in enumerate(zip(self._outputs, answers, strict=True)):
            if not answer.is_floating_point():
                continue
            near = (got - answer).abs() <= _TOLERANCE * answer.abs().clamp(min=rms(answer))
            near = (got == answer) | (near & answer.isfinite())
            self._take(at, near if among is None else near & among[at])
        return self.over()

    def over(self) -> bool:
        """Whether all elements are settled."""
        return not any(bool(some.any()) for some in self.open)

    def of_some_inputs(self, most: int) -> bool:
        """Settles elements that do not depend on the non-finite values of one input, or of up to ``most`` inputs, while
        the others are unchanged. Returns whether all elements are settled."""
        odd = [at for at, tensor in enumerate(self.given) if not bool(tensor.isfinite().all())]
        for which in chain.from_iterable(combinations(odd, count) for count in range(1, most + 1)):
            some = [list(self.given), list(self.given)]
            for inputs, value, power in zip(some, (1024.0, -1024.0), (2, 3), strict=True):
                for number, at in enumerate(which):  # different values for each input, since equal ones may cancel
                    inputs[at] = torch.where(self.given[at].isfinite(), self.given[at], value * power**number)
            same = [one == other for one, other in zip(*map(self._run, some), strict=True)]
            if self.settle(some[0], same):
                return True
        return False

    def follow(self, pointwise: bool) -> None:
        """Finds which non-finite elements affect which outputs, and settles the outputs that depend on one set of them
        with all others made finite."""
        places = [(at, i) for at, t in enumerate(self.given) for i in (~t.isfinite()).view(-1).nonzero()[:, 0].tolist()]
        order = torch.randperm(len(places), generator=self._generator, device=self._generator.device).tolist()
        tried = [places[i] for i in order[:_MOST_TRIED]]
        if not tried or (pointwise and len(places) > len(tried)):
            return
        base = self._run(self._healthy)
        reach = [self._reached(base, place) for place in tried]
        by_output = [torch.stack([reached[at] for reached in reach]) for at in range(len(base))]
        if len(places) > len(tried):
            for at, matters in enumerate(by_output):
                self._take(at, ~matters.all(0))
            return
        columns = [m[:, some].T.unique(dim=0).tolist() for m, some in zip(by_output, self.open, strict=True)]
        for number, which in enumerate(sorted({tuple(column) for some in columns for column in some})):
            mine = torch.tensor(which)
            among = [(m == mine.to(m.device).view(-1, *[1] * (m.dim() - 1))).all(0) for m in by_output]
            if number < _MOST_TRIED:
                kept = [place for place, matters in zip(tried, which, strict=True) if matters]
                self.settle(self._with({(at, i): float(self.given[at].reshape(-1)[i]) for at, i in kept}), among)
                continue
            for at, where in enumerate(among):
                self._take(at, where)

    def _take(self, at: int, where: torch.Tensor) -> None:
        """Counts the remaining elements ``where`` of output ``at`` as right."""
        self.right[at] |= self.open[at] & where
        self.open[at] &= ~where

    def _reached(self, base: Sequence[torch.Tensor], place: tuple[int, int]) -> list[torch.Tensor]:
        found = [torch.zeros_like(some) for some in self.open]
        for factor in _FACTORS:
            value = factor * (0.5 + between(0, 1, self._generator))
            for mask, before, after in zip(found, base, self._run(self._with({place: value})), strict=True):
                mask |= before != after
        return found

    def _with(self, values: Mapping[tuple[int, int], float]) -> list[torch.Tensor]:
        """The inputs with all non-finite elements made finite, except ``values``, given by (input, index)."""
        mixed = list(self._healthy)
        for at in {at for at, _ in values}:
            mixed[at] = mixed[at].clone()
        for (at, index), value in values.items():
            mixed[at].view(-1)[index] = value
        return mixed
