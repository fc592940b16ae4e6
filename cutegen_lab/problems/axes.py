"""Finds which of a problem's sizes may change alone, and which only together, by running the reference on other
shapes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, islice, product
from math import gcd, lcm

from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.problems.layout import strides_for

Infer = Callable[[tuple[TensorSpec, ...]], tuple[TensorSpec, ...] | None]
Place = tuple[int, int]  # an input, and one of its dimensions

_DIVISIBLE = 960  # divisible by every number up to 6 and by 64: trial size for finding dimensions that change together
_MOST_STEPS = 24
_ODD = 7  # number of steps in a trial size: odd, so that the size is not a multiple of a larger step
_LEAST = (1, 2, 3, 5, 9, 17, 33, 65)  # numbers of steps to try, for the minimum that the reference accepts
_MOST_SETS = 32
_MOST_ASKED = 300  # maximum number of trial runs, some 10 ms each; untried dimensions stay unchanged
_FILTER = 16  # sizes up to this stay unchanged if no output size is proportional to them: filters, channels
_IMAGE = 8  # exception: arguments' dimensions of at least this size may change if an output grows with them
_LONGEST_HEAD = 256  # maximum length of a row that counts as an attention head


@dataclass(frozen=True)
class Axis:
    """Dimensions that change together."""

    places: Mapping[Place, int]
    """(input, dimension) → its size divided by ``unit``."""
    unit: int
    """Current size of a dimension with factor 1."""
    step: int = 1
    """``unit`` may change to any multiple of this."""
    summed: bool = False
    """Whether no output's shape depends on it."""
    least: int = 1
    """Smallest ``unit``."""

    @property
    def size(self) -> int:
        """The largest of its dimensions."""
        return self.unit * max(self.places.values())

    def near(self, size: int, odd: bool = False) -> int:
        """The largest unit for which no dimension exceeds ``size`` or its current value; never less than the smallest
        unit that the reference accepts. ``odd``: an odd number of steps if possible."""
        least = -(-self.least // self.step)
        steps = max(min(size, self.size) // max(self.places.values()) // self.step, least)
        if odd and steps % 2 == 0:
            steps += -1 if steps > least else (steps + 1) * self.step <= self.unit
        return steps * self.step


def from_right(axis: Axis, specs: Sequence[TensorSpec]) -> int:
    """Smallest distance of ``axis`` from the right end of a tensor's shape: 1 for an axis along rows."""
    return min(len(specs[at].shape) - dim for at, dim in axis.places)


def with_equal_heads(axes: Sequence[Axis], specs: Sequence[TensorSpec]) -> list[Axis]:
    """``axes``, in which short axes of equal size along rows are merged: kernels for attention assume that the heads of
    values are as long as those of keys."""
    found: dict[object, Axis] = {}
    for number, axis in enumerate(axes):
        short = from_right(axis, specs) == 1 and axis.size <= _LONGEST_HEAD
        key = (axis.unit, axis.size) if short else number
        one = found.get(key)
        found[key] = axis if one is None else _united(one, axis)
    return list(found.values())


def _united(one: Axis, other: Axis) -> Axis:
    return Axis(
        {**one.places, **other.places}, one.unit, lcm(one.step, other.step), one.summed and other.summed,
        max(one.least, other.least),
    )  # fmt: skip


def resized(specs: Sequence[TensorSpec], units: Iterable[tuple[Axis, int]]) -> tuple[TensorSpec, ...]:
    """``specs`` with each axis at its new unit."""
    shapes = [list(spec.shape) for spec in specs]
    for axis, unit in units:
        for (at, dim), times in axis.places.items():
            shapes[at][dim] = unit * times
    return tuple(
        spec if tuple(shape) == spec.shape else replace(spec, shape=tuple(shape), strides=strides_for(spec, shape))
        for spec, shape in zip(specs, shapes, strict=True)
    )


def axes_of(specs: Sequence[TensorSpec], arguments: int, infer: Infer) -> list[Axis]:
    """All axes of ``specs``; the first ``arguments`` are the reference's own, the others parameters.

    A dimension that can change alone is an axis of its own; otherwise an axis is the smallest set that the reference
    accepts.
    """
    ask = _Asked(specs, arguments, infer)
    found: list[Axis] = []
    sizes = {(at, dim): size for at, spec in enumerate(specs) for dim, size in enumerate(spec.shape) if size > 1}
    alike = Counter(sizes.values())
    # Parameters of rare sizes first: few dimensions can be tied to them, so they take few trials.
    left = sorted(sizes, key=lambda place: alike[sizes[place]] if place[0] >= arguments else 0)
    while left:
        axis = next((a for places in _together(left, sizes, arguments) if (a := ask.smallest(left[0], places))), None)
        if axis is not None and (axis := ask.measured(axis)):
            found.append(axis)
        taken = axis.places if axis is not None else {left[0]: 1}
        left = [place for place in left if place not in taken]
    return found


def _together(left: Sequence[Place], sizes: Mapping[Place, int], arguments: int) -> Iterator[tuple[Place, ...]]:
    """Sets of places that may have to change with the first of ``left``, small ones first: itself alone; with one
    dimension of equal size in each of some other tensors, arguments before parameters; with all of equal size; with all
    whose size is a multiple or divisor of its size."""
    first, size = left[0], sizes[left[0]]
    alike = [place for place in left if sizes[place] == size]
    own = [place for place in alike if place[0] < arguments]
    related = [place for place in left if sizes[place] % size == 0 or size % sizes[place] == 0]
    tensors = sorted({at for at, _ in left if at != first[0]})
    for some in (own, alike):
        choices = [[None, *(p for p in some if p[0] == at)] for at in tensors]
        sets = ((first, *(p for p in chosen if p)) for chosen in islice(product(*reversed(choices)), _MOST_SETS))
        yield from sorted(sets, key=len)
    whole = (own, alike, [place for place in related if place[0] < arguments], related)
    yield from (tuple(some) for some in whole if first in some)


class _Asked:
    """Runs the reference on trial shapes, at most ``_MOST_ASKED`` times."""

    def __init__(self, specs: Sequence[TensorSpec], arguments: int, infer: Infer) -> None:
        self._specs, self._arguments, self._infer = specs, arguments, infer
        self._outputs = infer(tuple(specs)) or ()
        self._left = _MOST_ASKED

    def smallest(self, first: Place, places: Sequence[Place]) -> Axis | None:
        """``first`` with the fewest of ``places`` that must change with it; None if not even all can."""
        axis = self._axis(places)
        if not self._changes(axis):
            return None
        for dropped in chain(*(combinations([p for p in places if p != first], n) for n in (1, 2))):
            kept = [p for p in axis.places if p not in dropped]
            if len(kept) < len(axis.places) and self._changes(fewer := self._axis(kept)):
                axis = fewer
        return axis

    def measured(self, axis: Axis) -> Axis | None:
        """``axis`` with the smallest step and size that the reference accepts; None for an axis that must not change,
        such as a filter's."""
        for step in islice((n for n in range(1, axis.unit + 1) if axis.unit % n == 0), _MOST_STEPS):
            unit = step * _ODD if step * _ODD != axis.unit else step * (_ODD + 2)
            outputs = self._at(axis, unit)
            if outputs is None and step < axis.unit:  # the reference may need a size of more than _ODD steps
                outputs = self._at(axis, unit := axis.unit - step)
            if outputs is not None:
                if self._is_filter(axis, unit, outputs):
                    return None
                summed = [t.shape for t in self._outputs] == [t.shape for t in outputs]
                return replace(axis, step=step, summed=summed, least=self._least(axis, step))
        return None

    def _is_filter(self, axis: Axis, unit: int, outputs: Sequence[TensorSpec]) -> bool:
        """Whether ``axis`` must not change, such as a filter's. ``outputs``: those for a new ``unit``."""
        shapes = [(old.shape, new.shape) for old, new in zip(self._outputs, outputs, strict=True)]
        pairs = [pair for old, new in shapes for pair in zip(old, new, strict=True)]
        if axis.size > _FILTER or any(b != a and a * axis.unit == b * unit for b, a in pairs):
            return False
        image = axis.size >= _IMAGE and all(at < self._arguments for at, _ in axis.places)
        return not (image and any((a - b) * (unit - axis.unit) > 0 for b, a in pairs))

    def _least(self, axis: Axis, step: int) -> int:
        """The smallest unit. It is at least two steps if a step is more than one element (a number of groups): a group
        of one element would be normalised to zero."""
        fewest = 2 if step > 1 else 1
        units = (steps * step for steps in _LEAST if steps >= fewest and steps * step < axis.unit)
        return next((unit for unit in units if self._at(axis, unit) is not None), axis.unit)

    def _axis(self, places: Sequence[Place]) -> Axis:
        sizes = {(at, dim): self._specs[at].shape[dim] for at, dim in places}
        unit = gcd(*sizes.values())
        return Axis({place: size // unit for place, size in sizes.items()}, unit)

    def _changes(self, axis: Axis) -> bool:
        """Whether the reference accepts another size: a large one, or a smaller one (a table may bound the size)."""
        larger = _DIVISIBLE if axis.unit != _DIVISIBLE else 2 * _DIVISIBLE
        return any(self._at(axis, unit) is not None for unit in (larger, axis.unit // 2) if unit > 1)

    def _at(self, axis: Axis, unit: int) -> tuple[TensorSpec, ...] | None:
        self._left -= 1
        if self._left < 0:
            return None
        outputs = self._infer(resized(self._specs, [(axis, unit)]))
        same = outputs is not None and [len(t.shape) for t in outputs] == [len(t.shape) for t in self._outputs]
        return outputs if same and outputs and all(t.numel for t in outputs) else None
