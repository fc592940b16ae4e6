"""What rounding does to a reference: run in float64 with every result moved at random, as a shorter mantissa would.

Monte Carlo arithmetic (D. S. Parker, 1997): where terms cancel, the last bits of inputs and of intermediate results
decide much of the answer, and a limit that ignored it would reject honest kernels by luck.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from cutegen_lab.core.dtypes import DType
from cutegen_lab.problems import Reference

UNIT: Mapping[DType, float] = {DType.F64: 2.0**-53, DType.F32: 2.0**-24, DType.F16: 2.0**-11, DType.BF16: 2.0**-8}
SAMPLES = 3
EXACT_INTEGERS = float(1 << 24)  # float32 holds every integer up to here

# Operators that round nothing: they choose, copy, compare or change a sign.
_CHOOSE = {
    "_to_copy", "_unsafe_index", "abs", "amax", "amin", "arange", "argmax", "argmin", "cat", "ceil", "clamp",
    "clamp_max", "clamp_min", "clone", "constant_pad_nd", "copy", "cummax", "cummin", "diagonal_copy", "embedding",
    "empty", "empty_like", "eye", "fill", "flip", "floor", "fmax", "fmin", "full", "full_like", "gather", "index",
    "index_put", "index_select", "kthvalue", "lift_fresh_copy", "masked_fill", "max", "max_pool2d_with_indices",
    "maximum", "median", "min", "minimum", "nan_to_num", "neg", "new_empty", "new_full", "new_ones", "new_zeros",
    "ones", "ones_like", "permute_copy", "relu", "repeat", "roll", "round", "scalar_tensor", "scatter", "sign",
    "slice_scatter", "sort", "stack", "topk", "tril", "triu", "trunc", "where", "zeros", "zeros_like",
}  # fmt: skip
# Operators whose results are integers where their operands are, whatever the order of summation.
_SUMS = {
    "add",
    "addmm",
    "addmv",
    "baddbmm",
    "bmm",
    "convolution",
    "cumsum",
    "dot",
    "mm",
    "mul",
    "mv",
    "sub",
    "sum",
    "rsub",
}


class _Moved(TorchDispatchMode):
    """Every float64 result that an operator rounds is multiplied by 1 ± up to ``unit``."""

    def __init__(self, unit: float, seed: int) -> None:
        super().__init__()
        self._unit, self._seed = unit, seed
        self._generators: dict[torch.device, torch.Generator] = {}

    def moved(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.dtype is not torch.float64:
            return value
        noise = torch.rand(
            value.shape, generator=self._generator(value.device), dtype=torch.float64, device=value.device
        )
        return noise.mul_(2 * self._unit).add_(1 - self._unit).mul_(value)

    def _generator(self, device: torch.device) -> torch.Generator:
        if device not in self._generators:
            self._generators[device] = torch.Generator(device).manual_seed(self._seed)
        return self._generators[device]

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__ in _CHOOSE or _aliases(func):
            return result
        return tree_map(self.moved, result)


class _Watched(TorchDispatchMode):
    """Whether everything computed was a sum of products of integers that float32 holds."""

    def __init__(self) -> None:
        super().__init__()
        self.exact = True

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        known = func.overloadpacket.__name__.rstrip("_") in _CHOOSE | _SUMS or _aliases(func)
        self.exact = self.exact and known
        tree_map(self._look, result)
        return result

    def _look(self, value: Any) -> None:
        if self.exact and isinstance(value, torch.Tensor) and value.is_floating_point():
            self.exact = bool(((value == value.round()) & (value.abs() <= EXACT_INTEGERS)).all())


def moved(reference: Reference, inputs: Sequence[torch.Tensor], unit: float, seed: int) -> tuple[torch.Tensor, ...]:
    """The float64 reference with inputs and intermediate results rounded to ``unit``, at random."""
    mode = _Moved(unit, seed)
    shaken = [mode.moved(t.double()) if t.is_floating_point() else t for t in inputs]
    with mode:
        return reference.run_float64(shaken)


def samples(reference: Reference, inputs: Sequence[torch.Tensor], seed: int) -> list[tuple[torch.Tensor, ...]]:
    """Several such runs, at the precision kernels compute in: float32, or float64 where an input is."""
    unit = UNIT[DType.F64] if any(t.dtype is torch.float64 for t in inputs) else UNIT[DType.F32]
    return [moved(reference, inputs, unit, seed ^ (index + 1)) for index in range(SAMPLES)]


def watched(run: Callable[[], tuple[torch.Tensor, ...]]) -> tuple[tuple[torch.Tensor, ...], bool]:
    """``run()`` and whether all it computed was sums of products of integers: then every order of summing is exact."""
    mode = _Watched()
    with mode:
        result = run()
    return result, mode.exact


def _aliases(func: Any) -> bool:
    return any(r.alias_info is not None for r in func._schema.returns)
