"""Slices of tensors, such as ``x[..., :d]``: finds a formula for ``d`` from shapes that fits every workload."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from cutegen_lab.core.problem import Workload

_PARTS = range(2, 9)
_POWERS = (1.0, -0.5, 0.5, -1.0)  # powers of sizes that occur in references
_LARGEST = 1e9


@dataclass(frozen=True)
class ShapeExpr:
    """A number computed from the size of a dimension: ``shape[axis] // over * times + plus``.

    ``tensor``: its number among the inputs, then outputs; None: the number is ``plus``. ``up``: the division rounds up.
    ``most``: upper limit.
    """

    tensor: int | None = None
    axis: int = 0
    over: int = 1
    times: int = 1
    plus: int = 0
    up: bool = False
    most: int | None = None

    def of(self, workload: Workload) -> int:
        if self.tensor is None:
            return self.plus
        size = workload.tensors[self.tensor].shape[self.axis] + (self.over - 1 if self.up else 0)
        length = size // self.over * self.times + self.plus
        return length if self.most is None else min(length, self.most)

    def text(self, names: Sequence[str]) -> str:
        if self.tensor is None:
            return str(self.plus)
        text = f"{names[self.tensor]}.shape[{self.axis}]"
        if self.up:
            text = f"({text} + {self.over - 1})"
        text += f" // {self.over}" if self.over > 1 else ""
        text += f" * {self.times}" if self.times != 1 else ""
        text += f" {'+' if self.plus > 0 else '-'} {abs(self.plus)}" if self.plus else ""
        return text if self.most is None else f"min({text}, {self.most})"


@dataclass(frozen=True)
class Slice:
    """``length`` elements from ``start`` along dimension ``axis`` of input ``tensor``. ``beyond``: the slice may extend
    beyond the input; elements there are 0."""

    tensor: int
    axis: int
    start: ShapeExpr
    length: ShapeExpr
    beyond: bool = False


def fixed(tensor: int, axis: int, start: int, length: int, beyond: bool = False) -> Slice:
    """A slice with the bounds of one workload."""
    return Slice(tensor, axis, ShapeExpr(plus=start), ShapeExpr(plus=length), beyond)


def fitted(
    readings: Sequence[tuple[Workload, tuple[Slice, ...]]], others: Sequence[Workload] = ()
) -> tuple[Slice, ...] | None:
    """The first workload's slices with formulas that hold for all of ``readings`` and stay inside the tensor for
    ``others``; None if a slice has no such formula. A slice beyond its input may keep a fixed length."""
    found = []
    for position, part in enumerate(readings[0][1]):
        of_all = [(workload, slices[position]) for workload, slices in readings]
        if any((s.tensor, s.axis) != (part.tensor, part.axis) for _, s in of_all):
            return None
        known = () if part.beyond else others
        sizes = [(w, w.inputs[part.tensor].shape[part.axis]) for w in known]
        lengths = [(w, s.length.plus) for w, s in of_all]
        length = _fit(lengths, part, [(w, 1, size) for w, size in sizes]) or (part.length if part.beyond else None)
        if length is None:
            return None
        rest = [(w, 0, size - length.of(w)) for w, size in sizes]
        start = _fit([(w, s.start.plus) for w, s in of_all], part, rest)
        if start is None:
            return None
        found.append(replace(part, start=start, length=length))
    return tuple(found)


def _fit(
    numbers: Sequence[tuple[Workload, int]], part: Slice, limits: Sequence[tuple[Workload, int, int]]
) -> ShapeExpr | None:
    """A formula for ``numbers``. ``limits``: (workload, lower bound, upper bound) of the number in workloads in which
    the number itself is unknown."""
    workload, number = numbers[0]
    for candidate in _candidates(workload, number, part):
        exact = all(candidate.of(w) == n for w, n in numbers)
        if exact and all(low <= candidate.of(w) <= high for w, low, high in limits):
            return candidate
    return None


def fitted_constant(
    numbers: Sequence[tuple[Workload, float]], parts: bool = False, up: bool = False
) -> ShapeExpr | None:
    """A formula that gives the number in every workload: a dimension of an input, plus or minus 1. With ``parts``, also
    ``size // k`` or ``size + c``; with ``up``, only ``ceil(size / k)``."""
    workload, number = numbers[0]
    choices = [(over, 0) for over in _PARTS] if up else [(1, plus) for plus in (0, -1, 1)]
    if parts and not up:
        choices += [(over, 0) for over in _PARTS]
        choices += [(1, int(number) - size) for spec in workload.inputs for size in spec.shape]
    for over, plus in choices:
        for tensor, spec in enumerate(workload.inputs):
            for axis in range(len(spec.shape)):
                length = ShapeExpr(tensor, axis, over=over, plus=plus, up=up)
                if all(length.of(w) == number for w, number in numbers):
                    return length
    return None


def perhaps_of_shape(number: float, workload: Workload) -> bool:
    """Whether a constant may depend on a size: as a size ± 1 or its inverse, or as a root or inverse root of a divisor
    of a size."""
    sizes = [n for spec in workload.inputs for n in spec.shape]
    found = [(power, size) for power in _POWERS if (size := _root(number, power))]
    return any(
        abs(n - size) <= 1 or (abs(power) == 0.5 and n % size == 0) for power, size in found for n in sizes if size > 1
    )


def fitted_power(numbers: Sequence[tuple[Workload, float]]) -> tuple[ShapeExpr, float] | None:
    """(length, power) that gives the number in every workload, or None."""
    for power in _POWERS:
        sizes = [_root(number, power) for _, number in numbers]
        if all(size is not None for size in sizes):
            length = fitted_constant([(w, size or 0) for (w, _), size in zip(numbers, sizes, strict=True)], parts=True)
            if length is not None:
                return length, power
    length = fitted_constant(numbers, up=True)
    return None if length is None else (length, 1.0)


def _root(number: float, power: float) -> int | None:
    """The integer that gives ``number`` when raised to ``power``, or None."""
    if power == 1.0:
        return int(number) if number.is_integer() else None
    size = round(number ** (1 / power)) if 1 / _LARGEST < number < _LARGEST else 0
    return size if size > 0 and math.isclose(size**power, number) else None


def fitted_factor(numbers: Sequence[tuple[Workload, int]], tensor: int, axis: int) -> ShapeExpr | None:
    """A formula for a factor of a dimension: a constant, the dimension over a constant, or another dimension."""
    workload, number = numbers[0]
    over = max(workload.inputs[tensor].shape[axis] // max(number, 1), 1)
    known = [ShapeExpr(plus=number), ShapeExpr(tensor, axis, over=over)]
    known += [ShapeExpr(t, d) for t, spec in enumerate(workload.inputs) for d in range(len(spec.shape))]
    return next((length for length in known if all(length.of(w) == n for w, n in numbers)), None)


def _candidates(workload: Workload, number: int, part: Slice) -> Iterator[ShapeExpr]:
    """Formulas for ``number``, most likely first."""
    if number < 0:
        yield ShapeExpr(plus=number)
        for length in _candidates(workload, -number, part):
            if not length.most:
                yield replace(length, times=-length.times, plus=-length.plus)
        return
    if number == 0:
        yield ShapeExpr()
    size = workload.inputs[part.tensor].shape[part.axis]
    yield ShapeExpr(part.tensor, part.axis)
    for up in (False, True):
        for over in _PARTS:
            for times in range(1, over):
                yield ShapeExpr(part.tensor, part.axis, over=over, times=times, up=up)
    yield ShapeExpr(plus=number)
    yield ShapeExpr(part.tensor, part.axis, plus=number - size)
    yield ShapeExpr(part.tensor, part.axis, most=number)
    for tensor, spec in enumerate(workload.inputs):
        for axis in range(len(spec.shape)):
            yield ShapeExpr(tensor, axis)
