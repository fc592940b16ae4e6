"""Effect of rounding on a reference: run in float64 with every result perturbed at random, as a shorter mantissa would.

Monte Carlo arithmetic (D. S. Parker, 1997): where terms cancel, the last bits of inputs and intermediate results decide
much of the answer, and a limit that ignored it would reject honest kernels by luck.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.weak import WeakTensorKeyDictionary

from cutegen_lab.core.dtypes import DType
from cutegen_lab.judge import tf32
from cutegen_lab.problems import Reference
from cutegen_lab.problems.attention import attention

UNIT: Mapping[DType, float] = {DType.F64: 2.0**-53, DType.F32: 2.0**-24, DType.F16: 2.0**-11, DType.BF16: 2.0**-8}
SAMPLES, MORE_SAMPLES = 3, 12  # of few results none may be as unlucky as a kernel's
_FEW = 4096
_RAISED = (None, 0.0, 0.5)  # powers of two of a row's largest share, in turns
EXACT_INTEGERS = float(1 << 24)  # float32 holds every integer up to here
_PARTIAL = 64  # of a product's partial sums, how many are looked at
_TERMS = 1024  # of a sum's terms, how many are looked at for equal ones

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
# Operators that compare: what they read is what was given.
_COMPARE = {
    "eq", "ge", "gt", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "le", "lt", "ne", "signbit",
}  # fmt: skip
_EXACT = _CHOOSE | _COMPARE
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


# Operators that give NaN where PyTorch gives an infinity in no formula that is right.
_PLAIN = _CHOOSE | {"add", "cumsum", "div", "mul", "rsub", "sub", "sum"}
# … and that do so where nothing is a sum (a norm may be scaled by its largest term, which is infinite).
_PLAIN_ALONE = _PLAIN | {"reciprocal", "rsqrt", "sqrt"}
# … and functions of one number that lose what vanishes in some formula, but no infinity.
_INFINITE_ALONE = _PLAIN_ALONE | {
    "elu", "exp", "exp2", "expm1", "gelu", "hardswish", "leaky_relu", "log", "log10", "log1p", "log2", "mish", "silu",
    "softplus", "square",
}  # fmt: skip
# Operators of which every operand matters: a product with zero is NaN where the other factor is NaN or infinite.
_STRICT = {
    "_to_copy", "add", "addmm", "addmv", "baddbmm", "bmm", "cat", "clone", "div", "dot", "embedding", "flip", "gather",
    "index", "index_select", "mean", "mm", "mul", "mv", "neg", "permute_copy", "repeat", "rsub", "stack", "sub", "sum",
}  # fmt: skip
# Operators of one element each that lose nothing relative to it.
_RELATIVE = {
    "_softmax", "_to_copy", "abs", "clone", "div", "exp", "exp2", "mul", "neg", "pow", "reciprocal", "rsqrt", "sqrt",
    "square",
}  # fmt: skip
# Operators of several steps, which are taken one by one.
_IN_PARTS = {
    "_fused_rms_norm", "_log_softmax", "_native_batch_norm_legit", "_softmax", "gelu", "logsumexp", "native_batch_norm",
    "native_group_norm", "native_layer_norm", "silu",
}  # fmt: skip


def _var_mean(
    x: torch.Tensor, dim: Sequence[int] | bool | None = None, unbiased: bool = True, keepdim: bool = False, *,
    correction: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """``aten.var_mean`` for the arguments of any overload: ``dim`` may be ``unbiased``."""
    if isinstance(dim, bool):
        unbiased = dim
    dims = list(range(x.dim())) if isinstance(dim, bool) or not dim else list(dim)
    mean = x.mean(dims, keepdim=True)
    count = x.numel() / max(mean.numel(), 1) - (float(unbiased) if correction is None else correction)
    centred = x - mean
    return (centred * centred).sum(dims, keepdim=keepdim) / max(count, 0), x.mean(dims, keepdim=keepdim)


def _std_mean(*args: Any, **kwargs: Any) -> tuple[torch.Tensor, torch.Tensor]:
    variance, mean = _var_mean(*args, **kwargs)
    return variance.sqrt(), mean


def _vector_norm(
    x: torch.Tensor, order: float = 2, dim: Sequence[int] | int | None = None, keepdim: bool = False, *,
    dtype: torch.dtype | None = None,
) -> torch.Tensor:  # fmt: skip
    """``aten.linalg_vector_norm``; of one number PyTorch takes the magnitude, where a formula squares it."""
    x = (x if dtype is None else x.to(dtype)).abs()
    dims = list(range(x.dim())) if dim is None else dim
    if math.isinf(order):
        return x.amax(dims, keepdim) if order > 0 else x.amin(dims, keepdim)
    if order == 0:
        return (x != 0).sum(dims, keepdim).to(x.dtype)
    if order == 2:
        return (x * x).sum(dims, keepdim).sqrt()
    return (x**order).sum(dims, keepdim) ** (1 / order)


_PARTS: Mapping[str, Callable[..., Any]] = {
    "linalg_vector_norm": _vector_norm,
    "var_mean": _var_mean,
    "std_mean": _std_mean,
    "var": lambda *args, **kwargs: _var_mean(*args, **kwargs)[0],
    "std": lambda *args, **kwargs: _var_mean(*args, **kwargs)[0].sqrt(),
}


def _partial_products(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """For each element of ``a[…, M, K] @ b[…, K, N]``: Σ S² of its K partial sums S (of ``_PARTIAL`` of them at most),
    times the number of equal terms as in :func:`_partial_sums`."""
    k = a.shape[-1]
    step = max(-(-k // _PARTIAL), 1)
    total = squares = torch.zeros(*a.shape[:-1], b.shape[-1], dtype=torch.float64, device=a.device)
    for first in range(0, k, step):
        some = slice(first, min(first + step, k))
        total = total + a[..., some].double() @ b[..., some, :].double()
        squares = squares + total * total * (some.stop - some.start)
    if k < 2:
        return squares
    alike = _equal_terms(a.double())[..., :, None] * _equal_terms(b.double().mT)[..., None, :] / k
    return squares * alike.clamp_min(1.0)


def _partial_sums(x: torch.Tensor, dim: Sequence[int] | int | None = None, *_: Any, **__: Any) -> torch.Tensor:
    """For each element of ``x.sum(dim)``: Σ S² of its partial sums S, times how often the same number is added: while
    equal terms are added, each addition rounds in the same direction."""
    dims = [dim] if isinstance(dim, int) else list(dim or range(x.dim()))
    inner = x.double().movedim(dims, list(range(-len(dims), 0))).flatten(-len(dims)) if dims else x.double()[..., None]
    return inner.cumsum(-1).square().sum(-1) * _equal_terms(inner)


def _equal_terms(terms: torch.Tensor) -> torch.Tensor:
    """Mean number of the last axis' terms that are equal to one of them, without zeros (which round nothing); estimated
    from at most ``_TERMS`` random ones."""
    count = terms.shape[-1]
    if count < 2:
        return torch.ones((), dtype=terms.dtype, device=terms.device)
    generator = torch.Generator(terms.device).manual_seed(count)
    some = min(count, _TERMS)
    chosen = torch.randperm(count, generator=generator, device=terms.device)[:some]
    ordered = terms[..., chosen].sort(-1).values.contiguous()
    first = torch.searchsorted(ordered, ordered)
    last = torch.searchsorted(ordered, ordered, right=True)
    others = ((last - first - 1).clamp_min(0) * (ordered != 0)).to(terms.dtype).mean(-1)  # NaN equals nothing
    return 1 + others * ((count - 1) / (some - 1))


def _partial_means(x: torch.Tensor, dim: Sequence[int] | int | None = None, *_: Any, **__: Any) -> torch.Tensor:
    squares = _partial_sums(x, dim)
    return squares / (x.numel() / max(squares.numel(), 1)) ** 2


def _partial_scattered(
    base: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, *_: Any, **__: Any
) -> torch.Tensor:
    """For each element of ``base.scatter_add(dim, index, source)``: Σ S² of its partial sums S. ``index`` has the shape
    of the part of ``source`` that is used, or one dimension as in ``index_add``."""
    if index.dim() < source.dim():
        index = index.view([-1 if d == dim % source.dim() else 1 for d in range(source.dim())]).expand_as(source)
    taken = source[tuple(map(slice, index.shape))].double().movedim(dim, -1)
    places, order = index.movedim(dim, -1).sort(dim=-1, stable=True)
    terms = taken.gather(-1, order)
    run = terms.cumsum(-1)
    partial = run - (run - terms).gather(-1, torch.searchsorted(places.contiguous(), places.contiguous()))
    squares = torch.zeros_like(base, dtype=torch.float64).movedim(dim, -1)
    return squares.scatter_add(-1, places, partial.square()).movedim(-1, dim)


# Σ S² over the partial sums S of an operator's results: added one after another, each is rounded.
_WALKS: Mapping[str, Callable[..., torch.Tensor]] = {
    "mm": _partial_products,
    "bmm": _partial_products,
    "addmm": lambda bias, a, b, **_: _partial_products(a, b),
    "baddbmm": lambda bias, a, b, **_: _partial_products(a, b),
    "mv": lambda a, x: _partial_products(a, x[:, None]),
    "addmv": lambda bias, a, x, **_: _partial_products(a, x[:, None]),
    "dot": lambda a, b: _partial_products(a[None], b[:, None]),
    "sum": _partial_sums,
    "mean": _partial_means,
    "index_add": _partial_scattered,
    "scatter_add": _partial_scattered,
}


_Factor = tuple[torch.Tensor | float, int]  # and 1, or −1 of a divisor
_MANY_FACTORS = 8  # beyond, a product is one factor: a loop's would be looked through anew with every step
_FAR_BELOW = 4096.0


def _running_ranges(x: torch.Tensor, dim: int, **_: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """For each element of ``x.cumprod(dim)``: exponents of two of the largest and smallest product of consecutive
    factors before it, since scans multiply blocks first."""
    after = _powers(x).cumsum(dim)
    before = after - _powers(x)
    largest = (after - before.cummin(dim).values).cummax(dim).values
    smallest = (after - before.cummax(dim).values).cummin(dim).values
    return largest, smallest


def _ranges(
    x: torch.Tensor, dim: int | None = None, keepdim: bool = False, **_: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """For each element of ``x.prod(dim)``: the same over products of any of its factors, since each thread multiplies
    its own."""
    dims, powers = list(range(x.dim())) if dim is None else [dim], _powers(x)
    return powers.clamp_min(0).sum(dims, keepdim), powers.clamp_max(0).sum(dims, keepdim)


def _factor_ranges(factors: Sequence[_Factor]) -> tuple[torch.Tensor, torch.Tensor]:
    """The same for a product of whole tensors and divisors. A factor that is zero or infinite decides it whatever the
    others are."""
    powers = [sign * _powers(torch.as_tensor(of), 0.0) for of, sign in factors]
    zeros = torch.zeros((), dtype=torch.float64)
    return sum((p.clamp_min(0) for p in powers), zeros), sum((p.clamp_max(0) for p in powers), zeros)


def _powers(x: torch.Tensor, of_zero: float = -_FAR_BELOW) -> torch.Tensor:
    """Exponents of two; zeros are below all others, and non-finite values are left out."""
    return x.double().abs().log2().nan_to_num(0.0, 0.0, of_zero)


_RANGES: Mapping[str, Callable[..., tuple[torch.Tensor, torch.Tensor]]] = {"cumprod": _running_ranges, "prod": _ranges}
_PRODUCTS = {"mm": 0, "bmm": 0, "addmm": 1, "baddbmm": 1}  # and which argument is the first factor
_EIGHT_BITS, _A_STEP = 2.0**-13, 32  # of the largest product what is kept of the others; how many are added at a time


class _Draw:
    """Random numbers from one seed, on the device of the tensor they are for."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._generators: dict[torch.device, torch.Generator] = {}

    def uniform(self, like: torch.Tensor) -> torch.Tensor:
        """Float64 over [0, 1) in the shape of ``like``."""
        if like.device not in self._generators:
            self._generators[like.device] = torch.Generator(like.device).manual_seed(self._seed)
        generator = self._generators[like.device]
        return torch.rand(like.shape, generator=generator, dtype=torch.float64, device=like.device)


class _Moved(TorchDispatchMode):
    """Multiplies every rounded float64 result of an operator by 1 ± up to ``unit``, and flushes to 0 what float32 would
    hold as a subnormal, as many instructions do (PTX ISA, ``.ftz``).

    So are values inside norms and the like, which kernels round too, and ``inputs`` and values chosen from them
    wherever an operator computes with them, since kernels scale them or add them in another order. Choices, copies and
    comparisons are exact: nothing excuses a ``>=`` for a ``>``. A product of three or more factors (or divisors) is NaN
    if a product of some of them overflows, or vanishes although the whole does not: which are multiplied first is free.
    """

    def __init__(self, unit: float, seed: int, inputs: Sequence[torch.Tensor]) -> None:
        super().__init__()
        self._unit, self._draw = unit, _Draw(seed)
        self._info = torch.finfo(torch.float64 if unit == UNIT[DType.F64] else torch.float32)
        self._least = self._info.tiny
        self._shaken: WeakTensorKeyDictionary[torch.Tensor] = WeakTensorKeyDictionary()  # beside what is exact
        self._factors: WeakTensorKeyDictionary[list[_Factor]] = WeakTensorKeyDictionary()  # of products
        for tensor in inputs:
            if tensor.dtype is torch.float64:
                self._shaken[tensor] = self._moved(tensor)

    def _moved(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.dtype is not torch.float64:
            return value
        noise = self._draw.uniform(value)
        found = noise.mul_(2 * self._unit).add_(1 - self._unit).mul_(value)
        return found.mul_(~(found.abs() < self._least))  # a zero keeps its sign

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name, given = func.overloadpacket.__name__, (args, kwargs or {})
        parts = _PARTS.get(name) or (decomposition_table.get(func) if name in _IN_PARTS else None)
        if parts is not None:
            with self:
                return parts(*args, **(kwargs or {}))
        exact = name in _EXACT or _aliases(func)
        others, kwothers = tree_map(self._other, given)
        if not exact or (func._schema.is_mutable and args[0] not in self._shaken):
            result = func(*others, **kwothers)
            if name in _RANGES:
                return self._grouped(self._moved(result), *_RANGES[name](*others, **kwothers))
            if name in ("mul", "div") and not kwothers and result.dtype is torch.float64:
                return self._multiplied(self._moved(result), others[0], others[1], 1 if name == "mul" else -1)
            return result if exact else tree_map(self._moved, result)
        result = func(*args, **(kwargs or {}))
        pairs = zip(tree_leaves(given), tree_leaves((others, kwothers)), strict=True)
        if name not in _COMPARE and any(one is not other for one, other in pairs):
            for chosen, other in zip(*map(tree_leaves, (result, func(*others, **kwothers))), strict=True):
                if isinstance(chosen, torch.Tensor) and chosen.dtype is torch.float64:
                    self._shaken[chosen] = other
        return result

    def _multiplied(
        self, result: torch.Tensor, one: torch.Tensor | float, other: torch.Tensor | float, sign: int
    ) -> torch.Tensor:
        factors = [*self._factors_of(one), *((of, power * sign) for of, power in self._factors_of(other))]
        grouped = result if len(factors) < 3 else self._grouped(result, *_factor_ranges(factors))
        if len(factors) < _MANY_FACTORS:
            self._factors[grouped] = factors
        return grouped

    def _factors_of(self, value: torch.Tensor | float) -> list[_Factor]:
        alone: list[_Factor] = [(value, 1)]
        return self._factors.get(value, alone) if isinstance(value, torch.Tensor) else alone

    def _grouped(self, result: torch.Tensor, largest: torch.Tensor, smallest: torch.Tensor) -> torch.Tensor:
        vanishes = (smallest < math.log2(self._least)) & (result.abs() >= self._least)
        return result.masked_fill((largest > math.log2(self._info.max)) | vanishes, math.nan)

    def _other(self, value: Any) -> Any:
        return self._shaken.get(value, value) if isinstance(value, torch.Tensor) else value


class _Rerounded(TorchDispatchMode):
    """Rounds every rounded result once more, at random, before it is used: as a kernel does that passes intermediate
    results on in the same types, each rounded the other way.

    Results that are not used stay as they are, except that sums are added one term after another where PyTorch adds in
    blocks: every partial sum is then rounded, and with sorted terms those are far larger than the result.
    """

    def __init__(self, seed: int, of_8_bits: bool = False) -> None:
        """``of_8_bits``: products are of 8-bit floats."""
        super().__init__()
        self._draw, self._of_8_bits = _Draw(seed), of_8_bits
        self._made: WeakTensorKeyDictionary[torch.Tensor | None] = WeakTensorKeyDictionary()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = func.overloadpacket.__name__
        if func._schema.is_mutable:
            walk = _WALKS.get(name.removesuffix("_")) if name.endswith("_add_") else None
            squares = walk(*args, **(kwargs or {})) if walk else None
            result = func(*args, **(kwargs or {}))
            return result if squares is None else result.copy_(self._walked(result, squares))
        args, kwargs = tree_map(self._used, args), tree_map(self._used, kwargs or {})
        if name in _PARTS:  # whose squares PyTorch keeps in double on a CPU; in float32 those of 1e-20 are zeros
            with self:
                return _PARTS[name](*args, **kwargs)
        result = func(*args, **kwargs)
        if name in _WALKS and isinstance(result, torch.Tensor) and result.is_floating_point():
            result = self._walked(result, _WALKS[name](*args, **kwargs))
            if self._of_8_bits and name in _PRODUCTS:
                result = self._aligned(result, *args[_PRODUCTS[name] :][:2])
        narrowed = name == "_to_copy" and args[0] in self._made and result.dtype.itemsize < args[0].dtype.itemsize
        if narrowed or (name not in _CHOOSE and not _aliases(func)):
            tree_map(self._make, result)
        return result

    def _walked(self, result: torch.Tensor, squares: torch.Tensor) -> torch.Tensor:
        """Adds the rounding of each partial sum: up to half an epsilon of float32 (or float64), accumulating as a
        random walk."""
        unit = UNIT[DType.F64 if result.dtype is torch.float64 else DType.F32]
        noise = self._draw.uniform(result).mul_(2).sub_(1).mul_(squares.sqrt().reshape(result.shape)).mul_(unit)
        return (result.double() + noise).to(result.dtype)

    def _aligned(self, result: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Adds the truncation of tensor cores, which drop bits 13 below the largest of 32 products of 8-bit floats: an
        element is off by up to the sum over all of them (bounded by their root sum of squares)."""
        largest = (a.double().square() @ b.double().square()).sqrt()
        noise = self._draw.uniform(result).mul_(2).sub_(1).mul_(largest.reshape(result.shape))
        return (result.double() + noise * (_EIGHT_BITS * math.sqrt(_A_STEP))).to(result.dtype)

    def _make(self, value: Any) -> None:
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            self._made[value] = None

    def _used(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value not in self._made:
            return value
        if (again := self._made[value]) is None:
            unit = torch.finfo(value.dtype).eps / 2
            noise = self._draw.uniform(value).mul_(2 * unit).add_(1 - unit)
            again = self._made[value] = noise.mul_(value).to(value.dtype)
        return again


class _Attention(TorchFunctionMode):
    """Computes attention of tensors with ``bytes`` an element by its formula. The fused operator rounds inside, where
    no other mode sees it; and values that a causal mask hides are skipped here, where PyTorch may add −∞. ``raised``:
    as in :func:`attention`."""

    def __init__(self, bytes: int, raised: float | None = None) -> None:
        super().__init__()
        self._bytes, self._raised = bytes, raised

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is torch.nn.functional.scaled_dot_product_attention and args[0].dtype.itemsize == self._bytes:
            result = self._formula(*args, **(kwargs or {}))
            if result is not None:
                return result
        return func(*args, **(kwargs or {}))

    def _formula(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
    ) -> torch.Tensor | None:  # fmt: skip
        return None if dropout_p or enable_gqa else attention(q, k, v, attn_mask, is_causal, scale, self._raised)


class _Watched(TorchDispatchMode):
    """Tracks whether everything computed was a sum of products of integers that float32 represents."""

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


@dataclass(frozen=True)
class Kind:
    """Properties of a reference's formula."""

    plain: bool
    """An infinite result is infinite in every correct formula, since no infinities are subtracted."""
    infinite: bool
    """The same, although a formula may lose values that vanish."""
    apart: bool
    """No element is a sum of several."""
    strict: bool
    """Only sums, products and quotients, none of which leaves a value out."""
    relative: bool
    """Only products, quotients, powers and exponentials of single elements."""
    chooses: bool
    """Only choices, copies and comparisons: nothing is rounded."""


class _Looked(TorchDispatchMode):
    """Records which operators are used, for :class:`Kind`."""

    def __init__(self) -> None:
        super().__init__()
        self._apart = self._alone = self._only = self._strict = self._relative = self._chooses = True
        self._infinite = True

    @property
    def kind(self) -> Kind:
        plain = self._only or (self._apart and self._alone)
        infinite = plain or (self._apart and self._infinite)
        return Kind(plain, infinite, self._apart, self._strict, self._relative, self._chooses)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = func.overloadpacket.__name__.rstrip("_")
        self._alone = self._alone and (name in _PLAIN_ALONE or _aliases(func))
        self._infinite = self._infinite and (name in _INFINITE_ALONE or _aliases(func))
        self._only = self._only and (name in _PLAIN or _aliases(func))
        self._apart = self._apart and (torch.Tag.pointwise in func.tags or name in _CHOOSE or _aliases(func))
        self._strict = self._strict and (name in _STRICT or _aliases(func))
        self._relative = self._relative and (name in _RELATIVE or _aliases(func))
        result = func(*args, **(kwargs or {}))
        narrows = name == "_to_copy" and result.dtype.itemsize < args[0].dtype.itemsize
        views = _aliases(func) and not func._schema.is_mutable
        self._chooses = self._chooses and (name in _EXACT or views) and not narrows
        return result


def moved(reference: Reference, inputs: Sequence[torch.Tensor], unit: float, seed: int) -> tuple[torch.Tensor, ...]:
    """The float64 reference with inputs and intermediate results rounded to ``unit`` at random."""
    wide = [t.double() if t.is_floating_point() else t for t in inputs]
    with _Moved(unit, seed, wide):
        return reference.run_float64(wide)


def samples(
    reference: Reference, inputs: Sequence[torch.Tensor], seed: int, taken: int = 0
) -> list[tuple[torch.Tensor, ...]]:  # fmt: skip
    """Several such runs at the precision of kernels: float32, or float64 where an input is. ``taken``: number of runs
    already made; for large results these are enough."""
    unit = UNIT[DType.F64] if any(t.dtype is torch.float64 for t in inputs) else UNIT[DType.F32]
    if not taken:
        return [moved(reference, inputs, unit, seed ^ (index + 1)) for index in range(SAMPLES)]
    few = max(t.numel() for t in inputs) <= 2 * _FEW
    return [moved(reference, inputs, unit, seed ^ (index + 1)) for index in range(taken, MORE_SAMPLES)] if few else []


def rerounded(reference: Reference, inputs: Sequence[torch.Tensor], seed: int) -> list[tuple[torch.Tensor, ...]]:
    """PyTorch's results with other rounding of intermediate results, several times."""
    results: list[tuple[torch.Tensor, ...]] = []
    of_8_bits = any(t.is_floating_point() and t.dtype.itemsize == 1 for t in inputs)
    while len(results) < (MORE_SAMPLES if results and min(t.numel() for t in results[0]) <= _FEW else SAMPLES):
        number = len(results)
        with _Attention(2, _RAISED[number % len(_RAISED)]), _Rerounded(seed ^ (number + 1), of_8_bits):
            results.append(tf32.own(reference, inputs))
    return results


def masked(reference: Reference, inputs: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The float64 reference with attention that skips what a causal mask hides."""
    with _Attention(8):
        return reference.run_float64(inputs)


def looked(run: Callable[[], tuple[torch.Tensor, ...]]) -> tuple[tuple[torch.Tensor, ...], Kind]:
    """Result of ``run()`` and the kind of its formula."""
    mode = _Looked()
    with mode:
        result = run()
    return result, mode.kind


def watched(run: Callable[[], tuple[torch.Tensor, ...]]) -> tuple[tuple[torch.Tensor, ...], bool]:
    """Result of ``run()``, and whether all it computed was sums of products of integers, for which every order of
    summation is exact."""
    mode = _Watched()
    with mode:
        result = run()
    return result, mode.exact


def _aliases(func: Any) -> bool:
    return any(r.alias_info is not None for r in func._schema.returns)
