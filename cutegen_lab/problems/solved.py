"""Workloads whose sizes are solved for: each axis as near to a probe's size as the reference accepts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, repeat

from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.problems.axes import Axis, Infer, from_right, resized, with_equal_heads
from cutegen_lab.problems.probes import ALIGNED, ALIGNED_PRODUCT, DEEP, LEAST_DEEP, ODD, RAGGED, TILES, Probe

_IN_VECTORS = (TILES, DEEP, ALIGNED, ALIGNED_PRODUCT)
_VECTOR = 16
_MOST_HALVED = 24
Units = list[tuple[Axis, int]]


def solved(
    main: Workload, arguments: int, axes: Sequence[Axis], probe: Probe, infer: Infer, most: int
) -> Workload | None:
    """``main`` with every axis near its size in ``probe``, or unchanged if the reference refuses that; smaller if
    inputs or outputs would exceed ``most`` elements. None if the reference accepts no such sizes."""
    wanted = list(_wanted(axes, arguments, main.inputs, probe))
    if not wanted:
        return None
    for _ in range(2):  # second pass: axes that stay unchanged may make it too large again
        wanted, outputs = _fitted(main, wanted, probe, infer, most)
        if outputs:
            inputs = resized(main.inputs, wanted)
            small = _elements(inputs) <= most and all(t.numel for t in outputs)
            longest = max((spec.shape[-1] for spec in inputs[:arguments] if spec.shape), default=1)
            return Workload(probe.name, inputs, outputs, probe.why_of(longest)) if small else None
        wanted = _taken(main, wanted, infer)
    return None


def _taken(main: Workload, wanted: Units, infer: Infer) -> Units:
    """The elements of ``wanted`` that the reference accepts, tried one after another."""
    taken: Units = []
    for each in wanted:
        if infer(resized(main.inputs, [*taken, each])):
            taken.append(each)
    return taken


def _fitted(
    main: Workload, wanted: Units, probe: Probe, infer: Infer, most: int
) -> tuple[Units, tuple[TensorSpec, ...] | None]:
    """``wanted`` with its largest axes halved until neither inputs nor outputs exceed ``most`` elements, and the
    outputs, which are None if the reference refuses."""
    outputs: tuple[TensorSpec, ...] | None = None
    for _ in range(_MOST_HALVED):
        inputs = resized(main.inputs, wanted)
        if _elements(inputs) <= most:
            outputs = infer(inputs)
            if outputs is None or _elements(outputs) <= most:
                return wanted, outputs
        halved = [(axis, _halved(axis, unit, probe)) for axis, unit in wanted]
        able = [at for at, (_, unit) in enumerate(halved) if unit < wanted[at][1] and (probe is not DEEP or at > 0)]
        if not able:
            return wanted, outputs
        at = max(able, key=lambda at: wanted[at][1] * max(wanted[at][0].places.values()))
        wanted = [*wanted[:at], halved[at], *wanted[at + 1 :]]
    return wanted, None


def _halved(axis: Axis, unit: int, probe: Probe) -> int:
    """About half of ``unit``, with the same parity."""
    times = max(axis.places.values())
    half = axis.near(unit * times // 2, odd=unit // axis.step % 2 == 1 and probe not in _IN_VECTORS)
    for vector in (_VECTOR, 8):
        if unit % vector == 0 and half > vector:
            return half - half % vector if (half - half % vector) % axis.step == 0 else half
    return half


def _elements(specs: Sequence[TensorSpec]) -> int:
    return sum(spec.numel for spec in specs)


def _wanted(
    axes: Sequence[Axis], arguments: int, specs: Sequence[TensorSpec], probe: Probe
) -> Iterator[tuple[Axis, int]]:
    """(axis, its new unit), the row axis first: the longest last dimension of an argument, or for ``DEEP`` the longest
    deep axis. The others follow, those of arguments and long ones first."""
    in_vectors = probe in _IN_VECTORS
    if in_vectors or probe.name == RAGGED:
        deep = [axis for axis in axes if probe is DEEP and _is_deep(axis)]
        axes = deep + with_equal_heads([axis for axis in axes if axis not in deep], specs)
    own = [axis for axis in axes if any(at < arguments for at, _ in axis.places)] or axes
    if probe is DEEP:
        rows = [axis for axis in own if _is_deep(axis)]
    else:
        rows = [axis for axis in own if from_right(axis, specs) == 1] or [*own]
    row = max(rows, key=lambda axis: axis.size, default=None)
    outer = [axis for axis in axes if axis is not row]
    outer.sort(key=lambda axis: (axis not in own, -axis.size, from_right(axis, specs)))
    if row is not None:
        columns = probe.columns_of(row.size)
        odd = (probe.columns or columns) % 2 == 1 and not in_vectors
        yield row, row.near(min(columns, row.size - 1 if odd else row.size), odd)
    elif probe is DEEP:
        return
    for axis, size in zip(outer, chain((probe.rows, *probe.others), repeat(probe.others[-1])), strict=False):
        vector = _VECTOR if in_vectors and from_right(axis, specs) == 1 and axis.size % _VECTOR == 0 else 1
        unit = axis.near(max(size, vector), odd=probe is ODD)
        yield axis, unit - unit % vector or unit


def _is_deep(axis: Axis) -> bool:
    return axis.summed and axis.size >= LEAST_DEEP
