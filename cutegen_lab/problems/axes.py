"""Which of a problem's sizes may change, and which only together: found by asking the reference, one after another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, islice, product
from math import gcd

from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.problems.layout import strides_for

Infer = Callable[[tuple[TensorSpec, ...]], tuple[TensorSpec, ...] | None]
Place = tuple[int, int]  # an input, and one of its dimensions

_DIVISIBLE = 960  # by every number up to 6 and by 64: a size for trying which dimensions go together
_STEPS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 192, 256)
_ODD = 7  # a multiple of a step that is no multiple of a larger one
_MOST_SETS = 32
_MOST_ASKED = 300  # questions, each some 10 ms: dimensions that are left then stay as they are
_FILTER = 16  # sizes up to here that a result does not follow in proportion stay: a filter's, a number of channels


@dataclass(frozen=True)
class Axis:
    """Dimensions that change together: each is its number in ``places`` times ``unit``, which may be any multiple of
    ``step``. ``summed``: no output's shape follows it."""

    places: Mapping[Place, int]
    unit: int
    step: int = 1
    summed: bool = False

    @property
    def size(self) -> int:
        """The largest of its dimensions."""
        return self.unit * max(self.places.values())

    def near(self, size: int, odd: bool = False) -> int:
        """The unit for dimensions of at most ``size`` where the reference takes that, and no larger than now; ``odd``:
        of an odd number of steps."""
        steps = max(min(size, self.size) // max(self.places.values()) // self.step, 1)
        return (steps - (odd and steps % 2 == 0)) * self.step


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
    """Everything of ``specs`` that may change; the first ``arguments`` are the reference's own, the others parameters.

    Dimensions that change alone come out alone; of others, the fewest that the reference accepts together.
    """
    ask = _Asked(specs, infer)
    found: list[Axis] = []
    sizes = {(at, dim): size for at, spec in enumerate(specs) for dim, size in enumerate(spec.shape) if size > 1}
    alike = Counter(sizes.values())
    # Parameters of rare sizes first: what few others can be tied to takes few questions.
    left = sorted(sizes, key=lambda place: alike[sizes[place]] if place[0] >= arguments else 0)
    while left:
        axis = next((a for places in _together(left, sizes, arguments) if (a := ask.smallest(left[0], places))), None)
        if axis is not None and (axis := ask.measured(axis)):
            found.append(axis)
        taken = axis.places if axis is not None else {left[0]: 1}
        left = [place for place in left if place not in taken]
    return found


def _together(left: Sequence[Place], sizes: Mapping[Place, int], arguments: int) -> Iterator[tuple[Place, ...]]:
    """Sets of places that may belong to the first of ``left``, small ones first: itself; one of its size of some other
    tensors, the reference's own before parameters; all of its size; all whose size is a multiple or a part of its own.
    """
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
    """A reference that is asked about shapes, ``_MOST_ASKED`` times at most."""

    def __init__(self, specs: Sequence[TensorSpec], infer: Infer) -> None:
        self._specs, self._infer = specs, infer
        self._outputs = infer(tuple(specs)) or ()
        self._left = _MOST_ASKED

    def smallest(self, first: Place, places: Sequence[Place]) -> Axis | None:
        """``first`` and as few of ``places`` as can change with it; None where not even all can."""
        axis = self._axis(places)
        if not self._changes(axis):
            return None
        for dropped in chain(*(combinations([p for p in places if p != first], n) for n in (1, 2))):
            kept = [p for p in axis.places if p not in dropped]
            if len(kept) < len(axis.places) and self._changes(fewer := self._axis(kept)):
                axis = fewer
        return axis

    def measured(self, axis: Axis) -> Axis | None:
        """``axis`` with the smallest step that the reference takes; None where it is a filter's or the like."""
        for step in _STEPS:
            unit = step * _ODD if step * _ODD != axis.unit else step * (_ODD + 2)
            outputs = self._at(axis, unit)
            if outputs is not None:
                before = [t.shape for t in self._outputs]
                after = [t.shape for t in outputs]
                pairs = [(b, a) for old, new in zip(before, after, strict=True) for b, a in zip(old, new, strict=True)]
                follows = any(a != b and a * axis.unit == b * unit for b, a in pairs)
                if axis.size <= _FILTER and not follows:
                    return None
                return replace(axis, step=step, summed=before == after)
        return None

    def _axis(self, places: Sequence[Place]) -> Axis:
        sizes = {(at, dim): self._specs[at].shape[dim] for at, dim in places}
        unit = gcd(*sizes.values())
        return Axis({place: size // unit for place, size in sizes.items()}, unit)

    def _changes(self, axis: Axis) -> bool:
        """Does the reference take another size? A large one, or, where a table bounds it, a small one."""
        larger = _DIVISIBLE if axis.unit != _DIVISIBLE else 2 * _DIVISIBLE
        return any(self._at(axis, unit) is not None for unit in (larger, axis.unit // 2) if unit > 1)

    def _at(self, axis: Axis, unit: int) -> tuple[TensorSpec, ...] | None:
        self._left -= 1
        if self._left < 0:
            return None
        outputs = self._infer(resized(self._specs, [(axis, unit)]))
        same = outputs is not None and [len(t.shape) for t in outputs] == [len(t.shape) for t in self._outputs]
        return outputs if same and outputs and all(t.numel for t in outputs) else None
