"""Small workloads for the emulator and for edge cases: the analyst's shapes, shrunk as far as the reference accepts."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, repeat

from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.problems import probes, summed
from cutegen_lab.problems.axes import Axis, Infer, axes_of
from cutegen_lab.problems.layout import strides_for
from cutegen_lab.problems.probes import (
    ALIGNED,
    ALIGNED_PRODUCT,
    ALIGNED_TO,
    DEEP,
    FEW_ROWS,
    LEAST_DEEP,
    LONG_ALIGNED,
    LONGEST_SUM,
    ODD,
    PROBES,
    SOLVED,
    TILES,
    TRIVIAL,
    Probe,
    aligned,
    is_aligned,
    with_short_sums,
)
from cutegen_lab.problems.solved import solved
from cutegen_lab.problems.summed import Sums

MAX_ELEMENTS = 1 << 18  # maximum number of elements of all inputs together
MAX_ALIGNED_ELEMENTS = 1 << 17
MAX_REAL_ROW = 1 << 15  # maximum length of a row of the main workload that is kept
_STAND_IN = 11  # replaces a size of 1, to test whether the 1 changes what broadcasts
_Sizes = tuple[int, int]  # (size, axis from the right; 0 if equal sizes change together)

NAMES = probes.NAMES | {*summed.NAMES}
_RAGGED_FROM = 4  # smaller axes are not divided into tiles
FEWEST = 3  # minimum number of non-trivial workloads: with fewer, sizes are solved for


def derive(main: Workload, arguments: int, infer: Infer, sums: Sums | None = None) -> tuple[Workload, ...]:
    """Small variants of ``main``. The first ``arguments`` inputs may change shape; parameters may too if sizes are
    solved for, and are then drawn anew like all inputs.

    ``sums``: returns the numbers of terms of the products' sums; None without matrix products. ``infer`` runs the
    reference on fake tensors and returns the outputs, or None if it refuses the shapes: only what the reference accepts
    becomes a workload.
    """
    infer = functools.cache(infer)  # many probes lead to the same shapes
    if sums is None:
        return _derived(main, arguments, infer, None, math.inf)
    sums = functools.cache(sums)
    found = _derived(main, arguments, infer, sums, LONGEST_SUM)
    if len(_non_trivial(found)) >= FEWEST:
        return found
    longer = _derived(main, arguments, infer, sums, math.inf)  # the reference may accept only longer sums
    return longer if len(_non_trivial(longer)) > len(_non_trivial(found)) else found


def _non_trivial(workloads: Iterable[Workload]) -> list[Workload]:
    return [workload for workload in workloads if workload.name not in TRIVIAL]


def _derived(main: Workload, arguments: int, infer: Infer, sums: Sums | None, longest: float) -> tuple[Workload, ...]:
    """As :func:`derive`; no matrix product adds up more than ``longest`` terms."""
    found: dict[str, Workload] = {}
    products = sums is not None

    def fits(workload: Workload | None) -> bool:
        return workload is not None and (sums is None or max(sums(workload.inputs), default=0) <= longest)

    for probe in (*PROBES, *([TILES, DEEP] if products else [ALIGNED])):
        tried = (w for each in _variants(probe, longest) for w in _shrunk_main(main, arguments, each, infer))
        if workload := next(filter(fits, tried), None):
            found.setdefault(workload.signature, workload)
    derived = list(found.values())
    kept = [workload for workload in derived if not any(_more_rows(workload, other) for other in derived)]
    axes = axes_of(main.inputs, arguments, infer)
    known = {*found, main.signature}
    for probe in _missing(kept, axes, products):
        most = MAX_ALIGNED_ELEMENTS if probe.name == ALIGNED.name else MAX_ELEMENTS
        further = (solved(main, arguments, axes, each, infer, most) for each in _variants(probe, longest))
        workload = next(filter(fits, further), None)
        if workload is not None and workload.signature not in known:
            known.add(workload.signature)
            kept.append(workload)
    return (*kept, *(summed.further(main, axes, kept, infer, sums) if sums else ()))


def _variants(probe: Probe, longest: float) -> Iterable[Probe]:
    """``probe``, and its replacements if its sums are longer than ``longest``."""
    return [probe] if longest == math.inf else dict.fromkeys((probe, with_short_sums(probe)))


def _shrunk_main(main: Workload, arguments: int, probe: Probe, infer: Infer) -> Iterator[Workload]:
    """``main`` with sizes of ``probe`` that the reference accepts."""
    most = MAX_ALIGNED_ELEMENTS if probe is ALIGNED else MAX_ELEMENTS
    for mapping, why in _mappings(main, arguments, probe):
        inputs = tuple(_shrunk(spec, mapping) for spec in main.inputs[:arguments]) + main.inputs[arguments:]
        if sum(t.numel for t in inputs) > most or inputs == main.inputs:
            continue
        outputs = infer(inputs)
        if (
            outputs is not None
            and all(t.numel for t in outputs)
            and _same_broadcasts(main, arguments, mapping, infer)
            and (probe is not DEEP or _is_summed(main, inputs, outputs))
        ):
            yield Workload(probe.name, inputs, outputs, why)


def _missing(kept: Sequence[Workload], axes: Sequence[Axis], products: bool) -> Iterator[Probe]:
    """Probes whose sizes must be solved for, because sizes are equal, tied to each other, or those of parameters. The
    caller adds a workload to ``kept`` before it requests the next probe."""
    names = [workload.name for workload in kept]
    if products:
        yield from (probe for probe in (TILES, DEEP) if probe.name not in names)
    if len(_non_trivial(kept)) < FEWEST:
        yield from (probe for probe in SOLVED if not (products and probe.name in TRIVIAL))
    elif any(_never_ragged(axis, kept) for axis in axes):
        yield ODD
    if ALIGNED.name not in names and any(is_aligned(axis.size) for axis in axes):
        yield ALIGNED_PRODUCT if products else ALIGNED


def _more_rows(few: Workload, other: Workload) -> bool:
    """Whether ``few``, a workload for the length of its rows, is redundant: ``other`` has rows as long, and at least as
    many."""
    if few.name not in FEW_ROWS or other.name in TRIVIAL or other is few:
        return False
    shapes = [(a.shape, b.shape) for a, b in zip(few.inputs, other.inputs, strict=True)]
    return all(a[-1:] == b[-1:] and all(x <= y for x, y in zip(a, b, strict=True)) for a, b in shapes)


def _never_ragged(axis: Axis, workloads: Iterable[Workload]) -> bool:
    """Whether no non-trivial workload leaves a last vector or tile of ``axis`` partly empty, although the axis is long
    enough for it."""
    (at, dim), times = next(iter(axis.places.items()))
    steps = [workload.inputs[at].shape[dim] // times // axis.step for workload in _non_trivial(workloads)]
    return axis.unit // axis.step >= _RAGGED_FROM and not any(count > 1 and count % 8 for count in steps)


def _is_summed(main: Workload, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]) -> bool:
    """Whether the rows of ``inputs`` are summed, and at least :data:`LEAST_DEEP` long if ``main`` has a size as
    large."""
    rows = [t.shape[-1] for t in inputs if t.shape]
    long = max(size for t in main.inputs for size in t.shape) >= LEAST_DEEP
    return all(DEEP.columns not in t.shape for t in outputs) and (max(rows) >= LEAST_DEEP or not long)


def _same_broadcasts(main: Workload, arguments: int, mapping: Mapping[_Sizes, int], infer: Infer) -> bool:
    """Whether the shapes broadcast as before. Where two inputs' dimensions must agree, a size of 1 could broadcast by
    accident; it does not if the reference also accepts another size in its place."""
    if 1 not in mapping.values():
        return True
    other = {axis: _STAND_IN if size == 1 and axis[0] > 1 else size for axis, size in mapping.items()}
    inputs = tuple(_shrunk(spec, other) for spec in main.inputs[:arguments]) + main.inputs[arguments:]
    return infer(inputs) is not None


def _mappings(main: Workload, arguments: int, probe: Probe) -> Iterator[tuple[Mapping[_Sizes, int], str]]:
    """(sizes of axes → new sizes, what they test), from the least to the most constrained: all axes change
    independently; equal sizes change together; the columns stay unchanged, as they may be a parameter's size."""
    inputs = main.inputs[:arguments]
    row = max((t.shape[-1] for t in inputs if t.shape), default=1)
    if probe.columns is None and row > MAX_REAL_ROW:
        return
    for tied in (False, True):
        last = _axis(row, -1, tied)
        axes = {
            _axis(size, index - len(t.shape), tied) for t in inputs for index, size in enumerate(t.shape) if size > 1
        }
        outer = sorted((a for a in axes if a != last), reverse=probe.largest_first)
        if probe is ALIGNED:
            yield from ((mapping, probe.why) for mapping in _whole_tiles(last, outer))
            continue
        small = chain((probe.rows, *probe.others), repeat(probe.others[-1]))
        mapping = {axis: min(axis[0], next(small)) for axis in outer}
        columns = probe.columns_of(row)
        yield {**mapping, last: columns}, probe.why_of(columns)
        if probe.columns is not None and outer:
            yield mapping, f"{probe.rows} {'row' if probe.rows == 1 else 'rows'}"


def _whole_tiles(last: _Sizes, outer: Sequence[_Sizes]) -> Iterator[dict[_Sizes, int]]:
    """Sizes of whole tiles: the last dimension is aligned, and outer ones are powers of two while the total stays
    small. Then the same with the longest axis doubled. Nothing if no size is a multiple of a vector width."""
    if not any(is_aligned(size) for size, _ in (last, *outer)):
        return
    few = max((size for size, _ in outer), default=1) < ALIGNED_TO // 2
    mapping = {last: aligned(last[0], LONG_ALIGNED if few else ALIGNED_TO)}
    for axis in sorted(outer, key=lambda axis: -axis[1]):
        left = ALIGNED_TO**2 // math.prod(mapping.values())
        mapping[axis] = min(axis[0], ALIGNED_TO, 1 << max(left, 1).bit_length() - 1)
    yield mapping
    longest = max(outer, default=last)
    yield {**mapping, longest: 2 * mapping[longest]}


def _axis(size: int, from_right: int, tied: bool) -> _Sizes:
    return size, 0 if tied else from_right


def _shrunk(spec: TensorSpec, mapping: Mapping[_Sizes, int]) -> TensorSpec:
    rank = len(spec.shape)
    shape = tuple(
        mapping.get((size, index - rank), mapping.get((size, 0), size)) for index, size in enumerate(spec.shape)
    )
    return replace(spec, shape=shape, strides=strides_for(spec, shape))
