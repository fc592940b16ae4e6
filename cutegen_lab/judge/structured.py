"""Draws with structured magnitudes, orders and positions that a kernel with a shortcut does not expect.

For float tensors, within the range of their type. A shortcut depends on one of these: the spread of magnitudes
(half-precision parts, block scales), the order of values (sorted, clustered at the maximum), or where large values lie
(skipped tiles, low rank, a harmless beginning).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import TypeVar

import torch

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.judge.ends import FLOAT_ENDS, at_the_ends, with_infinite_rows
from cutegen_lab.judge.named import NAMED
from cutegen_lab.judge.patterns import MASKS, patterned
from cutegen_lab.judge.values import FEW_ROWS, between, dealt, rand, randn, standard
from cutegen_lab.problems.dtypes import TORCH

PATCHWORK, MOSAIC, PERIODIC = "patchwork", "mosaic", "periodic"
HIDDEN, HIDDEN_ABOVE = "hidden", "hidden above"  # by −∞, as a mask that is added does; by +∞, for who negates
SIZED = "of size "  # and a number: normal values of this size, which the schedule spreads from ``SIZES[0]`` up
SIZES = (1e-30, 1e-1)
SPECIALS = "specials"
SEVERAL = "several not finite"
ONE_SIDED = "one-sided"
CONSTANT = "constant rows"
FAR = "far from zero"
EXPONENTS = "all exponents"  # for references that add up nothing: squares and sums would overflow
_FAREST = 115.0  # powers of two: a thousand of such numbers can be added in fp32
_LARGEST = 40.0  # … whose squares are added
_WIDEST = 123.0  # … that can be multiplied by a few
_LEAST_OUTPUT = 64  # elements: fewer may all be not finite where one input element is not
_TIMES = (1, 2, 3, 4, 6, 8, 12, 16)
_TILE = 64  # columns that are hidden together at most
_SKIPPED = 0.2  # of rows with numbers that are not finite, a tile is zero
_PARTNERS = 8  # dimensions shorter than this are not graded against each other

Values = dict[int, torch.Tensor]  # by input
Size = TypeVar("Size", float, torch.Tensor)
_Draw = Callable[[Workload, torch.Generator], Values]


def _floats(workload: Workload) -> Iterator[tuple[int, TensorSpec]]:
    return ((at, spec) for at, spec in enumerate(workload.inputs) if spec.dtype.is_float and spec.numel)


def _one_of_the_largest(workload: Workload, g: torch.Generator) -> tuple[int, TensorSpec]:
    most = max(spec.numel for _, spec in _floats(workload))
    largest = [(at, spec) for at, spec in _floats(workload) if 2 * spec.numel >= most]
    return largest[_some(len(largest), g)]


def _mostly_last(spec: TensorSpec, share: float, g: torch.Generator) -> int:
    """The last dimension, in ``share`` of the draws or if there is no other; otherwise one of the others."""
    return -1 if len(spec.shape) < 2 or between(0, 1, g) < share else _some(len(spec.shape) - 1, g)


def _along_any(
    one: Callable[[torch.Tensor, TensorSpec, torch.Generator], torch.Tensor],
) -> Callable[[torch.Tensor, TensorSpec, torch.Generator], torch.Tensor]:
    """``one``, with rows along another dimension half of the time."""

    def turned(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
        dim = _mostly_last(spec, 0.5, g)
        if dim == -1:
            return one(values, spec, g)
        rows = values.transpose(dim, -1).contiguous()
        return one(rows, replace(spec, shape=tuple(rows.shape), strides=()), g).transpose(dim, -1).contiguous()

    return turned


def _by_tensor(one: Callable[[torch.Tensor, TensorSpec, torch.Generator], torch.Tensor]) -> _Draw:
    """``one`` changes the normal values of one input."""

    def drawn(workload: Workload, g: torch.Generator) -> Values:
        return {at: one(standard(spec.shape, g), spec, g) for at, spec in _floats(workload)}

    return drawn


def _reach(dtype: DType, wide: float) -> float:
    """Exponents up to ``wide``, or as far as a narrow type reaches."""
    return min(wide, 5.0) if dtype is DType.F16 or dtype.is_float8 else wide


def _fits(dtype: DType, decades: Size) -> Size:
    """Negative exponents of ten in the range of ``SIZES``; for a narrow type, as far down as it reaches."""
    if dtype is DType.F16:
        return decades * 0.22
    return decades * 0.05 if dtype.is_float8 else decades


def _at(tensor: torch.Tensor, dim: int, scale: torch.Tensor) -> torch.Tensor:
    """``tensor`` times ``scale`` along ``dim``."""
    return tensor * scale.view([-1 if d == dim else 1 for d in range(tensor.dim())])


def _some(count: int, g: torch.Generator) -> int:
    return int(torch.randint(count, (), generator=g))


def _ramp(size: int, reach: float, g: torch.Generator) -> torch.Tensor:
    """Exponents from -reach to reach over ``size`` places, ascending, descending or shuffled."""
    ramp = torch.linspace(-reach, reach, size)
    kind = _some(3, g)
    return (ramp, ramp.flip(0), ramp[torch.randperm(size, generator=g)])[kind]


def _partners(workload: Workload) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Pairs of dimensions of two inputs that are summed over together: of equal size, and in no output; each dimension
    once."""
    shown = {size for spec in workload.outputs for size in spec.shape}
    found: list[tuple[tuple[int, int], tuple[int, int]]] = []
    for (i, a), (j, b) in combinations(_floats(workload), 2):
        for m, size in enumerate(a.shape):
            taken = {place for pair in found for place in pair}
            if size >= _PARTNERS and size not in shown and (i, m) not in taken:
                places = [(j, n) for n, other in enumerate(b.shape) if other == size and (j, n) not in taken]
                found += [((i, m), place) for place in places[:1]]
    return found


def _graded(workload: Workload, g: torch.Generator) -> Values:
    """Magnitudes from 1e-8 to 1e8 along one dimension; the partner's in reverse, so that all products have the same
    size."""
    values = {at: standard(spec.shape, g) for at, spec in _floats(workload)}
    pairs = _partners(workload)
    for (i, m), (j, n) in pairs:
        reach = min(_reach(workload.inputs[at].dtype, 26.0) for at in (i, j))
        ramp = _ramp(workload.inputs[i].shape[m], reach, g)
        values[i], values[j] = _at(values[i], m, ramp.exp2()), _at(values[j], n, (-ramp).exp2())
    if not pairs:
        for at, spec in _floats(workload):
            if spec.shape:
                dim = _some(len(spec.shape), g)
                values[at] = _at(values[at], dim, _ramp(spec.shape[dim], _reach(spec.dtype, 26.0), g).exp2())
    return values


def _log_uniform(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """Magnitudes whose sum of squares stays far within fp32's range."""
    reach = _reach(spec.dtype, between(20, 45, g))
    return values.sign() * ((2 * rand(spec.shape, g) - 1) * reach).exp2()


def _heavy(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """One element, or one slice across a dimension, far above the others."""
    if not spec.shape:
        return values
    dim = _some(len(spec.shape), g)
    slab = values.select(dim, _some(spec.shape[dim], g))
    slab = slab.view(-1)[:1] if slab.is_contiguous() and between(0, 1, g) < 0.5 else slab
    slab *= 2 ** _reach(spec.dtype, 20.0)
    return values


def _sorted(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    return values.sort(-1, descending=between(0, 1, g) < 0.5)[0] if spec.shape else values


def _constant_rows(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """Constant rows, or constant blocks of the last two, three … dimensions."""
    if not spec.shape:
        return values
    first = values[(..., *(slice(1),) * (1 + _some(len(spec.shape), g)))]
    return first.expand_as(values).contiguous()


def _clustered(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """A quarter of each row lies just below its maximum."""
    if not spec.shape:
        return values
    near = values.amax(-1, keepdim=True) - rand(spec.shape, g) * 2**-7
    return torch.where(rand(spec.shape, g) < 0.25, near, values)


def _block_sparse(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """Square blocks of 8 to 64, three quarters of them zero."""
    side = 8 << _some(4, g)
    coarse = tuple(-(-size // side) for size in spec.shape)
    mask = (rand(coarse, g) < 0.25).float()
    for dim, size in enumerate(spec.shape):
        mask = mask.repeat_interleave(side, dim).narrow(dim, 0, size)
    return values * mask


def _low_rank(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """Rank one, plus a tail a thousandth as large."""
    if len(spec.shape) < 2:
        return values
    row = values[..., :1, :]
    column = values[..., :1]
    return row * column + values * 2**-10


def _loud_end(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """The last eighth along a dimension is far larger than the rest."""
    if spec.shape:
        dim = _some(len(spec.shape), g)
        size = spec.shape[dim]
        values.narrow(dim, size - max(size // 8, 1), max(size // 8, 1)).mul_(2 ** _reach(spec.dtype, 12.0))
    return values


def _sized(workload: Workload, decades: float, g: torch.Generator) -> Values:
    """The largest input holds small values: near an epsilon they show where it is added, and below it whether it is.
    The other inputs do half of the time."""
    values = {at: standard(spec.shape, g) for at, spec in _floats(workload)}
    largest = max(_floats(workload), key=lambda pair: pair[1].numel)[0]
    for at, spec in _floats(workload):
        if at == largest or between(0, 1, g) < 0.5:
            values[at] *= 10 ** _fits(spec.dtype, decades)
    return values


def _quiet_rows(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """Some rows far below the others, each of another size."""
    if len(spec.shape) < 2:
        return values
    where = (*spec.shape[:-1], 1)
    decades = torch.where(rand(where, g) < 0.5, rand(where, g) * math.log10(SIZES[0]), 0.0)
    return values * 10 ** _fits(spec.dtype, decades)


def _patchwork(workload: Workload, g: torch.Generator) -> Values:
    """One of the largest inputs holds rows of every kind: normal, large, tiny, zeros, mixed magnitudes, far from zero,
    sorted, with a loud end or one heavy number (with few rows, parts of rows). An eighth of the rows and columns also
    holds some non-finite numbers, with few rows in half of the draws only, since they may then hide all others. One
    draw with many kinds, for workloads that can afford few."""
    values = {at: standard(spec.shape, g) for at, spec in _floats(workload)}
    at, spec = _one_of_the_largest(workload, g)
    if not spec.shape:
        return values
    rows = values[at].reshape(-1, spec.shape[-1])
    count, length = rows.shape
    reach, column = _reach(spec.dtype, 13.0), torch.arange(length)
    mixed = (randn((count, length), g) * between(1, 3, g)).exp2()
    means = (30 + 170 * rand((count, 1), g)) * randn((count, 1), g).sign()
    heavy = column == torch.randint(length, (count, 1), generator=g)
    tiny = torch.as_tensor(10 ** _fits(spec.dtype, math.log10(SIZES[0]) * rand((count, 1), g)))
    late = column >= length - max(length // 8, 1)
    others: tuple[Callable[[torch.Tensor, torch.Tensor], torch.Tensor], ...] = (
        lambda given, some: given * 2**reach, lambda given, some: given * tiny[some], lambda given, some: given * 0,
        lambda given, some: given * mixed[some], lambda given, some: means[some] + given / 4,
        lambda given, some: given.sort(-1)[0], lambda given, some: torch.where(late, given * 2**reach, given),
        lambda given, some: torch.where(heavy[some], given * 2**reach, given),
    )  # fmt: skip
    rows = _dealt_out(rows, others, g)
    if takes_odd(workload) and (count >= FEW_ROWS or between(0, 1, g) < 0.5):
        some = torch.randperm(count, generator=g).repeat(-(-3 // count))[: max(count // 8, min(count // 2, 4), 3)]
        places = torch.randperm(length, generator=g)[: max(length // 8, 1)]
        odd = torch.tensor([math.nan, math.inf, -math.inf])
        rows[some, places[torch.randint(len(places), (len(some),), generator=g)]] = odd[torch.arange(len(some)) % 3]
    values[at] = rows.reshape(spec.shape)
    return values


def _one_sided(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """Rows of one sign, most far from zero: a maximum that starts at a number instead of −∞, or a mask that inserts
    one, is above the whole row."""
    where = (*spec.shape[:-1], 1) if spec.shape else ()
    reach = _reach(spec.dtype, between(30, 45, g))
    sign = torch.where(rand(where, g) < 0.5, -1.0, 1.0)
    return (values.abs() + 1) * sign * (rand(where, g) * reach).exp2()


def _far(workload: Workload, g: torch.Generator) -> Values:
    """Rows of one sign in one of the largest inputs, at every power of two whose sums stay finite: a maximum that
    starts at -1e20 is above some of them."""
    values = {at: standard(spec.shape, g) for at, spec in _floats(workload)}
    at, spec = _one_of_the_largest(workload, g)
    dim = _mostly_last(spec, 0.65, g)
    shape = spec.shape and values[at].transpose(dim, -1).shape
    count = math.prod(shape[:-1])
    most = min(math.log2(_info(spec.dtype).max) - 2, _FAREST)
    order = torch.randperm(count, generator=g)
    part = 1 - (order // 2 + rand((count,), g) / 5) / ((count + 1) // 2)  # all sizes of either sign
    sign = torch.where((order + _some(2, g)) % 2 == 0, -1.0, 1.0)
    scale = (sign * (most * part.sqrt()).exp2()).view(*shape[:-1], 1) if spec.shape else 1.0
    values[at] = ((values[at].reshape(shape).abs().clamp(max=3.0) + 1) * scale).transpose(dim, -1).contiguous()
    return values


def _hidden(workload: Workload, g: torch.Generator, value: float = -math.inf) -> Values:
    """One of the largest inputs is ``value`` where a mask hides it: tiles, beginnings, ends and single places of rows,
    or of lines along another dimension. None is hidden whole."""
    values = {at: standard(spec.shape, g) for at, spec in _floats(workload)}
    at, spec = _one_of_the_largest(workload, g)
    if not spec.shape or spec.dtype.is_float8:
        return values
    dim = _mostly_last(spec, 0.6, g)
    turned = values[at].transpose(dim, -1).contiguous()
    shape = tuple(turned.shape)
    place = (rand((*shape[:-1], 1), g) * shape[-1]).long()
    nothing = torch.zeros(shape, dtype=torch.bool)
    mask = patterned(shape, nothing, MASKS, HIDDEN, g, by_rows=True).scatter(-1, place, False)
    values[at] = turned.masked_fill(mask, value).transpose(dim, -1).contiguous()
    return values


def _mosaic(workload: Workload, g: torch.Generator) -> Values:
    """Row kinds that a patchwork lacks: constant, descending, of one sign and large, large of both signs, sparse,
    quantised, and near enough to zero to be centred; one row holds both infinities, one two NaN, an eighth of them −∞
    in a tile of columns, and an eighth of the columns −∞ in the first rows."""
    values = {at: standard(spec.shape, g) for at, spec in _floats(workload)}
    at, spec = _one_of_the_largest(workload, g)
    if not spec.shape:
        return values
    rows = values[at].reshape(-1, spec.shape[-1])
    count, length = rows.shape
    size = (_reach(spec.dtype, _LARGEST) * rand((count, 1), g).sqrt()).exp2()  # most of them near the largest
    mean = (3 + 27 * rand((count, 1), g)) * randn((count, 1), g).sign()
    kept = rand((count, length), g) < 0.03
    steps = (rows * 4).round() / 4
    others: tuple[Callable[[torch.Tensor, torch.Tensor], torch.Tensor], ...] = (
        lambda given, some: steps[some, :1].expand_as(given), lambda given, some: given.sort(-1, descending=True)[0],
        lambda given, some: (given.abs() + 1) * size[some], lambda given, some: -(given.abs() + 1) * size[some],
        lambda given, some: given * size[some], lambda given, some: torch.where(kept[some], given, 0.0),
        lambda given, some: steps[some], lambda given, some: mean[some] + given / 4,
    )  # fmt: skip
    rows = _dealt_out(rows, others, g)
    if takes_odd(workload) and count >= FEW_ROWS and length > 1:
        some = torch.randperm(count, generator=g)[:2]
        places = torch.randperm(length, generator=g)[:2]
        rows[some[0], places] = torch.tensor([math.inf, -math.inf])
        rows[some[1], places] = math.nan
        _hide_a_tile(rows, g)
    values[at] = rows.reshape(spec.shape)
    return values


def _hide_a_tile(rows: torch.Tensor, g: torch.Generator) -> None:
    """Writes −∞, as an additive mask does, into an eighth of the columns (at most 64) of a few ``rows`` [count,
    length]: into the first columns of some and elsewhere in others; and into the first rows of a few columns."""
    count, length = rows.shape
    if side := min(_TILE, length // 8):
        some = torch.randperm(count, generator=g)[: max(count // 8, 2)]
        first = side * _some(length // side, g)
        rows[some[::2], :side] = -math.inf
        rows[some[1::2], first : first + side] = -math.inf
    if side := min(_TILE, count // 8):
        rows[:side, torch.randperm(length, generator=g)[: max(length // 8, 1)]] = -math.inf


def _dealt_out(
    given: torch.Tensor, others: Sequence[Callable[[torch.Tensor, torch.Tensor], torch.Tensor]], g: torch.Generator
) -> torch.Tensor:
    """Rows as ``given``, or as one of ``others`` makes them from (rows, their numbers); with few rows, parts of
    rows."""
    count, length = given.shape
    kind, rows = dealt(len(others) + 1, count, length, g), given.clone()
    for number, changed in enumerate(others, 1):
        some = (kind == number).any(-1).nonzero()[:, 0]
        rows[some] = torch.where(kind[some] == number, changed(given[some], some), rows[some])
    return rows


def takes_odd(workload: Workload) -> bool:
    """Whether there are so many results that a few non-finite ones leave enough to compare."""
    return min((out.numel for out in workload.outputs), default=0) >= _LEAST_OUTPUT


def _all_exponents(workload: Workload, g: torch.Generator) -> Values:
    """Magnitudes of one of the largest inputs over all exponents, each equally likely."""
    values = {at: standard(spec.shape, g) for at, spec in _floats(workload)}
    at, spec = _one_of_the_largest(workload, g)
    reach = min(math.log2(_info(spec.dtype).max) - 2, _WIDEST)
    values[at] = values[at].sign() * ((2 * rand(spec.shape, g) - 1) * reach).exp2()
    return values


def _nearly(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """Rows that are sorted, constant, multiples of one row, or zero from some place on, except for a row or a few
    elements that a sample misses."""
    if not spec.shape:
        return values
    columns = torch.arange(spec.shape[-1])
    tail = columns < between(0, 1, g) * spec.shape[-1]
    kinds = (values.sort(-1)[0], values[..., :1].expand_as(values), _low_rank(values, spec, g), values * tail)
    by_row = between(0, 1, g) < 0.5
    where = (*spec.shape[:-1], 1) if by_row else spec.shape
    flat = rand(where, g).view(-1) < (2**-6 if by_row else 2**-8)
    flat[_some(flat.numel(), g)] = True
    return torch.where(flat.view(where), values * 8, kinds[_some(len(kinds), g)])


def _periodic(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """Deceives a kernel that looks at every second, fourth or eighth row or number: those rows hold sorted negative
    numbers and then zeros, those numbers of the other rows are sorted; between them, the largest of each row lie a
    number of places apart."""
    if not spec.shape:
        return values
    rows = values.reshape(-1, spec.shape[-1])
    count, length = rows.shape
    period, chosen = ((2, 1), (4, 2))[_some(2, g)]
    row, column = torch.arange(count)[:, None], torch.arange(length)
    apart = period * torch.tensor(_TIMES)[torch.randint(len(_TIMES), (count, 1), generator=g)]
    place = period * (rand((count, 1), g) * (apart // period)).long() + period - 1
    ordered = rows.sort(-1)[0]
    spread = torch.where(column % apart == place, rows.abs() + 4.0, rows)
    spread = torch.where(column % period < chosen, ordered, spread)
    quiet = torch.where(column <= between(0, 0.5, g) * length, -rows.abs().sort(-1, descending=True)[0], 0.0)
    alike = (row % period < chosen) & (count > 1)
    return torch.where(alike, quiet, spread).view(spec.shape)


def _sparse(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """A few numbers in a hundred are non-zero, at least one in each row: some rows have only one."""
    if not spec.shape:
        return values
    kept = rand(spec.shape, g) < between(0.0, 0.05, g)
    place = (rand((*spec.shape[:-1], 1), g) * spec.shape[-1]).long()
    return torch.where(kept.scatter(-1, place, True), values, 0.0)


def _quantised(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """Rows of integers, halves, quarters or eighths with many duplicates; non-negative half of the time."""
    steps = 2.0 ** torch.randint(4, (*spec.shape[:-1], 1) if spec.shape else (), generator=g)
    numbers = (values * between(1, 4, g) * steps).round() / steps
    return numbers.abs() if between(0, 1, g) < 0.5 else numbers


def _repeated(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """Most rows are copies of one of two, a few except for a number or two."""
    if len(spec.shape) < 2:
        return values
    rows = values.reshape(-1, spec.shape[-1])
    which = torch.randint(2, (rows.shape[0], 1), generator=g)
    alike = torch.where(which == 0, rows[:1], rows[-1:])
    differ = rand(tuple(rows.shape), g) < 1 / max(rows.shape[-1], 1)
    differ |= rand((rows.shape[0], 1), g) < 2**-4
    return torch.where(differ, rows, alike).view(spec.shape)


def _shares(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """Rows that sum to one, as a softmax produces."""
    return (values * between(0.25, 1, g)).softmax(-1) if spec.shape else values


def _specials(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """Zeros of either sign, subnormal numbers, and in a quarter of the draws a number of either sign at the limit of
    what can be squared, next to which all others vanish."""
    info = _info(spec.dtype)
    which = torch.randint(8, spec.shape, generator=g)
    tiny = values.clamp(-0.9, 0.9).double() * info.smallest_normal
    some = torch.where(which == 0, -0.0, torch.where(which == 1, 0.0, torch.where(which == 2, tiny, values.double())))
    flat, large = some.view(-1), min(info.max / 4, 2.0**55)
    if flat.numel() >= _LEAST_OUTPUT and between(0, 1, g) < 0.25:
        flat[torch.randint(flat.numel(), (2,), generator=g)] = torch.tensor([large, -large], dtype=torch.float64)
    return some


def _several(workload: Workload, g: torch.Generator) -> Values:
    """Several non-finite values in every input; in the largest whole rows of infinities, unless its rows are summed
    over together with another's (all would be NaN)."""
    values = _by_tensor(_some_not_finite)(workload, g)
    at, spec = max(_floats(workload), key=lambda pair: pair[1].numel)
    if spec.shape and not _partners(workload):
        with_infinite_rows(values[at].view(-1, spec.shape[-1]), g)
    return values


def _some_not_finite(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    """Several NaN and infinities of both signs, and zeros, which turn these into NaN; one row holds only two infinities
    of opposite signs, another two NaN, a third a NaN or an infinity at its end."""
    flat = values.view(-1)
    if flat.numel() < 8:
        return values
    rows = values.view(-1, spec.shape[-1])
    chosen, other = _some(rows.shape[0], g), _some(rows.shape[0], g)
    kept, many = rows[chosen].clone(), between(0, 1, g) < 0.7  # where they are few, a row may hold one alone
    count, zeros = 1 + many * (1 + flat.numel() // 512), between(0.1, 0.6, g)
    for value in (math.nan, math.inf, -math.inf):
        flat[torch.randint(flat.numel(), (count,), generator=g)] = value
    kept[torch.randint(kept.numel(), (2,), generator=g)] = torch.tensor([math.inf, -math.inf])
    rows[other, torch.randint(rows.shape[1], (2,), generator=g)] = math.nan
    rows[chosen] = kept
    if rows.shape[0] > 2:
        last = _some(rows.shape[0], g)
        rows[last] = torch.where(rows[last].isfinite(), rows[last], 0.0)
        rows[last, -1] = (math.nan, math.inf)[_some(2, g)]
    side = min(_TILE >> _some(4, g), rows.shape[1])  # a tile that whoever skips zeros skips
    skipped = rand((rows.shape[0], 1), g) < _SKIPPED
    tile = torch.arange(rows.shape[1]) // side == _some(-(-rows.shape[1] // side), g)
    rows.masked_fill_(skipped & tile, 0.0)
    return values.masked_fill_(values.isfinite() & (rand(spec.shape, g) < zeros), 0.0)


def _ends(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
    return at_the_ends(values, _info(spec.dtype), g)


def _info(dtype: DType) -> torch.finfo:
    """``finfo`` of at most 32 bits: doubles are drawn within the range of floats."""
    return torch.finfo(torch.float32 if dtype is DType.F64 else TORCH[dtype])


_DRAWS: Mapping[str, _Draw] = {
    "graded": _graded,
    "log-uniform": _by_tensor(_log_uniform),
    "heavy": _by_tensor(_heavy),
    "sorted": _by_tensor(_along_any(_sorted)),
    CONSTANT: _by_tensor(_along_any(_constant_rows)),
    "clustered": _by_tensor(_clustered),
    "block-sparse": _by_tensor(_block_sparse),
    "low rank": _by_tensor(_low_rank),
    "loud end": _by_tensor(_loud_end),
    "quiet rows": _by_tensor(_quiet_rows),
    "nearly": _by_tensor(_nearly),
    ONE_SIDED: _by_tensor(_along_any(_one_sided)),
    FAR: _far,
    EXPONENTS: _all_exponents,
    "sparse": _by_tensor(_sparse),
    "quantised": _by_tensor(_quantised),
    "repeated rows": _by_tensor(_repeated),
    "shares": _by_tensor(_shares),
    PERIODIC: _by_tensor(_periodic),
    SPECIALS: _by_tensor(_specials),
    SEVERAL: _several,
    FLOAT_ENDS: _by_tensor(_ends),
    PATCHWORK: _patchwork,
    MOSAIC: _mosaic,
    HIDDEN: _hidden,
    HIDDEN_ABOVE: partial(_hidden, value=math.inf),
}
EVERYWHERE = (PATCHWORK, PERIODIC)
_EACH_TIME = (*EVERYWHERE, MOSAIC, HIDDEN, HIDDEN_ABOVE, ONE_SIDED, FAR, EXPONENTS, SPECIALS, SEVERAL, FLOAT_ENDS)
STRUCTURED = tuple(name for name in _DRAWS if name not in _EACH_TIME)  # which are dealt out
# PyTorch itself may lose everything of an element of these.
EDGES = (SPECIALS, SEVERAL, PATCHWORK, MOSAIC, FAR, EXPONENTS, FLOAT_ENDS, NAMED)
# Magnitudes differ between rows or columns, and no row lies in a function's vanishing tail.
BY_SLICE = ("graded", "log-uniform", "heavy", "block-sparse", "low rank", "loud end", "quiet rows", PATCHWORK,
            MOSAIC, NAMED)  # fmt: skip


def structured(name: str, workload: Workload, generator: torch.Generator) -> Values | None:
    """Values of the float inputs by index, in float32 or float64; None if ``name`` is no structured draw."""
    if not any(True for _ in _floats(workload)):
        return None
    if name.startswith(SIZED):
        return _sized(workload, math.log10(float(name.removeprefix(SIZED))), generator)
    draw = _DRAWS.get(name)
    return None if draw is None else draw(workload, generator)
