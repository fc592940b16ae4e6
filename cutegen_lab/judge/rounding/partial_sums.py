"""Sums of squared partial sums: the rounding that adding one term after another accumulates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F

_PARTIAL = 64  # maximum number of partial sums of a product that are computed; if there are more, they are sampled
_CHUNK = 1 << 16  # elements of a product at a time on a CPU: their partial sums and squares stay in cache
_BESIDE = 3  # inputs on either side of a convolution's taps that Winograd's F(4, 3) puts into the same tile
_TERMS = 1024  # maximum number of terms of a sum that are searched for equal ones


def _partial_products(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """For each element of ``a[…, M, K] @ b[…, K, N]``: Σ S² of its K partial sums S (of ``_PARTIAL`` of them at most),
    times the number of equal terms as in :func:`_partial_sums`."""
    k = a.shape[-1]
    shape = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    left, right = (x.double().expand(*shape, -1, -1).reshape(math.prod(shape), *x.shape[-2:]) for x in (a, b))
    squares = torch.zeros(len(left), a.shape[-2], b.shape[-1], dtype=torch.float64, device=a.device)
    chunk = _CHUNK if a.device.type == "cpu" else squares.numel()
    for one, other, found in _split((left, right, squares), max(chunk // max(squares[:1].numel(), 1), 1), 0):
        for some, these in _split((one, found), max(chunk // max(b.shape[-1], 1), 1), 1):
            _add_partial_squares(some, other, these)
    squares = squares.view(*shape, *squares.shape[1:])
    if k < 2:
        return squares
    alike = _equal_terms(a.double())[..., :, None] * _equal_terms(b.double().mT)[..., None, :] / k
    return squares * alike.clamp_min(1.0)


def _add_partial_squares(a: torch.Tensor, b: torch.Tensor, squares: torch.Tensor) -> None:
    """Adds Σ S² of ``a[B, M, K] @ b[B, K, N]`` to ``squares[B, M, N]``."""
    step = max(-(-a.shape[-1] // _PARTIAL), 1)
    total = torch.zeros_like(squares)
    for some, others in zip(a.split(step, 2), b.split(step, 1), strict=True):
        total.baddbmm_(some, others)
        squares.addcmul_(total, total, value=some.shape[2])


def _split(tensors: Sequence[torch.Tensor], size: int, dim: int) -> Iterator[tuple[torch.Tensor, ...]]:
    return zip(*(t.split(size, dim) for t in tensors), strict=True)


def _partial_sums(x: torch.Tensor, dim: Sequence[int] | int | None = None, *_: Any, **__: Any) -> torch.Tensor:
    """For each element of ``x.sum(dim)``: Σ S² of its partial sums S, times the mean number of equal terms: while equal
    terms are added, each addition rounds in the same direction."""
    dims = [dim] if isinstance(dim, int) else list(dim or range(x.dim()))
    inner = x.double().movedim(dims, list(range(-len(dims), 0))).flatten(-len(dims)) if dims else x.double()[..., None]
    return inner.cumsum(-1).square().sum(-1) * _equal_terms(inner)


def _equal_terms(terms: torch.Tensor) -> torch.Tensor:
    """How many terms along the last axis are equal to a term, itself included: mean over all terms. Zeros count as
    unequal, since adding them causes no rounding. Estimated from at most ``_TERMS`` random terms."""
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


def _winograd(
    x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int,
) -> torch.Tensor | None:  # fmt: skip
    """For each element of a convolution with three taps per axis: Σ over channels of the squares of the numbers that
    Winograd's F(4, 3) adds and subtracts for it (Lavin and Gray, arXiv 1509.09308), among them inputs up to three
    places beside its taps. None for other convolutions."""
    size = w.shape[2:]
    if transposed or set(size) != {3} or set(stride) | set(dilation) != {1}:
        return None
    axes = len(size)
    sides = [p + _BESIDE for p in reversed(padding) for _ in range(2)]
    pool = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[axes - 1]
    largest = pool(F.pad(x.double().abs(), sides), 3 + 2 * _BESIDE, 1)
    taps = w.double().abs().sum(list(range(2, 2 + axes)), keepdim=True)
    return (F.conv1d, F.conv2d, F.conv3d)[axes - 1](largest.square(), taps.square(), groups=groups)


# Σ S² over the partial sums S of an operator's results: added one after another, each is rounded.
# None: not known.
PARTIAL_SUM_SQUARES: Mapping[str, Callable[..., torch.Tensor | None]] = {
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
    "convolution": _winograd,
}
