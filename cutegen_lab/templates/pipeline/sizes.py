"""Formulas, as text, for the sizes of tensors between steps, which hold in every workload."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement

from cutegen_lab.core.errors import NotCovered
from cutegen_lab.core.problem import Workload

_FACTORS = 3
_FINEST = 16  # maximum divisor in a formula

Axis = tuple[int, int]  # (input, dimension)


@dataclass(frozen=True)
class Size:
    """A size in elements. It is one of three: the product of the dimensions ``axes``, times ``times``, divided by
    ``over``; the sum of the dimensions ``added``; or (one dimension plus ``plus``) divided by ``over``, such as a
    number of windows."""

    axes: tuple[Axis, ...] = ()
    times: int = 1
    over: int = 1
    added: tuple[Axis, ...] = ()
    plus: int = 0

    def text(self, names: Sequence[str]) -> str:
        if self.added:
            return " + ".join(f"{names[tensor]}.shape[{axis}]" for tensor, axis in self.added)
        if self.plus:
            ((tensor, axis),) = self.axes
            return f"({names[tensor]}.shape[{axis}] {'+' if self.plus > 0 else '-'} {abs(self.plus)}) // {self.over}"
        factors = [f"{names[tensor]}.shape[{axis}]" for tensor, axis in self.axes]
        factors += [str(self.times)] if self.times > 1 or not factors else []
        return " * ".join(factors) + (f" // {self.over}" if self.over > 1 else "")


def fitted(sizes: Sequence[tuple[Workload, int]]) -> Size:
    """The simplest formula that gives the size in every workload. Raises ProviderError if there is none."""
    wanted = [size for _, size in sizes]
    known = _dimensions([workload for workload, _ in sizes])
    single = next((axis for values, axis in known.items() if list(values) == wanted), None)
    if single is not None:
        return Size((single,))
    for axes, values in _products(known, len(wanted)):
        ratio = Fraction(wanted[0], values[0])
        if ratio.denominator <= _FINEST and all(
            value * ratio == size for value, size in zip(values, wanted, strict=True)
        ):
            return Size(axes, ratio.numerator, ratio.denominator)
    for terms in range(2, _FACTORS + 1):
        for chosen in combinations_with_replacement(known.items(), terms):
            if [sum(column) for column in zip(*(v for v, _ in chosen), strict=True)] == wanted:
                return Size(added=tuple(axis for _, axis in chosen))
    for lengths, axis in known.items():
        if (windows := _windows(lengths, wanted)) is not None:
            return Size((axis,), over=windows[0], plus=windows[1])
    raise NotCovered(
        f"the templates find no formula for the size of a tensor between two kernels ({wanted[0]} in the main workload)"
    )


def _windows(lengths: Sequence[int], wanted: Sequence[int]) -> tuple[int, int] | None:
    """(stride, offset) with ``(length + offset) // stride == wanted`` in every workload."""
    for stride in range(1, _FINEST + 1):
        least = max(size * stride - length for length, size in zip(lengths, wanted, strict=True))
        if all((length + least) // stride == size for length, size in zip(lengths, wanted, strict=True)):
            return stride, least
    return None


def _dimensions(workloads: Sequence[Workload]) -> dict[tuple[int, ...], Axis]:
    """Sizes in the workloads → the first input dimension with these sizes."""
    found: dict[tuple[int, ...], Axis] = {}
    for tensor, spec in enumerate(workloads[0].inputs):
        for axis in range(len(spec.shape)):
            found.setdefault(tuple(w.inputs[tensor].shape[axis] for w in workloads), (tensor, axis))
    return found


def _products(known: dict[tuple[int, ...], Axis], count: int) -> Iterator[tuple[tuple[Axis, ...], list[int]]]:
    yield (), [1] * count
    for factors in range(1, _FACTORS + 1):
        for chosen in combinations_with_replacement(known.items(), factors):
            yield (
                tuple(axis for _, axis in chosen),
                [math.prod(column) for column in zip(*(v for v, _ in chosen), strict=True)],
            )
