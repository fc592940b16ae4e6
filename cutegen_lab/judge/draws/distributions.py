"""Unstructured distributions of floats, and the choice of the draws of each workload."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import Workload
from cutegen_lab.judge.draws.float_tensors import SIZES, maskable, takes_non_finite
from cutegen_lab.judge.draws.names import (
    ALL_TRUE,
    AROUND,
    CONSTANTS,
    ESSENTIAL,
    EXPONENTS,
    FAR_FROM_ZERO,
    FLOAT_LIMITS,
    HIDDEN,
    HIDDEN_ABOVE,
    HIDDEN_ROWS,
    MOSAIC,
    NEAR_F16_LIMIT,
    OF_SIZE,
    ONE_SIDED,
    OVERFLOWING,
    PATCHWORK,
    PATTERN,
    PERIODIC,
    SEVERAL_NOT_FINITE,
    SPECIALS,
)
from cutegen_lab.judge.draws.patterns import PATTERN_COUNT
from cutegen_lab.judge.draws.structured import STRUCTURED
from cutegen_lab.judge.draws.values import Shape, between, moderate_normal, normal, rand, randn, random_position

Draw = Callable[[Shape, torch.Generator], torch.Tensor]
LARGE = 1e4


def _uniform(shape: Shape, g: torch.Generator) -> torch.Tensor:
    low, width = between(0, 2, g), 2 ** between(-2, 2, g)
    return rand(shape, g).mul_(width).add_(low)


def _offset(shape: Shape, g: torch.Generator) -> torch.Tensor:
    return normal(2 ** between(-1, 1, g), between(50, 200, g), shape, g)


def _offset_below(shape: Shape, g: torch.Generator) -> torch.Tensor:
    return -_offset(shape, g)


def _large(shape: Shape, g: torch.Generator) -> torch.Tensor:
    return normal(LARGE * between(0.5, 1, g), 0.0, shape, g)


def _tiny(shape: Shape, g: torch.Generator) -> torch.Tensor:
    return normal(10 ** between(-4, -2, g), 0.0, shape, g)


def _mixed(shape: Shape, g: torch.Generator) -> torch.Tensor:
    values = moderate_normal(shape, g)
    return values.mul_(randn(shape, g).mul_(between(1, 3, g)).exp2_())


def _bits(shape: Shape, g: torch.Generator) -> torch.Tensor:
    return (rand(shape, g) < between(0.3, 0.7, g)).float()


def _zeros(shape: Shape, g: torch.Generator) -> torch.Tensor:
    return torch.zeros(shape)


def _with_one(value: float) -> Draw:
    """Normal values with one ``value`` among them, of either sign (NaN only on a CPU: on a GPU PyTorch sorts a negative
    NaN first)."""

    def draw_one(shape: Shape, g: torch.Generator) -> torch.Tensor:
        values = moderate_normal(shape, g)
        if values.numel():
            at = random_position(shape, g)
            sign = between(-1, 1, g)
            values.view(-1)[at] = value if math.isnan(value) and g.device.type != "cpu" else math.copysign(value, sign)
        return values

    return draw_one


# In order of priority; the first draw of a workload is always normal.
DISTRIBUTIONS: Mapping[str, Draw] = {
    "normal": moderate_normal,
    "large": _large,  # overflows without max-subtraction
    "zeros": _zeros,
    "nan": _with_one(math.nan),
    "bits": _bits,  # 0 and 1: sums of products are exact, and compared exactly
    "uniform": _uniform,
    "offset": _offset,  # exposes a variance computed by cancellation
    "offset below": _offset_below,
    "infinity": _with_one(math.inf),
    "tiny": _tiny,  # exposes an epsilon in the wrong place
    "mixed": _mixed,  # many magnitudes in one row
}
# fp32 inputs outside fp16's range. fp16 has as many mantissa bits as TF32, so only the range distinguishes a kernel
# that computes in fp16 where TF32 is allowed.
BEYOND_F16: Mapping[str, Draw] = {
    "huge": lambda shape, g: normal(2 ** between(20, 24, g), 0.0, shape, g),
    "minute": lambda shape, g: normal(2 ** -between(30, 40, g), 0.0, shape, g),
}
AROUND_UP_TO, AROUND_NEAR = 50.0, 24.0  # largest means: evenly spread up to ``AROUND_NEAR``, a third as densely beyond
AROUND_COUNT = 3  # number of means in a large workload
# Number of means in a small workload: it is cheap, and has enough elements to tell a mean from noise.
AROUND_MANY = 22
_NEAR_PART = 8 / 11  # share of the means up to ``AROUND_NEAR``
_SMALL = (64, 2048)  # minimum and maximum number of elements of a small workload's largest input
_STRUCTURED_EACH = 7 * len(STRUCTURED) // 10
_SIZES_EACH, _SIZES_SMALL = 2, 3  # number of sizes in a large workload, and in a small one
_PATTERNS_STEP = 4
# Number of patterns of masks and indices for a workload without floats; with floats each draw takes a random one.
_PATTERNS_EACH = 7
_STEP = 5  # offset between consecutive workloads, so that every kind is drawn on several of them


def distributions(
    workload: Workload, turn: int = 0, turns: int = 1, secret: float = 0.0, tf32: bool = False
) -> tuple[str, ...]:
    """Names of the draws that are useful for ``workload``, most useful first; the first is always normal. ``tf32``: its
    products may use TF32.

    ``turn``: number of the workload, of ``turns``. ``secret``: a random number of the trial, from 0 to 1. Means of
    normal values are spread evenly over a whole trial, and again over each small workload, so that a kernel that is
    wrong only for some means is tested with one of these, however few draws its larger workloads can afford. Each
    workload gets seven tenths of the structured draws, and all draws of a type's limits, signs and non-finite values.
    """
    kinds = [spec.dtype for spec in workload.inputs]
    whole = [*OVERFLOWING] if any(not d.is_float and d is not DType.BOOL for d in kinds) else []
    if not any(d.is_float for d in kinds):
        number = int(secret * PATTERN_COUNT) + turn * _PATTERNS_STEP
        patterns = [f"{PATTERN}{(number + i) % PATTERN_COUNT}" for i in range(_PATTERNS_EACH)]
        few = [] if takes_non_finite(workload) else [ALL_TRUE]
        return tuple(dict.fromkeys(("normal", PATCHWORK, *whole, *few, CONSTANTS, "bits", "zeros", *patterns)))
    small = _SMALL[0] <= max(spec.numel for spec in workload.inputs) <= _SMALL[1]
    count = AROUND_MANY if small else AROUND_COUNT
    parts = [(secret + (i + turn / turns) / count) % 1 for i in range(count)]
    around = [f"{AROUND}{_mean(2 * part - 1):.4g}" for part in parts]
    sized = _sizes_of(_SIZES_SMALL if small else _SIZES_EACH, secret, turn / turns)
    beyond = [*BEYOND_F16] if tf32 else []
    first = int(secret * len(STRUCTURED)) + turn * _STEP
    dealt = [STRUCTURED[(first + i) % len(STRUCTURED)] for i in range(_STRUCTURED_EACH)]
    others = [name for name in DISTRIBUTIONS if name not in ("normal", *ESSENTIAL)]
    early = ("normal", PATCHWORK, MOSAIC, *ESSENTIAL, *whole, *beyond, PERIODIC, CONSTANTS, ONE_SIDED, FAR_FROM_ZERO)
    rows = [HIDDEN_ROWS] if maskable(workload) else []
    halves = [NEAR_F16_LIMIT] if DType.F16 in kinds else []
    always = (*early, *rows, *halves, HIDDEN, HIDDEN_ABOVE, EXPONENTS, SEVERAL_NOT_FINITE, SPECIALS, FLOAT_LIMITS)
    return *always, *dealt, *sized, *around, *others


def _mean(part: float) -> float:
    """Maps ``part`` (-1 to 1) to a mean within ±``AROUND_UP_TO``."""
    beyond = max(abs(part) - _NEAR_PART, 0.0) / (1 - _NEAR_PART)
    near = min(abs(part) / _NEAR_PART, 1.0)
    return math.copysign(AROUND_NEAR * near + (AROUND_UP_TO - AROUND_NEAR) * beyond, part)


def _sizes_of(count: int, secret: float, turn: float) -> list[str]:
    """Scales of small values, log-uniform over ``SIZES`` and stratified over a trial, so that some lie near the square
    root of every common epsilon."""
    low, high = map(math.log10, SIZES)
    parts = [(secret + (i + turn) / count) % 1 for i in range(count)]
    return [f"{OF_SIZE}{10 ** (low + (high - low) * part):.3g}" for part in parts]
