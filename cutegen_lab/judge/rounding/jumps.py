"""Results on the other side of a jump (discontinuity): rounding errors of a correct kernel may change the result of a
comparison or of a rounding to an integer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from cutegen_lab.judge.rounding.noise import SeededNoise
from cutegen_lab.judge.rounding.operators import COMPARISONS

_TO_INTEGER = {"ceil", "floor", "round", "sign", "trunc"}
_TRUE_ABOVE = {"eq", "ge", "gt"}  # comparisons that are true if rounding moves the first number up
_MARGIN = 4.0  # factor on the largest rounding error of some runs


@dataclass(frozen=True)
class Jump:
    """An operator that jumps: its name, and how far each element is from the jump (a comparison) or from zero (a
    rounding), in float64."""

    name: str
    distance: torch.Tensor


class JumpRecorder(TorchDispatchMode):
    """Records the ``jumps`` of a run in order."""

    def __init__(self) -> None:
        super().__init__()
        self.jumps: list[Jump] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if (jump := jump_of(func.overloadpacket.__name__, args, result)) is not None:
            self.jumps.append(jump)
        return result


class Jumping(TorchDispatchMode):
    """Decides every jump whose distance is below its error in ``errors``: all to one ``side`` (1: up, −1: down), or
    each to either (0)."""

    def __init__(self, errors: Sequence[torch.Tensor], side: int, seed: int) -> None:
        super().__init__()
        self._errors, self._side, self._draw = iter(errors), side, SeededNoise(seed)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result, name = func(*args, **(kwargs or {})), func.overloadpacket.__name__
        jump = jump_of(name, args, result)
        error = None if jump is None else next(self._errors, None)
        if jump is None or error is None or error.shape != jump.distance.shape:
            return result
        up = self._draw.uniform(error) < (1 + self._side) / 2
        if name in COMPARISONS:
            undecided = (jump.distance.abs() <= error) & (error > 0)
            return torch.where(undecided, up == (name in _TRUE_ABOVE), result)
        other = func(args[0] + torch.where(up, error, -error), *args[1:], **(kwargs or {}))
        return torch.where(error > 0, other, result)


def rounding_errors(
    exact: Sequence[Jump], own: Sequence[Jump], rounded: Sequence[Sequence[Jump]]
) -> list[torch.Tensor]:
    """Largest honest error of each jump's distance, from PyTorch's ``own`` run and runs with other rounding; none if
    those ran other operators.

    Errors are those of the compared difference: a number chosen from those that it is compared with (the k-th largest
    of a row) shares their errors. A row that PyTorch computes exactly has one right rounding.
    """
    errors = [torch.zeros_like(jump.distance) for jump in exact]
    names = [(jump.name, jump.distance.shape) for jump in exact]
    for jumps in (own, *rounded):
        if [(jump.name, jump.distance.shape) for jump in jumps] != names:
            return []
        for error, jump, right in zip(errors, jumps, exact, strict=True):
            torch.maximum(error, _apart(jump, right).mul_(_MARGIN), out=error)
    for error, jump, right in zip(errors, own, exact, strict=True):
        if jump.name not in COMPARISONS and error.dim():
            error.mul_(_apart(jump, right).amax(-1, keepdim=True) > 0)
    return errors


def _apart(one: Jump, other: Jump) -> torch.Tensor:
    return (one.distance - other.distance).abs_().nan_to_num_(0.0, 0.0, 0.0)


def jump_of(name: str, args: Sequence[Any], result: Any) -> Jump | None:
    """The jump that operator ``name`` makes of ``args``; None if it makes none."""
    if not args or not isinstance(args[0], torch.Tensor) or not args[0].is_floating_point():
        return None
    if name in COMPARISONS:
        return Jump(name, (args[0].double() - args[1]).expand_as(result))
    to_integer = name == "_to_copy" and not result.is_floating_point() and result.dtype is not torch.bool
    return Jump(name, args[0].double()) if to_integer or name in _TO_INTEGER else None
