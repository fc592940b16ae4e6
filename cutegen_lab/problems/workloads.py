"""Small workloads for the emulator and for edge cases: the analyst's shapes, shrunk as far as the reference agrees."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, repeat

from cutegen_lab.core.problem import TensorSpec, Workload

MAX_ELEMENTS = 1 << 16
MAX_REAL_ROW = 1 << 15  # the main workload's own row length is kept up to here
_STAND_IN = 11  # for a size of 1, where it is asked whether 1 changes what broadcasts
Infer = Callable[[tuple[TensorSpec, ...]], tuple[TensorSpec, ...] | None]
Axis = tuple[int, int]  # (size, axis from the right, or 0 where equal sizes go together)


@dataclass(frozen=True)
class _Probe:
    name: str
    rows: int
    columns: int | None  # None: as in the main workload
    why: str
    others: tuple[int, ...] = (2, 3, 1)  # what further axes shrink to, the last for all that are left
    largest_first: bool = False  # … in which order


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


def derive(main: Workload, arguments: int, infer: Infer, products: bool = False) -> tuple[Workload, ...]:
    """Small relatives of ``main``. The first ``arguments`` inputs may change shape (parameters may not).

    ``products``: the reference has matrix products.

    ``infer`` runs the reference on fake tensors and returns the outputs, or None where it does not take these shapes:
    only what the reference itself accepts becomes a workload.
    """
    found: dict[str, Workload] = {}
    for probe in (*_PROBES, *([_TILES] if products else [])):
        for mapping, why in _mappings(main, arguments, probe):
            inputs = tuple(_shrunk(spec, mapping) for spec in main.inputs[:arguments]) + main.inputs[arguments:]
            if sum(t.numel for t in inputs) > MAX_ELEMENTS * 4 or inputs == main.inputs:
                continue
            outputs = infer(inputs)
            if (
                outputs is not None
                and all(t.numel for t in outputs)
                and _same_broadcasts(main, arguments, mapping, infer)
            ):
                workload = Workload(probe.name, inputs, outputs, why)
                found.setdefault(workload.signature, workload)
                break
    return tuple(found.values())


def _same_broadcasts(main: Workload, arguments: int, mapping: Mapping[Axis, int], infer: Infer) -> bool:
    """A size of 1 may stand where two inputs' dimensions must agree, and broadcast by accident. It does not if the
    reference also takes the shapes with another number in its place."""
    if 1 not in mapping.values():
        return True
    other = {axis: _STAND_IN if size == 1 and axis[0] > 1 else size for axis, size in mapping.items()}
    inputs = tuple(_shrunk(spec, other) for spec in main.inputs[:arguments]) + main.inputs[arguments:]
    return infer(inputs) is not None


def _mappings(main: Workload, arguments: int, probe: _Probe) -> Iterator[tuple[Mapping[Axis, int], str]]:
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


def _axis(size: int, from_right: int, tied: bool) -> Axis:
    return size, 0 if tied else from_right


def _shrunk(spec: TensorSpec, mapping: Mapping[Axis, int]) -> TensorSpec:
    rank = len(spec.shape)
    shape = tuple(
        mapping.get((size, index - rank), mapping.get((size, 0), size)) for index, size in enumerate(spec.shape)
    )
    return TensorSpec(spec.name, spec.dtype, shape, _strides(spec, shape))


def _strides(spec: TensorSpec, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Those of ``spec`` for another shape: dimensions lie in memory in the same order, with the same gaps between."""
    if not spec.strides:
        return ()
    strides = list(spec.strides)
    dense = dense_before = 1
    for axis in sorted(range(len(shape)), key=lambda a: (spec.strides[a], spec.shape[a])):
        gap = spec.strides[axis] - dense_before
        strides[axis] = dense + gap
        dense, dense_before = strides[axis] * shape[axis], spec.strides[axis] * spec.shape[axis]
    return tuple(strides)
