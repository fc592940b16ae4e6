"""Finds which integer inputs are indices, and their range, by tracing the reference on fake tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.problems.dtypes import TORCH

_ALONG_DIM = {
    "gather", "index_select", "scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy", "index_fill",
    "index_reduce",
}  # fmt: skip
_FAR = 1 << 20  # larger than any tensor of the small workloads
Run = Callable[[Sequence[torch.Tensor]], object]
Use = tuple[torch.Tensor, int, tuple[int, ...]]  # (index tensor, size that it indexes, further legal values)


def ranged(specs: Sequence[TensorSpec], run: Run, tensors: Sequence[torch.Tensor]) -> list[TensorSpec]:
    """``specs`` with ranges for indices. ``run``: the reference; ``tensors``: a (fake) tensor for each spec."""
    watch = _Watch({id(t): {i} for i, t in enumerate(tensors) if _whole(t)})
    with watch:
        run(tensors)
    return [
        replace(spec, below=min(n for n, _ in seen), beside=tuple(sorted({v for _, other in seen for v in other})))
        if (seen := watch.ranges.get(position))
        else spec
        for position, spec in enumerate(specs)
    ]


def accepted(specs: Sequence[TensorSpec], run: Run, made: Callable[[TensorSpec], torch.Tensor]) -> list[TensorSpec]:
    """``specs`` with the values outside an index's range that ``run``, the reference on a CPU, accepts. ``made(spec)``:
    a tensor that the reference accepts."""
    found = list(specs)
    for position, spec in enumerate(specs):
        if spec.below and not spec.rule:
            beside = tuple(n for n in _beyond(spec) if _takes(specs, position, n, run, made))
            found[position] = replace(spec, beside=beside)
    return found


def _beyond(spec: TensorSpec) -> tuple[int, ...]:
    """Values of the index ``spec`` outside its range: negative ones that count from the end, and others that a
    reference accepts only if it clamps, wraps or masks them first."""
    size = spec.below
    far = 1 << 32  # for 64-bit indices: values that are legal if cut to 32 bits, and 2**31
    ends = (
        -1,
        -2,
        -(size // 2),
        1 - size,
        -size,
        -size - 1,
        size,
        size + 1,
        2 * size + 1,
        3 * size,
        -_FAR - 1,
        _FAR,
        far + size // 2,
        far // 2,
        -far - 1,
    )
    info = torch.iinfo(TORCH[spec.dtype])
    outside = {n for n in ends if info.min <= n <= info.max and not 0 <= n < size}
    return tuple(sorted({*spec.beside, *outside}))


def _takes(
    specs: Sequence[TensorSpec], position: int, value: int, run: Run, made: Callable[[TensorSpec], torch.Tensor]
) -> bool:
    tensors = [made(spec) for spec in specs]
    tensors[position].fill_(value)
    try:
        run(tensors)
    except Exception:  # a reference may refuse values in any way it likes
        return False
    return True


class _Watch(TorchDispatchMode):
    """Follows integers from inputs (by number) to the operators that index with them."""

    def __init__(self, origins: dict[int, set[int]]) -> None:
        super().__init__()
        self.ranges: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
        self._origins = origins
        self._kept: list[torch.Tensor] = []  # keeps tensors alive: an id is unique only as long as its tensor lives

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for index, count, beside in _uses(str(func), args):
            for position in self._origins.get(id(index), ()):
                self.ranges.setdefault(position, []).append((count, beside))
        found = set().union(*(self._origins.get(id(t), set()) for t in args if isinstance(t, torch.Tensor)))
        if found and isinstance(result, torch.Tensor) and _whole(result):
            self._kept.append(result)
            self._origins[id(result)] = found
        return result


def _whole(tensor: torch.Tensor) -> bool:
    return not tensor.is_floating_point() and tensor.dtype is not torch.bool


def _uses(name: str, args: Sequence[Any]) -> Iterator[Use]:
    """Every index among an ATen operator's arguments."""
    operator = name.removeprefix("aten.").partition(".")[0].rstrip("_")  # in-place operators have the same arguments
    if operator in ("nll_loss_forward", "nll_loss2d_forward"):
        yield args[1], args[0].shape[min(1, args[0].dim() - 1)], (args[4],)
    elif operator == "multi_margin_loss":
        yield args[1], args[0].shape[-1], ()
    elif operator in _ALONG_DIM:
        yield args[2], args[0].shape[args[1]] if args[0].dim() else 1, ()
    elif operator in ("embedding", "_embedding_bag", "_embedding_bag_forward_only"):
        yield args[1], args[0].shape[0], ()
    elif operator in ("take", "put"):
        yield args[1], args[0].numel(), ()
    elif operator in ("index", "index_put", "_unsafe_index", "_unsafe_index_put"):
        for dim, index in enumerate(args[1]):
            if index is not None and _whole(index):
                size = args[0].shape[dim]
                yield index, size, (-1, -size)  # negative values count from the end
