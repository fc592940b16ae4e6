"""Draws with structured magnitudes, orders and positions that a kernel with a shortcut does not expect.

For float tensors, within the range of their type. A shortcut depends on one of these: the spread of magnitudes
(half-precision parts, block scales), the order of values (sorted, clustered at the maximum), or where large values lie
(skipped tiles, low rank, only small values at the beginning).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

import torch

from cutegen_lab.core.problem import Workload
from cutegen_lab.judge.draws.arrangements import (
    block_sparse,
    clustered,
    constant_rows,
    low_rank,
    nearly_regular,
    periodic,
    quantised,
    repeated_rows,
    shares,
    sorted_rows,
    sparse,
)
from cutegen_lab.judge.draws.constants import Constants
from cutegen_lab.judge.draws.float_tensors import FloatDraw, Values, along_any, by_tensor, floats
from cutegen_lab.judge.draws.magnitudes import (
    all_exponents,
    far_from_zero,
    graded,
    heavy,
    log_uniform,
    loud_end,
    of_size,
    one_sided,
    quiet_rows,
)
from cutegen_lab.judge.draws.mixtures import mosaic, patchwork
from cutegen_lab.judge.draws.names import (
    CONSTANT_ROWS,
    EXPONENTS,
    FAR_FROM_ZERO,
    FLOAT_LIMITS,
    HIDDEN,
    HIDDEN_ABOVE,
    HIDDEN_ROWS,
    MIXED_ROWS,
    MOSAIC,
    NEAR_F16_LIMIT,
    OF_SIZE,
    ONE_SIDED,
    PATCHWORK,
    PERIODIC,
    SEVERAL_NOT_FINITE,
    SPECIALS,
)
from cutegen_lab.judge.draws.non_finite import float_limits, hidden, hidden_rows, several_not_finite, specials
from cutegen_lab.judge.draws.type_limits import near_f16_limit

_DRAWS: Mapping[str, FloatDraw] = {
    "graded": graded,
    "log-uniform": by_tensor(log_uniform),
    "heavy": by_tensor(heavy),
    "sorted": by_tensor(along_any(sorted_rows)),
    CONSTANT_ROWS: by_tensor(along_any(constant_rows)),
    "clustered": by_tensor(clustered),
    "block-sparse": by_tensor(block_sparse),
    "low rank": by_tensor(low_rank),
    "loud end": by_tensor(loud_end),
    "quiet rows": by_tensor(quiet_rows),
    "nearly": by_tensor(nearly_regular),
    ONE_SIDED: by_tensor(along_any(one_sided)),
    FAR_FROM_ZERO: far_from_zero,
    EXPONENTS: all_exponents,
    "sparse": by_tensor(sparse),
    "quantised": by_tensor(quantised),
    "repeated rows": by_tensor(repeated_rows),
    "shares": by_tensor(shares),
    PERIODIC: by_tensor(periodic),
    SPECIALS: by_tensor(specials),
    SEVERAL_NOT_FINITE: several_not_finite,
    FLOAT_LIMITS: by_tensor(float_limits),
    PATCHWORK: patchwork,
    MOSAIC: mosaic,
    HIDDEN: hidden,
    HIDDEN_ROWS: hidden_rows,
    NEAR_F16_LIMIT: by_tensor(near_f16_limit),
    HIDDEN_ABOVE: partial(hidden, value=math.inf),
}
_ALWAYS = (
    *MIXED_ROWS,
    MOSAIC,
    HIDDEN,
    HIDDEN_ABOVE,
    HIDDEN_ROWS,
    NEAR_F16_LIMIT,
    ONE_SIDED,
    FAR_FROM_ZERO,
    EXPONENTS,
    SPECIALS,
    SEVERAL_NOT_FINITE,
    FLOAT_LIMITS,
)
STRUCTURED = tuple(name for name in _DRAWS if name not in _ALWAYS)  # draws distributed among workloads


def structured(
    name: str, workload: Workload, generator: torch.Generator, named: Constants | None = None, turn: int | None = None,
    local: frozenset[int] = frozenset(),
) -> Values | None:  # fmt: skip
    """Values of the float inputs by index, in float32 or float64; None if ``name`` is no structured draw. ``named`` are
    constants for the draws in ``WITH_CONSTANTS``; ``turn`` and ``local`` are those of :func:`draw`."""
    if not any(True for _ in floats(workload)):
        return None
    if name.startswith(OF_SIZE):
        return of_size(workload, math.log10(float(name.removeprefix(OF_SIZE))), generator)
    if name == MOSAIC:
        return mosaic(workload, generator, named, turn, local)
    if name == PATCHWORK:
        return patchwork(workload, generator, turn)
    draw = _DRAWS.get(name)
    return None if draw is None else draw(workload, generator)
