"""Large references computed part by part, along an axis whose parts do not depend on each other: a batch, or heads.

Runs with random rounding keep several copies of every intermediate result. An attention's scores take gigabytes in
float64, and all copies of them more than a machine has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from cutegen_lab.judge.compare.distances import finite_difference, rms
from cutegen_lab.problems import Reference

LARGE = 1 << 25  # maximum number of elements of an intermediate result: 256 MiB in float64
_SAME = 1e-9  # largest relative difference of two float64 results that summation order alone explains

Results = tuple[torch.Tensor, ...]


def largest_result(reference: Reference, inputs: Sequence[torch.Tensor]) -> int:
    """Number of elements of the largest result of any operator of the float64 reference."""
    seen = LargestResult()
    with seen:
        reference.run_float64(inputs)
    return seen.elements


class LargestResult(TorchDispatchMode):
    """Records the number of elements of the largest result of any operator: ``elements``."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        sizes = (value.numel() for value in tree_leaves(result) if isinstance(value, torch.Tensor))
        self.elements = max(self.elements, *sizes, 0)
        return result


class ReferenceInParts(Reference):
    """A reference that computes its outputs part by part along ``axis``, from the same parts of the inputs ``sliced``
    and from the whole of the others."""

    def __init__(
        self, whole: Reference, axis: int, size: int, step: int, sliced: Sequence[bool], elements: int
    ) -> None:  # fmt: skip
        """``size``: length of the axis. ``step``: length of each part but the last. ``elements``: size of a part's
        largest intermediate result."""
        vars(self).update(vars(whole))
        self.axis, self.elements = axis, elements
        self._whole, self._size, self._step, self._sliced = whole, size, step, tuple(sliced)

    def run(self, tensors: Sequence[torch.Tensor]) -> Results:
        return self._gathered(self._whole.run, tensors)

    def run_float64(self, tensors: Sequence[torch.Tensor]) -> Results:
        return self._gathered(self._whole.run_float64, tensors)

    def first_of_part(self, index: int) -> int:
        """First index along the axis of the part that holds ``index``."""
        return index // self._step * self._step

    def part(self, tensors: Sequence[torch.Tensor], first: int) -> list[torch.Tensor]:
        """Inputs of the part that begins at ``first``."""
        pairs = zip(tensors, self._sliced, strict=True)
        return [self.part_of_output(t, first) if sliced else t for t, sliced in pairs]

    def part_of_output(self, tensor: torch.Tensor, first: int) -> torch.Tensor:
        """A view of the part of an output that begins at ``first``."""
        return tensor.narrow(self.axis, first, min(self._step, self._size - first))

    def index(self, of_part: tuple[int, ...], first: int) -> tuple[int, ...]:
        """Index in the whole output of the element with index ``of_part`` in the part that begins at ``first``."""
        return (*of_part[: self.axis], of_part[self.axis] + first, *of_part[self.axis + 1 :])

    def agrees(self, tensors: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor]) -> bool:
        """Whether float64 results computed in parts equal ``wanted``."""
        try:
            for first, results in self._results(self._whole.run_float64, tensors):
                pairs = [(mine, self.part_of_output(want, first)) for mine, want in zip(results, wanted, strict=True)]
                if not all(_same(mine, want) for mine, want in pairs):
                    return False
        # The reference accepts whole shapes only.
        except (RuntimeError, IndexError, ValueError, TypeError, AssertionError):
            return False
        return True

    def _results(
        self, run: Callable[[Sequence[torch.Tensor]], Results], tensors: Sequence[torch.Tensor]
    ) -> Iterator[tuple[int, Results]]:
        for first in range(0, self._size, self._step):
            yield first, run(self.part(tensors, first))

    def _gathered(self, run: Callable[[Sequence[torch.Tensor]], Results], tensors: Sequence[torch.Tensor]) -> Results:
        found: Results = ()
        for first, results in self._results(run, tensors):
            found = found or tuple(self._unwritten(result) for result in results)
            for result, into in zip(results, found, strict=True):
                self.part_of_output(into, first).copy_(result)
        return found

    def _unwritten(self, result: torch.Tensor) -> torch.Tensor:
        shape = list(result.shape)
        shape[self.axis] = self._size
        return result.new_empty(shape)


def in_parts(
    reference: Reference, inputs: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor], elements: int
) -> ReferenceInParts | None:
    """``reference`` in parts, if it is large and its parts' results equal ``wanted`` (float64); otherwise None.

    ``elements``: size of the reference's largest intermediate result. That of a part has at most :data:`LARGE`
    elements, if the axis is long enough."""
    count = -(-elements // LARGE)
    if count < 2:
        return None
    sizes = [{out.shape[axis] for out in wanted} for axis in range(min(out.dim() for out in wanted))]
    axes = [(axis, some.pop()) for axis, some in enumerate(sizes) if len(some) == 1]
    for axis, size in sorted(axes, key=lambda pair: pair[1] < count):  # axes that are long enough first
        alike = [at for at, t in enumerate(inputs) if t.dim() > axis and t.shape[axis] == size]
        for along in (alike, alike[:1]) if size > 1 else ():  # a weight may have an axis of this size by chance
            sliced = [at in along for at in range(len(inputs))]
            step = max(size // count, 1)
            parts = ReferenceInParts(reference, axis, size, step, sliced, elements * step // size)
            if along and parts.agrees(inputs, wanted):
                return parts
    return None


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    exact = other.reshape(-1).double()
    return bool((finite_difference(one.reshape(-1).double(), exact, exact).abs_() <= _SAME * rms(exact)).all())
