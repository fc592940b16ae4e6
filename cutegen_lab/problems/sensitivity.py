"""Finds inputs on which a reference's answer hardly depends: a kernel that does not read them passes, so its time means
little."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.problems import rules
from cutegen_lab.problems.dtypes import TORCH
from cutegen_lab.problems.probes import TRIVIAL
from cutegen_lab.problems.tensors import placed

Run = Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]]  # the reference in float64
_SCALES = (1.0, 8.0)  # scales of normal values: an input is insensitive if it has no effect at either
_PART = 0.5  # fraction of a machine epsilon of the output's dtype that counts as a change
_MOST_BYTES = 1 << 22  # maximum bytes of a workload that is tested
_FEW_BYTES = 0.01  # parameters below this fraction of all inputs' bytes are not tested
_MOST_SECONDS = 2.0
_SMALL_INTEGERS = 8  # upper bound of drawn integers that are not indices


def insensitive(main: Workload, arguments: int, derived: Sequence[Workload], run: Run) -> tuple[str, ...]:
    """Names of the floating-point inputs without effect: other values change no output by more than its dtype's
    rounding, on each of ``derived`` (except trivial ones) and, if it is small, on ``main``.

    A change counts if it exceeds half a machine epsilon, relative to an element or to the output's root mean square if
    that is larger. Inputs from index ``arguments`` on are parameters; small ones (a bias before a norm) are not tested,
    since a kernel that skips them saves nothing. Empty if the reference raises, or if the test takes more than
    ``_MOST_SECONDS``.
    """
    asked = [w for w in (*derived, main) if w.name not in TRIVIAL and w.nbytes <= _MOST_BYTES]
    deadline = time.monotonic() + _MOST_SECONDS
    few = _FEW_BYTES * sum(spec.nbytes for spec in main.inputs)
    counts = [spec.dtype.is_float and (at < arguments or spec.nbytes > few) for at, spec in enumerate(main.inputs)]
    left = {at for at, count in enumerate(counts) if count and asked}
    for workload in sorted(asked, key=lambda w: w.nbytes):
        for scale in _SCALES:
            try:
                left = {at for at in left if time.monotonic() < deadline and not _affects(workload, at, scale, run)}
            except Exception:  # a reference may refuse values in any way it likes
                return ()
            if not left or time.monotonic() > deadline:
                return ()
    return tuple(main.inputs[at].name for at in sorted(left))


def _affects(workload: Workload, at: int, scale: float, run: Run) -> bool:
    """Whether new values of input number ``at`` change the answer."""
    inputs = [_drawn(spec, number, scale) for number, spec in enumerate(workload.inputs)]
    before = run(inputs)
    inputs[at] = _drawn(workload.inputs[at], len(inputs) + at, scale)
    after = run(inputs)
    return any(_shows(b, a, spec.dtype) for b, a, spec in zip(before, after, workload.outputs, strict=True))


def _shows(before: torch.Tensor, after: torch.Tensor, dtype: DType) -> bool:
    if not dtype.is_float:
        return not torch.equal(before, after)
    before, after = before.double(), after.double()
    if not torch.equal(before.isfinite(), after.isfinite()):
        return True
    before, after = (t.nan_to_num(0.0, 0.0, 0.0) for t in (before, after))
    largest = before.abs().maximum(before.square().mean().sqrt())
    return bool(((after - before).abs() > _PART * dtype.eps * largest).any())


def _drawn(spec: TensorSpec, seed: int, scale: float) -> torch.Tensor:
    """Random values for ``spec``: floats (as float64) are normal; integers and indices follow their rules."""
    generator = torch.Generator().manual_seed(seed)
    if spec.rule:
        return placed(rules.sample(spec).to(TORCH[spec.dtype]), spec)
    if spec.dtype.is_float:
        values = torch.randn(spec.shape, generator=generator).mul_(scale).to(TORCH[spec.dtype])
    else:
        below = 2 if spec.dtype is DType.BOOL else spec.below or _SMALL_INTEGERS
        values = torch.randint(0, below, spec.shape, generator=generator).to(TORCH[spec.dtype])
    return placed(values, spec)
