"""Draws inputs: fresh values every time, from distributions that expose different mistakes.

Scale and mean of each draw follow from its secret seed, so that a kernel cannot recognise a distribution by its
moments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import torch

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.judge.ends import FLOAT_ENDS
from cutegen_lab.judge.named import NAMED, Named, drawn
from cutegen_lab.judge.patterns import COUNT, INDICES, LENGTHS, MASKS, PATTERN, Kind, patterned
from cutegen_lab.judge.ruled import ruled
from cutegen_lab.judge.structured import (
    EVERYWHERE,
    EXPONENTS,
    FAR,
    HIDDEN,
    HIDDEN_ABOVE,
    MOSAIC,
    ONE_SIDED,
    PATCHWORK,
    PERIODIC,
    SEVERAL,
    SIZED,
    SIZES,
    SPECIALS,
    STRUCTURED,
    structured,
)  # fmt: skip
from cutegen_lab.judge.values import TILE, Shape, between, normal, place_of_one, rand, randn, standard
from cutegen_lab.problems.dtypes import TORCH
from cutegen_lab.problems.tensors import laid_out, placed

Draw = Callable[[Shape, torch.Generator], torch.Tensor]
LARGE = 1e4
FULL_RANGE = "full integers"
INTEGER_ENDS = "integer ends"  # the smallest and largest of the type, and what is next to them
ENDS_BUT_LEAST = "integer ends but the least"  # … where its absolute value, which no type holds, would matter
LOG_INTEGERS = "log-uniform integers"
ROW_INTEGERS = "integers of a row's size"  # whose halves, bytes and carries decide, whatever the size
MULTIPLES = "multiples"  # … of another input, and what lies next to them: quotients at a whole number
OVERFLOWING = (FULL_RANGE, INTEGER_ENDS, LOG_INTEGERS, ROW_INTEGERS, MULTIPLES)
WIDE_RANGE = "wide integers"  # the widest whose sums, over any dimension, stay within 32 bits


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
    values = standard(shape, g)
    return values.mul_(randn(shape, g).mul_(between(1, 3, g)).exp2_())


def _bits(shape: Shape, g: torch.Generator) -> torch.Tensor:
    return (rand(shape, g) < between(0.3, 0.7, g)).float()


def _zeros(shape: Shape, g: torch.Generator) -> torch.Tensor:
    return torch.zeros(shape)


def _holding(value: float) -> Draw:
    """Normal values with one ``value`` among them, of either sign (except NaN: PyTorch sorts a negative one first on a
    GPU, last on a CPU)."""

    def draw_one(shape: Shape, g: torch.Generator) -> torch.Tensor:
        values = standard(shape, g)
        if values.numel():
            at = place_of_one(shape, g)
            sign = between(-1, 1, g)
            values.view(-1)[at] = value if math.isnan(value) and g.device.type != "cpu" else math.copysign(value, sign)
        return values

    return draw_one


# In this order, where not every one is affordable; a workload's first is always normal.
DISTRIBUTIONS: Mapping[str, Draw] = {
    "normal": standard,
    "large": _large,  # overflow without max-subtraction
    "zeros": _zeros,
    "nan": _holding(math.nan),
    "bits": _bits,  # 0 and 1: sums of products are exact, and compared exactly
    "uniform": _uniform,
    "offset": _offset,  # variance by cancellation shows here
    "offset below": _offset_below,
    "infinity": _holding(math.inf),
    "tiny": _tiny,  # an epsilon in the wrong place shows here
    "mixed": _mixed,  # many magnitudes side by side
}
NOT_FINITE = ("nan", "infinity", SEVERAL, PATCHWORK, MOSAIC, HIDDEN, HIDDEN_ABOVE)
ESSENTIAL = ("large", "zeros", "nan", "infinity")  # no workload is judged without these
# Of fp32 inputs beyond what fp16 holds: its 10 bits of mantissa are TF32's too, and where that will do, nothing else
# tells them apart.
BEYOND_F16: Mapping[str, Draw] = {
    "huge": lambda shape, g: normal(2 ** between(20, 24, g), 0.0, shape, g),
    "minute": lambda shape, g: normal(2 ** -between(30, 40, g), 0.0, shape, g),
}
AROUND = "around "  # and a number: normal values with this mean, which the schedule spreads over ±``AROUND_UP_TO``,
AROUND_UP_TO, AROUND_NEAR = 50.0, 24.0  # evenly up to ``AROUND_NEAR``, and beyond it a third as densely
AROUND_COUNT = 3  # a workload …
AROUND_MANY = 22  # … and a small one, which costs little, but has enough elements for a mean to be told from noise
_NEAR_PART = 8 / 11  # of the means
_SMALL = (64, 2048)  # elements of its largest input
_HELD = {"nan": math.nan, "zeros": 0.0}  # of an infinite parameter formulas that are right make NaN, or none
_ODD_PARAMETERS = 0.5  # of the draws of such a number, a parameter too has one
_STRUCTURED_EACH = 7 * len(STRUCTURED) // 10
_SIZES_EACH, _SIZES_SMALL = 2, 3  # a workload, and a small one
_AS_THEY_COME = ("normal", "bits", "zeros")  # draws whose masks and indices have no pattern, nor …
_NUMBERS_AS_THEY_COME = (*_AS_THEY_COME, *OVERFLOWING, ENDS_BUT_LEAST, WIDE_RANGE)  # … other integers
_AS_FLOATS = ("bits", "zeros", NAMED, FLOAT_ENDS)  # draws whose doubles are what they are
_LENGTHS_BELOW = 1000
_OF_ALL_SIZES = (INTEGER_ENDS, ENDS_BUT_LEAST, LOG_INTEGERS, ROW_INTEGERS, MULTIPLES)
_MOST_QUOTIENT = 32
_AT_THE_END = 0.3  # of the rows of a size, those that reach to their type's end
_PATTERNS_STEP = 4
_PATTERNS_EACH = 7  # of masks and indices, where no input is a float; else each draw takes one by chance
_STEP = 5  # from one workload's first to the next one's: every kind comes on several workloads
_INTEGER_RANGE = {DType.I64: 1000, DType.I32: 1000, DType.I16: 1000, DType.I8: 100, DType.U8: 256, DType.BOOL: 2}
_SIGNED = (DType.I64, DType.I32, DType.I16, DType.I8)


def distributions(
    workload: Workload, turn: int = 0, turns: int = 1, secret: float = 0.0, tf32: bool = False
) -> tuple[str, ...]:
    """Names of the draws that are useful for ``workload``, most useful first; the first is always normal. ``tf32``: its
    products may use TF32.

    ``turn`` of ``turns`` counts workloads, and ``secret`` (0 to 1) belongs to the trial. Means of normal values are
    spread evenly over a whole trial, and again over each small workload, so that a kernel that is wrong only for some
    means meets one, however few draws its larger workloads can afford. Each workload gets seven tenths of the
    structured draws, and all that are about a type's limits, signs and non-finite values.
    """
    kinds = [spec.dtype for spec in workload.inputs]
    whole = [*OVERFLOWING] if any(not d.is_float and d is not DType.BOOL for d in kinds) else []
    if not any(d.is_float for d in kinds):
        number = int(secret * COUNT) + turn * _PATTERNS_STEP
        patterns = [f"{PATTERN}{(number + i) % COUNT}" for i in range(_PATTERNS_EACH)]
        return "normal", PATCHWORK, *whole, NAMED, "bits", "zeros", *patterns
    small = _SMALL[0] <= max(spec.numel for spec in workload.inputs) <= _SMALL[1]
    count = AROUND_MANY if small else AROUND_COUNT
    parts = [(secret + (i + turn / turns) / count) % 1 for i in range(count)]
    around = [f"{AROUND}{_mean(2 * part - 1):.4g}" for part in parts]
    sized = _sizes_of(_SIZES_SMALL if small else _SIZES_EACH, secret, turn / turns)
    beyond = [*BEYOND_F16] if tf32 else []
    first = int(secret * len(STRUCTURED)) + turn * _STEP
    dealt = [STRUCTURED[(first + i) % len(STRUCTURED)] for i in range(_STRUCTURED_EACH)]
    others = [name for name in DISTRIBUTIONS if name not in ("normal", *ESSENTIAL)]
    telling = ("normal", PATCHWORK, MOSAIC, *ESSENTIAL, *whole, *beyond, PERIODIC, NAMED, ONE_SIDED, FAR, HIDDEN)
    telling = (*telling, HIDDEN_ABOVE, EXPONENTS, SEVERAL, SPECIALS, FLOAT_ENDS)
    return *telling, *dealt, *sized, *around, *others


def _mean(part: float) -> float:
    """Mean for a position from -1 to 1 in the range of all means."""
    beyond = max(abs(part) - _NEAR_PART, 0.0) / (1 - _NEAR_PART)
    near = min(abs(part) / _NEAR_PART, 1.0)
    return math.copysign(AROUND_NEAR * near + (AROUND_UP_TO - AROUND_NEAR) * beyond, part)


def _sizes_of(count: int, secret: float, turn: float) -> list[str]:
    """Scales of small values, spread evenly over their decades and over a whole trial: around the square root of each
    common epsilon."""
    low, high = map(math.log10, SIZES)
    parts = [(secret + (i + turn) / count) % 1 for i in range(count)]
    return [f"{SIZED}{10 ** (low + (high - low) * part):.3g}" for part in parts]


def draw(
    workload: Workload, distribution: str, seed: int, initial: Mapping[str, torch.Tensor] | None = None,
    where: str = "cpu", named: Named | None = None,
) -> list[torch.Tensor]:  # fmt: skip
    """Tensors for every input of ``workload``, in its layouts, on the torch device ``where``. Values depend only on
    (distribution, seed) and the kind of device: a GPU's generator gives other numbers than a CPU's.

    ``initial`` are a Model's parameters and buffers. On normal values and half of the other draws they stay near their
    own values but never equal them, so that a weight of one or a bias of zero cannot be skipped; on the rest they are
    as training may leave them: of either sign (except variances) and other sizes. ``named`` numbers are drawn in the
    draw of that name. Doubles are not representable as floats: a kernel that reads them as such is off by 2^-26.
    """
    with torch.device(where):
        generator = torch.Generator(where).manual_seed(seed)
        values_of = structured(distribution, workload, generator) or {}
        tensors = []
        for at, spec in enumerate(workload.inputs):
            if initial and spec.name in initial and spec.dtype.is_float:
                value = _fitted(initial[spec.name].to(where), spec.shape)
                near = distribution == "normal" or between(0, 1, generator) < 0.5
                values = (_near if near else _trained)(value, spec, generator).to(TORCH[spec.dtype])
                if distribution in _HELD and values.numel() and between(0, 1, generator) < _ODD_PARAMETERS:
                    values.view(-1)[place_of_one(spec.shape, generator)] = _HELD[distribution]
            elif at in values_of:
                values = values_of[at].to(TORCH[spec.dtype])
            elif distribution == NAMED and (some := _named(spec, named, generator, workload)) is not None:
                values = some
            else:
                values = _draw_one(spec, distribution, generator, workload)
            if spec.dtype is DType.F64 and distribution not in _AS_FLOATS:
                values = values.double() * (1 + between(0.25, 0.5, generator) * 2**-24)
            tensors.append(placed(values, spec))
        if distribution == MULTIPLES:
            tensors = _multiples(tensors, workload, generator)
        return ruled(tensors, workload, generator)


def _named(
    spec: TensorSpec, named: Named | None, generator: torch.Generator, workload: Workload
) -> torch.Tensor | None:
    if named is None or spec.dtype is DType.BOOL:
        return None
    most = 0 if spec.dtype.is_float else _integers(spec.dtype, WIDE_RANGE, terms(workload))[1] - 1
    return drawn(spec, named, generator, most)


def _near(value: torch.Tensor, spec: TensorSpec, generator: torch.Generator) -> torch.Tensor:
    noise = torch.rand((2, *spec.shape), generator=generator)
    return value * (1 + 0.1 * noise[0]) + 0.1 * noise[1]


def _trained(value: torch.Tensor, spec: TensorSpec, generator: torch.Generator) -> torch.Tensor:
    """Scaled by a factor from -2 to 2, with normal noise of its own size added; variances are scaled by powers of
    two."""
    noise = torch.randn(spec.shape, generator=generator)
    if "var" in spec.name:
        return value.abs() * (3 * noise.clamp(-2, 2)).exp2()
    size = float(value.double().square().mean().sqrt()) or 0.5
    return value * between(-2, 2, generator) + size * noise


def _fitted(value: torch.Tensor, shape: Shape) -> torch.Tensor:
    """``value`` in another workload's shape: repeated or truncated."""
    repeats = [-(-size // have) for size, have in zip(shape, value.shape, strict=True)]
    return value.repeat(repeats)[tuple(slice(size) for size in shape)] if value.dim() else value


def fill(workload: Workload, seed: int) -> list[torch.Tensor]:
    """Normal values for timing: one random tile repeated, gaps included; only the kind of values matters, and
    generating them is slow."""
    generator = torch.Generator().manual_seed(seed)
    tensors = []
    for spec in workload.inputs:
        one = replace(spec, shape=(min(spec.cosize, TILE),), strides=())
        tile = _draw_one(one, "normal", generator, workload)
        repeats = -(-spec.cosize // max(tile.numel(), 1))
        tensors.append(laid_out(tile if repeats == 1 else tile.repeat(repeats)[: spec.cosize], spec))
    return ruled(tensors, workload, generator)


def terms(workload: Workload) -> int:
    """Most terms that an output element may sum: the longest dimension, or the product of all the others."""
    sizes = [(max(t.shape), t.numel) for t in workload.tensors if t.numel and t.shape]
    return max((max(longest, numel // longest) for longest, numel in sizes), default=1)


def _draw_one(spec: TensorSpec, distribution: str, generator: torch.Generator, workload: Workload) -> torch.Tensor:
    if spec.dtype.is_float:
        if distribution.startswith(AROUND):
            mean = float(distribution.removeprefix(AROUND))
            values = normal(2 ** between(-2, 2, generator), mean, spec.shape, generator)
        else:
            wide = BEYOND_F16 if spec.dtype is DType.F32 else {}
            values = {**DISTRIBUTIONS, **wide}.get(distribution, standard)(spec.shape, generator)
        return values.to(TORCH[spec.dtype])
    if distribution in _OF_ALL_SIZES and spec.dtype is not DType.BOOL and not spec.below:
        return _extreme(spec, distribution, generator)
    values, kinds, below, others = _whole(spec, distribution, generator, workload)
    if distribution not in (_AS_THEY_COME if spec.below or spec.dtype is DType.BOOL else _NUMBERS_AS_THEY_COME):
        by_rows = distribution in EVERYWHERE
        values = patterned(spec.shape, values, kinds, distribution, generator, by_rows, below, others)
    floats = any(one.dtype.is_float for one in workload.inputs)
    if distribution == PATCHWORK and spec.dtype in _SIGNED and spec.shape and not spec.below and not floats:
        values = torch.where(_some_rows(spec, generator), ~values.abs(), values)  # nothing of a row is a zero or more
    return values.to(TORCH[spec.dtype])


def _whole(
    spec: TensorSpec, distribution: str, generator: torch.Generator, workload: Workload
) -> tuple[torch.Tensor, Sequence[Kind], int, tuple[int, ...]]:
    """Values without a pattern, the possible patterns, and the numbers they choose from: 0 upwards, and others."""
    if spec.below:
        return _indices(spec, distribution, generator), INDICES, spec.below, spec.beside
    low, high = _integers(spec.dtype, distribution, terms(workload))
    values = torch.randint(low, high, spec.shape, generator=generator)
    if spec.dtype is DType.BOOL:
        return values.bool(), MASKS, 2, ()
    if distribution == PATCHWORK and spec.shape and not any(one.dtype.is_float for one in workload.inputs):
        low, high = _integers(spec.dtype, WIDE_RANGE, terms(workload))
        wide = torch.rand((*spec.shape[:-1], 1), generator=generator) < 0.5
        values = torch.where(wide, torch.randint(low, high, spec.shape, generator=generator), values)
    return values, LENGTHS, min(high, _LENGTHS_BELOW), _sizes(spec, workload)


def _some_rows(spec: TensorSpec, generator: torch.Generator) -> torch.Tensor:
    return torch.rand((*spec.shape[:-1], 1), generator=generator) < 0.25


def _sizes(spec: TensorSpec, workload: Workload) -> tuple[int, ...]:
    """Values for a length: 0, 1, the size of any dimension here, and their neighbours."""
    most = torch.iinfo(TORCH[spec.dtype]).max
    sizes = {size for one in workload.tensors for size in one.shape}
    return tuple(sorted({n for size in sizes for n in (0, 1, size - 1, size) if n <= most} | {0, 1}))


def _extreme(spec: TensorSpec, distribution: str, generator: torch.Generator) -> torch.Tensor:
    """Integers of every magnitude, or at the limits of their type and around zero."""
    info = torch.iinfo(TORCH[spec.dtype])
    if distribution in (INTEGER_ENDS, ENDS_BUT_LEAST):
        least = info.min + (distribution == ENDS_BUT_LEAST and info.min < 0)
        ends = torch.tensor([least, info.min + 1, info.max - 1, info.max, 0, 1, max(info.min, -1)])
        return ends[torch.randint(len(ends), spec.shape, generator=generator)].to(TORCH[spec.dtype])
    if distribution == ROW_INTEGERS:
        return _of_a_rows_size(spec, info, generator)
    bits = torch.rand(spec.shape, generator=generator) * (info.bits - 1 - (info.min < 0))
    sizes = bits.double().exp2().to(torch.int64)
    negative = torch.rand(spec.shape, generator=generator) < (0.5 if info.min < 0 else 0.0)
    return torch.where(negative, -sizes, sizes).to(TORCH[spec.dtype])


def _of_a_rows_size(spec: TensorSpec, info: torch.iinfo, generator: torch.Generator) -> torch.Tensor:
    """Rows of numbers below a power of two, or of one sign just below it; one row holds only the type's limit."""
    where, signed = (*spec.shape[:-1], 1) if spec.shape else (), info.min < 0
    largest = info.bits - signed
    bits = torch.randint(1, largest + 1, where, generator=generator)
    bits = torch.where(torch.rand(where, generator=generator) < _AT_THE_END, largest, bits)
    most = bits.double().exp2()
    part = torch.rand(spec.shape, generator=generator).double()
    narrow = torch.rand(where, generator=generator) < 0.5
    sizes = (torch.where(narrow, 1 - part / 8, part) * most * (1 - 2**-24)).to(torch.int64)
    negative = torch.rand(where, generator=generator) < 0.5
    negative = torch.where(narrow, negative, torch.rand(spec.shape, generator=generator) < 0.5)
    sizes = torch.where(negative & signed, -sizes, sizes)
    rows = sizes.view(-1, sizes.shape[-1] if spec.shape else 1)
    ends = (info.max, -info.max if signed else info.max)
    rows[int(torch.randint(len(rows), (), generator=generator))] = ends[int(torch.randint(2, (), generator=generator))]
    return sizes.to(TORCH[spec.dtype])


def _multiples(tensors: list[torch.Tensor], workload: Workload, generator: torch.Generator) -> list[torch.Tensor]:
    """Makes one of two integer inputs of equal shape a small multiple of the other, or a neighbour of one, if the type
    holds it."""
    whole = [at for at, spec in enumerate(workload.inputs) if spec.dtype in _INTEGER_RANGE and not spec.below
             and spec.dtype is not DType.BOOL]  # fmt: skip
    pairs = [(i, j) for i in whole for j in whole if i != j and tensors[i].shape == tensors[j].shape]
    if not pairs:
        return tensors
    at, of = pairs[int(torch.randint(len(pairs), (), generator=generator))]
    info, shape = torch.iinfo(tensors[at].dtype), tuple(tensors[at].shape)
    factor = torch.randint(-_MOST_QUOTIENT, _MOST_QUOTIENT + 1, shape, generator=generator)
    beside = torch.randint(-1, 2, shape, generator=generator)
    exact = tensors[of].double() * factor
    fits = (exact > info.min / 2) & (exact < info.max / 2)
    near = (tensors[of].long() * factor + beside).clamp(max(info.min, -(1 << 62)), min(info.max, 1 << 62))
    changed = torch.where(fits, near, tensors[at].long()).to(tensors[at].dtype)
    return [*tensors[:at], placed(changed, workload.inputs[at]), *tensors[at + 1 :]]


def _indices(spec: TensorSpec, distribution: str, generator: torch.Generator) -> torch.Tensor:
    """Integers within their range, some of them among the values allowed outside it."""
    high = {"zeros": 1, "bits": min(2, spec.below)}.get(distribution, spec.below)
    values = torch.randint(high, spec.shape, generator=generator)
    if spec.beside and distribution not in ("zeros", "bits"):
        chosen = torch.randint(len(spec.beside), spec.shape, generator=generator)
        rare = torch.rand(spec.shape, generator=generator) < between(0, 0.3, generator)
        values = torch.where(rare, torch.tensor(spec.beside)[chosen], values)
    return values


def _integers(dtype: DType, distribution: str, most_terms: int) -> tuple[int, int]:
    """Range [low, high) of an integer input."""
    if distribution == "zeros":
        return 0, 1
    if distribution == "bits" or dtype is DType.BOOL:
        return 0, 2
    if distribution == WIDE_RANGE and dtype is DType.I32:
        high = (1 << 31) // max(most_terms, 1)
        return -high, high
    if distribution in (FULL_RANGE, WIDE_RANGE):  # but for the ends, whose negative or absolute value does not exist
        whole = torch.iinfo(TORCH[dtype])
        return (whole.min + 2, whole.max - 1) if dtype in _SIGNED else (0, whole.max + 1)
    high = _INTEGER_RANGE[dtype]
    return -high if dtype in _SIGNED else 0, high
