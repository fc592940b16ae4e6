"""Integer results that are right although they are not PyTorch's: another index of a tie, and what is undefined.

PyTorch promises no order among equals (its own kernels differ from device to device), and none between values that
rounding decides. So an index is compared through the value it points at. Converting NaN, or a number out of range, to
an integer is undefined in C++ and in PyTorch; such elements are held against nobody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from cutegen_lab.judge import tf32
from cutegen_lab.problems import Reference

_INDEX_AT = {"argmax": 0, "argmin": 0, "max": 1, "min": 1, "topk": 1, "sort": 1}  # of the results, a tensor or several
_DIM_AT = {"argmax": 1, "argmin": 1, "max": 1, "min": 1, "topk": 2, "sort": 1}  # of the arguments
_SAME_ORDER = {"_to_copy", "view", "_unsafe_view", "reshape", "squeeze", "unsqueeze", "alias", "detach", "clone"}
_MARGIN = 4.0  # times what rounding did to the values of a row


@dataclass(frozen=True)
class _Choice:
    """Along ``dim`` of ``values`` (None: of all of them) ``index`` was chosen."""

    values: torch.Tensor
    dim: int | None
    index: torch.Tensor


class _Watch(TorchDispatchMode):
    """Follows indices from where they are chosen, and integers from the floats they are made of, to the results."""

    def __init__(self) -> None:
        super().__init__()
        self.choices: dict[int, _Choice] = {}
        self.undefined: dict[int, torch.Tensor] = {}
        self._kept: list[torch.Tensor] = []  # an id names one tensor only as long as that lives

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        index = result if isinstance(result, torch.Tensor) else self._second(name, result)
        if name in _INDEX_AT and index is not None and index.dtype is torch.int64:
            dim = (kwargs or {}).get("dim", args[_DIM_AT[name]] if len(args) > _DIM_AT[name] else self._default(name))
            self.choices[self._id(index)] = _Choice(args[0], dim, index)
        elif name in _SAME_ORDER and isinstance(result, torch.Tensor) and not result.is_floating_point():
            before = args[0]
            if id(before) in self.choices:
                self.choices[self._id(result)] = self.choices[id(before)]
            if id(before) in self.undefined:
                self.undefined[self._id(result)] = self.undefined[id(before)]
            elif before.is_floating_point() and result.dtype is not torch.bool:
                info = torch.iinfo(result.dtype)
                self.undefined[self._id(result)] = ~((before >= info.min) & (before <= info.max))
        return result

    @staticmethod
    def _second(name: str, result: Any) -> torch.Tensor | None:
        return result[1] if name in _INDEX_AT and isinstance(result, tuple) and len(result) == 2 else None

    @staticmethod
    def _default(name: str) -> int | None:
        return None if name in ("argmax", "argmin") else -1

    def _id(self, tensor: torch.Tensor) -> int:
        self._kept.append(tensor)
        return id(tensor)


def excused(
    reference: Reference, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]
) -> list[torch.Tensor | None]:
    """For each output the elements (flat) that are right by what they point at, or that nothing defines; None where
    nothing is known of it."""
    with _Watch() as rounded:
        own = tf32.own(reference, inputs)
    with _Watch() as exact:
        wanted = reference.run_float64(inputs)
    found: list[torch.Tensor | None] = []
    for got, mine, want in zip(outputs, own, wanted, strict=True):
        masks = [
            watch.undefined[id(t)].reshape(-1)
            for watch, t in ((rounded, mine), (exact, want))
            if id(t) in watch.undefined
        ]
        if id(mine) in rounded.choices and id(want) in exact.choices:
            masks.append(_as_good(got, rounded.choices[id(mine)], exact.choices[id(want)]))
        found.append(torch.stack(masks).any(0) if masks and all(len(m) == got.numel() for m in masks) else None)
    return found


def _as_good(got: torch.Tensor, own: _Choice, exact: _Choice) -> torch.Tensor:
    """Where ``got`` points at a value that is the chosen one, but for what rounding did to that row."""
    values, rounded, dim = exact.values.double(), own.values.double(), exact.dim
    index, chosen = got.to(torch.int64).reshape(exact.index.shape), exact.index
    if dim is None or not values.dim():
        values, rounded, dim = values.reshape(-1), rounded.reshape(-1), 0
        index, chosen = index.reshape(1), chosen.reshape(1)
    if index.dim() < values.dim():
        index, chosen = index.unsqueeze(dim), chosen.unsqueeze(dim)
    inside = (index >= 0) & (index < values.shape[dim])
    mine, best = values.gather(dim, index.clamp(0, values.shape[dim] - 1)), values.gather(dim, chosen)
    noise = (rounded - values).abs().nan_to_num(0.0, 0.0, 0.0).amax(dim, keepdim=True) * _MARGIN
    alike = (mine == best) | (mine.isnan() & best.isnan()) | ((mine - best).abs() <= noise)
    ordered = index.sort(dim)[0]
    twice = (ordered.narrow(dim, 1, ordered.shape[dim] - 1) == ordered.narrow(dim, 0, ordered.shape[dim] - 1)).any(
        dim, True
    )
    return (inside & alike & ~twice).reshape(-1)
