"""Workloads for a product's summed dimension: one that no vector width divides, and one that no tile divides, as long
as the analyst's if affordable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.problems.axes import Axis, Infer, resized, with_equal_heads

Sums = Callable[[tuple[TensorSpec, ...]], tuple[int, ...]]  # number of terms of each product's sum, for given inputs
NAMES = ODD_SUM, RAGGED_SUM = "odd_sum", "ragged_sum"
_WHY = ("a summed dimension that no vector divides", "a long summed dimension: vectors fit, the last tile is ragged")
_LEAST = 16  # smaller sizes belong to filters, or fit into one step
_VECTOR, _TILE = 16, 32
_MOST = (149, 1136)  # maximum number of terms, by NAMES: more than a tile; more steps than any ring has stages
_OTHERS = (40, 24, 8, 2)  # sizes of the other axes: not multiples of any tile
_MOST_ELEMENTS = 1 << 20
_SOME = 128  # sums of at least this many terms take several steps along k
_LONG = 0.8  # a sum is long from this fraction of the main workload's terms on (of at most ``_MOST[1]``)
_K = {"mm": (0, -1), "bmm": (0, -1), "addmm": (1, -1), "baddbmm": (1, -1), "mv": (0, -1), "addmv": (1, -1)}


class _Products(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.sums: list[int] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if place := _K.get(func.overloadpacket.__name__):
            self.sums.append(args[place[0]].shape[place[1]])
        return func(*args, **(kwargs or {}))


def sums_of(run: Callable[[], object]) -> tuple[int, ...]:
    """Number of terms of the sum in each product of ``run()``, in order."""
    mode = _Products()
    with mode:
        run()
    return tuple(mode.sums)


def further(
    main: Workload, axes: Sequence[Axis], found: Sequence[Workload], infer: Infer, sums: Sums
) -> Iterator[Workload]:
    """The workloads of :data:`NAMES` that ``found`` lacks for some product, if the reference accepts them."""
    wanted, every = sums(main.inputs), [sums(workload.inputs) for workload in found]
    every = [sizes for sizes in every if len(sizes) == len(wanted)]
    lacking = [name for name in NAMES if _lacks(name, wanted, every)]
    for name in lacking:
        inputs = _solved(main, axes, name, wanted, infer, sums)
        outputs = infer(inputs)
        fits = outputs and all(t.numel for t in outputs) and sum(t.numel for t in inputs) <= _MOST_ELEMENTS
        sizes = sums(inputs) if fits else ()
        if (
            outputs
            and len(sizes) == len(wanted)
            and len(_lacks(name, wanted, [*every, sizes])) < len(_lacks(name, wanted, every))
        ):
            yield Workload(name, inputs, outputs, _WHY[NAMES.index(name)])


def _lacks(name: str, wanted: Sequence[int], every: Sequence[Sequence[int]]) -> list[int]:
    """Indices of the products for which no sums of ``every`` satisfy ``name``."""
    large = [at for at, most in enumerate(wanted) if most >= _LEAST]
    return [at for at in large if not _served(name, [sizes[at] for sizes in every], wanted[at])]


def _served(name: str, sizes: Sequence[int], most: int) -> bool:
    """Whether one of the lengths ``sizes`` of a sum is odd (not a multiple of 8), or one is ragged and one long, as
    ``name`` demands. ``most``: length in the main workload."""
    if name == ODD_SUM:
        return any(size > 8 and size % 8 for size in sizes)
    ragged = [size for size in sizes if size % 8 == 0 and size % _TILE]
    return max(ragged, default=0) >= min(most - _VECTOR, _SOME) and max(sizes) >= _LONG * min(most, _MOST[1])


def _target(name: str, axis: Axis) -> int:
    most = min(axis.size, _MOST[NAMES.index(name)])
    if name == ODD_SUM:
        return axis.near(min(most, axis.size - 1), odd=True)
    most -= most % _VECTOR
    return axis.near(max(most if most % _TILE else most - _VECTOR, _VECTOR))


def _solved(
    main: Workload, axes: Sequence[Axis], name: str, wanted: Sequence[int], infer: Infer, sums: Sums
) -> tuple[TensorSpec, ...]:
    """Inputs of ``main`` with summed axes as ``name`` demands and the others small; an axis stays unchanged if the
    reference refuses its new size."""

    def summed(axis: Axis) -> bool:
        other = resized(main.inputs, [(axis, axis.near(axis.size // 2))])
        return infer(other) is not None and sums(other) != tuple(wanted)

    if name == RAGGED_SUM:
        axes = with_equal_heads(axes, main.inputs)
    own = [axis for axis in axes if axis.size >= _LEAST and summed(axis)]
    taken = [(axis, _target(name, axis)) for axis in own]
    if infer(resized(main.inputs, taken)) is None:
        taken = taken[:1]
    others = sorted((axis for axis in axes if axis not in own), key=lambda axis: -axis.size)
    for number, axis in enumerate(others):
        unit = axis.near(_OTHERS[min(number, len(_OTHERS) - 1)])
        if infer(resized(main.inputs, [*taken, (axis, unit)])):
            taken.append((axis, unit))
    return resized(main.inputs, taken)
