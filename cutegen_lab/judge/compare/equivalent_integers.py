"""Accepts integer results that are right although PyTorch's differ: another index among equal values, another integer
that rounding errors can lead to, and elements whose conversion is undefined.

A stable sort keeps the order of equal values. Otherwise PyTorch's own kernels choose differently among equal values,
and no order is guaranteed between values that differ only by rounding. So an index is compared through the value it
points at, and an integer that was made from a float is right if the rounding error of its row can lead to it.
Converting NaN or an out-of-range number to an integer is undefined in C++ and in PyTorch; such elements are not
compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from cutegen_lab.judge.rounding import tf32
from cutegen_lab.problems import Reference

# Position of the index among the results.
_INDEX_AT = {"argmax": 0, "argmin": 0, "max": 1, "min": 1, "topk": 1, "sort": 1}
# Position of ``dim`` among the arguments.
_DIM_AT = {"argmax": 1, "argmin": 1, "max": 1, "min": 1, "topk": 2, "sort": 1}
_ORDER_KEEPING = {"_to_copy", "view", "_unsafe_view", "reshape", "squeeze", "unsqueeze", "alias", "detach", "clone"}
_MARGIN = 4.0  # factor on the rounding error of a row's values
_TO_INTEGER = {"round", "floor", "ceil", "trunc"}
_MONOTONIC = _ORDER_KEEPING | {"clamp", "clamp_min", "clamp_max"}  # monotonic operators: the order of values is kept


@dataclass(frozen=True)
class _Choice:
    """A choice: ``index`` along ``dim`` of ``values`` (None: of all elements). ``ordered``: ties keep their order, as
    in a stable sort."""

    values: torch.Tensor
    dim: int | None
    index: torch.Tensor
    ordered: bool


class _ChoiceTracker(TorchDispatchMode):
    """Follows indices from where they are chosen, and integers from the floats they were converted from, to the
    results.

    ``before``: the ``sources`` of another, rounded run, from which the ``bounds`` of integers follow.
    """

    def __init__(self, before: Sequence[torch.Tensor] = ()) -> None:
        super().__init__()
        self.sources: list[torch.Tensor] = []  # floats that were converted to integers
        self.bounds: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._before = before
        self.choices: dict[int, _Choice] = {}
        self.undefined: dict[int, torch.Tensor] = {}
        self._kept: list[torch.Tensor] = []  # keeps tensors alive, so that ids stay unique

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        self._bound(func, name, result, args, kwargs or {})
        index = result if isinstance(result, torch.Tensor) else self._second(name, result)
        if name in _INDEX_AT and index is not None and index.dtype is torch.int64:
            dim = (kwargs or {}).get("dim", args[_DIM_AT[name]] if len(args) > _DIM_AT[name] else self._default(name))
            self.choices[self._id(index)] = _Choice(args[0], dim, index, bool((kwargs or {}).get("stable")))
        elif name in _ORDER_KEEPING and isinstance(result, torch.Tensor) and not result.is_floating_point():
            before = args[0]
            if id(before) in self.choices:
                self.choices[self._id(result)] = self.choices[id(before)]
            if id(before) in self.undefined:
                self.undefined[self._id(result)] = self.undefined[id(before)]
            elif before.is_floating_point() and result.dtype is not torch.bool:
                info = torch.iinfo(result.dtype)
                whole = before.trunc()  # the part that a conversion keeps: -0.5 becomes 0 in every type
                self.undefined[self._id(result)] = ~((whole >= info.min) & (whole <= info.max))
        return result

    def _bound(self, func: Any, name: str, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not isinstance(result, torch.Tensor) or not args or not isinstance(args[0], torch.Tensor):
            return
        source = args[0]
        whole = not result.is_floating_point() and result.dtype is not torch.bool
        if id(source) in self.bounds:
            if name in _MONOTONIC:
                low, high = (func(bound, *args[1:], **kwargs) for bound in self.bounds[id(source)])
                self.bounds[self._id(result)] = low, high
        elif source.is_floating_point() and (name in _TO_INTEGER or (name == "_to_copy" and whole)):
            self.sources.append(source)
            if len(self._before) >= len(self.sources):
                noise = _rounding_error(self._before[len(self.sources) - 1], source)
                low, high = (func(moved, *args[1:], **kwargs) for moved in (source - noise, source + noise))
                self.bounds[self._id(result)] = low, high

    @staticmethod
    def _second(name: str, result: Any) -> torch.Tensor | None:
        return result[1] if name in _INDEX_AT and isinstance(result, tuple) and len(result) == 2 else None

    @staticmethod
    def _default(name: str) -> int | None:
        return None if name in ("argmax", "argmin") else -1

    def _id(self, tensor: torch.Tensor) -> int:
        self._kept.append(tensor)
        return id(tensor)


def equivalent_integers(
    reference: Reference, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]
) -> list[torch.Tensor | None]:
    """For each output, the elements (flat) that are right because of the value they point at or the rounding errors of
    their row, or that are undefined; None if unknown."""
    with _ChoiceTracker() as rounded:
        own = tf32.torch_result(reference, inputs)
    with _ChoiceTracker(rounded.sources) as exact:
        wanted = reference.run_float64(inputs)
    found: list[torch.Tensor | None] = []
    for got, mine, want in zip(outputs, own, wanted, strict=True):
        masks = [
            watch.undefined[id(t)].reshape(-1)
            for watch, t in ((rounded, mine), (exact, want))
            if id(t) in watch.undefined
        ]
        if id(mine) in rounded.choices and id(want) in exact.choices:
            masks.append(_points_at_equal_value(got, rounded.choices[id(mine)], exact.choices[id(want)]))
        if id(want) in exact.bounds and not got.is_floating_point():
            low, high = (bound.reshape(-1) for bound in exact.bounds[id(want)])
            masks.append((got.reshape(-1) >= low) & (got.reshape(-1) <= high))
        found.append(torch.stack(masks).any(0) if masks and all(len(m) == got.numel() for m in masks) else None)
    return found


def _points_at_equal_value(got: torch.Tensor, own: _Choice, exact: _Choice) -> torch.Tensor:
    """Elements where ``got`` points at the chosen value, within the rounding error of that row."""
    values, rounded, dim = exact.values.double(), own.values.double(), exact.dim
    index, chosen = got.to(torch.int64).reshape(exact.index.shape), exact.index
    if dim is None or not values.dim():
        values, rounded, dim = values.reshape(-1), rounded.reshape(-1), 0
        index, chosen = index.reshape(1), chosen.reshape(1)
    if index.dim() < values.dim():
        index, chosen = index.unsqueeze(dim), chosen.unsqueeze(dim)
    inside = (index >= 0) & (index < values.shape[dim])
    mine, best = values.gather(dim, index.clamp(0, values.shape[dim] - 1)), values.gather(dim, chosen)
    noise = _rounding_error(rounded, values, dim)
    alike = (mine == best) | (mine.isnan() & best.isnan()) | ((mine - best).abs() <= noise)
    if exact.ordered:
        alike &= (index == chosen) | (noise > 0) | best.isnan()  # formulas differ in which elements are NaN
    ordered = index.sort(dim)[0]
    twice = (ordered.narrow(dim, 1, ordered.shape[dim] - 1) == ordered.narrow(dim, 0, ordered.shape[dim] - 1)).any(
        dim, True
    )
    return (inside & alike & ~twice).reshape(-1)


def _rounding_error(rounded: torch.Tensor, exact: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """Largest rounding error of ``exact`` along ``dim``, estimated from ``rounded``."""
    if rounded.shape != exact.shape:
        return torch.zeros_like(exact)
    apart = (rounded.double() - exact).abs().nan_to_num(0.0, 0.0, 0.0) * _MARGIN
    return apart.amax(dim, keepdim=True) if exact.dim() else apart
