"""Small workloads for the emulator and for edge cases: the analyst's shapes, shrunk as far as the reference agrees."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat

from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.problems.axes import Axis, Infer, axes_of, resized
from cutegen_lab.problems.layout import strides_for
from cutegen_lab.problems.summed import NAMES as SUMMED
from cutegen_lab.problems.summed import Sums, further

MAX_ELEMENTS = 1 << 16
MAX_REAL_ROW = 1 << 15  # the main workload's own row length is kept up to here
_STAND_IN = 11  # for a size of 1, where it is asked whether 1 changes what broadcasts
_Sizes = tuple[int, int]  # (size, axis from the right, or 0 where equal sizes go together)


@dataclass(frozen=True)
class _Probe:
    name: str
    rows: int
    columns: int | None  # None: as in the main workload
    why: str
    others: tuple[int, ...] = (2, 3, 1)  # what further axes shrink to, the last for all that are left
    largest_first: bool = False  # … in which order (where axes were solved for, always)


_PROBES = (
    _Probe("real_row", 3, None, "the real row length, few rows"),
    _Probe("one_row", 1, 512, "a single row"),
    _Probe("prime", 5, 257, "prime columns: no vector divides them"),
    _Probe("tail", 17, 1000, "vectors fit, the last tile is ragged"),
    _Probe("long_prime", 2, 4099, "prime and longer than one pass of a block"),
    _Probe("one_column", 7, 1, "a single column"),
)
# For matrix products: what a kernel with TMA can serve that leaves the others out by its constraints.
_TILES = _Probe("tiles", 144, 272, "several ragged tiles, every row a multiple of 16 bytes", (208, 2), True)
_DEEP = _Probe("deep", 72, 1160, "more steps along the summed dimension than any ring has stages", (40, 2), True)
NAMES = frozenset(probe.name for probe in (*_PROBES, _TILES, _DEEP)) | {"single", *SUMMED}
TRIVIAL = ("one_row", "one_column", "single")  # where much that is wrong is right
_FEW_ROWS = ("real_row", "long_prime")  # for the length of their rows alone
FEWEST = 3  # others than these: where there are fewer, sizes are solved for
_SOLVED = (
    _Probe("odd", 13, 257, "odd sizes wherever the reference takes them", (7, 3, 1)),
    _Probe("ragged", 34, 1000, "vectors fit, the last tile is ragged", (18, 2)),
    _Probe("single", 1, 512, "one of everything but the longest dimension", (1,)),
    _Probe("long", 2, 4099, "longer than one pass of a block", (3, 2)),
)


def derive(main: Workload, arguments: int, infer: Infer, sums: Sums | None = None) -> tuple[Workload, ...]:
    """Small relatives of ``main``. The first ``arguments`` inputs may change shape (parameters may not).

    ``sums``: what products sum over, where the reference has matrix products or the like.

    ``infer`` runs the reference on fake tensors and returns the outputs, or None where it does not take these shapes:
    only what the reference itself accepts becomes a workload.
    """
    infer = functools.cache(infer)  # many probes come to the same shapes
    found: dict[str, Workload] = {}
    products = sums is not None
    for probe in (*_PROBES, *([_TILES, _DEEP] if products else [])):
        for mapping, why in _mappings(main, arguments, probe):
            inputs = tuple(_shrunk(spec, mapping) for spec in main.inputs[:arguments]) + main.inputs[arguments:]
            if sum(t.numel for t in inputs) > MAX_ELEMENTS * 4 or inputs == main.inputs:
                continue
            outputs = infer(inputs)
            if (
                outputs is not None
                and all(t.numel for t in outputs)
                and _same_broadcasts(main, arguments, mapping, infer)
                and (probe is not _DEEP or _is_summed(probe, outputs))
            ):
                workload = Workload(probe.name, inputs, outputs, why)
                found.setdefault(workload.signature, workload)
                break
    derived = list(found.values())
    kept = [workload for workload in derived if not any(_more_rows(workload, other) for other in derived)]
    kept += _further(main, arguments, infer, products, found)
    return (*kept, *(further(main, arguments, kept, infer, sums) if sums else ()))


def _more_rows(few: Workload, other: Workload) -> bool:
    """Does ``other`` show what ``few`` was made for, rows of this length, and with more of them?"""
    if few.name not in _FEW_ROWS or other.name in TRIVIAL or other is few:
        return False
    shapes = [(a.shape, b.shape) for a, b in zip(few.inputs, other.inputs, strict=True)]
    return all(a[-1:] == b[-1:] and all(x <= y for x, y in zip(a, b, strict=True)) for a, b in shapes)


def _further(
    main: Workload, arguments: int, infer: Infer, products: bool, found: Mapping[str, Workload]
) -> list[Workload]:
    """What is still missing where sizes are alike, tied to each other, or those of parameters."""
    names = [workload.name for workload in found.values()]
    telling = len([name for name in names if name not in TRIVIAL])
    missing = [probe for probe in (_TILES, _DEEP) if products and probe.name not in names]
    solved = _SOLVED if telling + len(missing) < FEWEST else ()
    wanted = [*missing, *(probe for probe in solved if not (products and probe.name in TRIVIAL))]
    axes = axes_of(main.inputs, arguments, infer) if wanted else []
    known, further = {*found, main.signature}, []
    for probe in wanted:
        inputs = _solved(main, arguments, axes, probe, infer)
        outputs = infer(inputs)
        if outputs and all(t.numel for t in outputs) and sum(t.numel for t in inputs) <= MAX_ELEMENTS * 4:
            workload = Workload(probe.name, inputs, outputs, probe.why)
            if workload.signature not in known:
                known.add(workload.signature)
                further.append(workload)
    return further


def _solved(
    main: Workload, arguments: int, axes: Sequence[Axis], probe: _Probe, infer: Infer
) -> tuple[TensorSpec, ...]:
    """The inputs of ``main`` with every axis near what ``probe`` asks for, or as it was where the reference refuses."""
    wanted = list(_wanted(axes, arguments, [len(spec.shape) for spec in main.inputs], probe))
    if infer(inputs := resized(main.inputs, wanted)):
        return inputs
    taken: list[tuple[Axis, int]] = []
    for each in wanted:
        if infer(resized(main.inputs, [*taken, each])):
            taken.append(each)
    return resized(main.inputs, taken)


def _wanted(axes: Sequence[Axis], arguments: int, ranks: Sequence[int], probe: _Probe) -> Iterator[tuple[Axis, int]]:
    """Each axis and its unit: first the row, the longest along some argument's rows (the longest that is summed)."""

    def from_right(axis: Axis) -> int:
        return min(ranks[at] - dim for at, dim in axis.places)

    own = [axis for axis in axes if any(at < arguments for at, _ in axis.places)] or axes
    row = max(
        [axis for axis in own if (axis.summed if probe is _DEEP else from_right(axis) == 1)] or own,
        key=lambda axis: axis.size, default=None,
    )  # fmt: skip
    outer = sorted((axis for axis in axes if axis is not row), key=lambda axis: (-axis.size, from_right(axis)))
    in_vectors = probe in (_TILES, _DEEP)
    if row is not None:
        columns = probe.columns or row.size
        odd = columns % 2 == 1 and not in_vectors
        yield row, row.near(min(columns, row.size - 1 if odd else row.size), odd)
    for axis, size in zip(outer, chain((probe.rows, *probe.others), repeat(probe.others[-1])), strict=False):
        vector = 16 if in_vectors and from_right(axis) == 1 and axis.size % 16 == 0 else 1
        unit = axis.near(max(size, vector))
        yield axis, unit - unit % vector or unit


def _is_summed(probe: _Probe, outputs: Sequence[TensorSpec]) -> bool:
    return all(probe.columns not in t.shape for t in outputs)


def _same_broadcasts(main: Workload, arguments: int, mapping: Mapping[_Sizes, int], infer: Infer) -> bool:
    """A size of 1 may stand where two inputs' dimensions must agree, and broadcast by accident. It does not if the
    reference also takes the shapes with another number in its place."""
    if 1 not in mapping.values():
        return True
    other = {axis: _STAND_IN if size == 1 and axis[0] > 1 else size for axis, size in mapping.items()}
    inputs = tuple(_shrunk(spec, other) for spec in main.inputs[:arguments]) + main.inputs[arguments:]
    return infer(inputs) is not None


def _mappings(main: Workload, arguments: int, probe: _Probe) -> Iterator[tuple[Mapping[_Sizes, int], str]]:
    """From the freest to the tightest: axes apart, equal sizes together, rows only (columns are a parameter's size)."""
    inputs = main.inputs[:arguments]
    row = max((t.shape[-1] for t in inputs if t.shape), default=1)
    columns = probe.columns if probe.columns is not None else row
    if columns > MAX_REAL_ROW:
        return
    for tied in (False, True):
        axes = {
            _axis(size, index - len(t.shape), tied) for t in inputs for index, size in enumerate(t.shape) if size > 1
        }
        outer = sorted((a for a in axes if a != _axis(row, -1, tied)), reverse=probe.largest_first)
        small = chain((probe.rows, *probe.others), repeat(probe.others[-1]))
        mapping = {axis: min(axis[0], next(small)) for axis in outer}
        yield {**mapping, _axis(row, -1, tied): min(row, columns)}, probe.why
        if probe.columns is not None and outer:
            yield mapping, f"{probe.rows} {'row' if probe.rows == 1 else 'rows'}"


def _axis(size: int, from_right: int, tied: bool) -> _Sizes:
    return size, 0 if tied else from_right


def _shrunk(spec: TensorSpec, mapping: Mapping[_Sizes, int]) -> TensorSpec:
    rank = len(spec.shape)
    shape = tuple(
        mapping.get((size, index - rank), mapping.get((size, 0), size)) for index, size in enumerate(spec.shape)
    )
    return replace(spec, shape=shape, strides=strides_for(spec, shape))
