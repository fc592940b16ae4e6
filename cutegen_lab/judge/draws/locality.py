"""Inputs that may hold a few NaN or infinities: those whose single elements affect few results.

A NaN in a layer's bias affects one column of the output. In a bias added before a softmax it affects the whole output,
and such a draw would test nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

from cutegen_lab.core.problem import Workload
from cutegen_lab.judge.draws.broadcast import columns_of_smaller
from cutegen_lab.judge.draws.encounters import alike
from cutegen_lab.judge.draws.float_tensors import takes_non_finite

_MOST = 1 / 8  # largest fraction of an output that an input's first and last element may affect

Run = Callable[[Sequence[torch.Tensor]], tuple[torch.Tensor, ...] | None]


def local_inputs(run: Run, workload: Workload, make: Callable[[], Sequence[torch.Tensor]]) -> frozenset[int]:
    """Indices of the inputs whose first and last element affect at most an eighth of each output, found by running the
    reference ``run`` on the inputs of ``make``. Only inputs that may get non-finite numbers are tried."""
    asked = {*columns_of_smaller(workload), *(at for pair in alike(workload) for at in pair)}
    if not asked or not takes_non_finite(workload):
        return frozenset()
    inputs = make()
    usual = run(inputs)
    if usual is None:
        return frozenset()
    return frozenset(at for at in asked if _decides_little(run, inputs, usual, at))


def _decides_little(run: Run, inputs: Sequence[torch.Tensor], usual: Sequence[torch.Tensor], at: int) -> bool:
    changed = inputs[at].clone()
    for end in (0, -1):
        changed[(end,) * changed.dim()] = math.nan
    found = run([*inputs[:at], changed, *inputs[at + 1 :]])
    if found is None:
        return False
    shares = (_share(a.double(), b.double()) for a, b in zip(found, usual, strict=True))
    return all(share <= _MOST for share in shares)


def _share(found: torch.Tensor, usual: torch.Tensor) -> float:
    """Fraction of elements that differ."""
    differs = (found != usual) & ~(found.isnan() & usual.isnan())
    return float(differs.double().mean()) if differs.numel() else 0.0
