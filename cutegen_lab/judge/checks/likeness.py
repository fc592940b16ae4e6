"""Describes how a wrong result differs from the right one: scaled, off by a constant, at another index, or wrong only
where a tile ends."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import torch

_NEAR = 1 / 16  # an explanation must reduce the error to this fraction or less
_ROUNDED = 1.5  # an explanation may also leave an error of this multiple of PyTorch's own
_ROLLED = (1, -1)  # index offsets tried along each dimension
_LEAST = 8  # minimum number of elements: with fewer, a match may be a coincidence


def likeness(got: torch.Tensor, expected: torch.Tensor, name: str, limit: float, noise: float = 0.0) -> str:
    """Clause on how ``got`` differs from ``expected`` (float64); "" if there is no simple description. ``limit``:
    norm-wise relative error that output ``name`` may have. ``noise``: that of PyTorch's result."""
    right, mine = expected.double(), got.double()
    if got.numel() < _LEAST or not bool(right.isfinite().all()):
        return ""
    if not bool(mine.isfinite().all()):
        where = _region(~mine.isfinite(), name)
        return f"only {where} is not finite" if where else ""
    size, apart = float(right.norm()), float((mine - right).norm())
    if not size or apart <= limit * size:
        return ""
    close = max(apart * _NEAR, _ROUNDED * noise * size)
    if close < apart and (found := _explained(mine, right, close)):
        return found
    off = (mine - right).abs() > max(limit, 1e-12) * right.abs().clamp(min=size / math.sqrt(right.numel()))
    where = _region(off, name)
    return f"only {where} is wrong, the rest is right" if where else ""


def _explained(mine: torch.Tensor, right: torch.Tensor, close: float) -> str:
    """The one change of the expected result that reduces the error's norm to ``close`` or less, in words; "" if
    none."""
    factor = float((mine * right).sum() / (right * right).sum())
    if float((mine - factor * right).norm()) <= close:
        return "every value is 0" if abs(factor) < 1e-6 else f"every value is {factor:.4g} times what it should be"
    shift = float((mine - right).mean())
    if float((mine - shift - right).norm()) <= close:
        return f"every value is {abs(shift):.4g} too {'large' if shift > 0 else 'small'}"
    square = right.ndim >= 2 and right.shape[-1] == right.shape[-2]
    if square and float((mine - right.transpose(-1, -2)).norm()) <= close:
        return "it is the expected result with its last two dimensions exchanged"
    for dim in range(right.ndim):
        for by in _ROLLED:
            # Leaves out the index to which no element is shifted.
            kept = mine.narrow(dim, max(by, 0), right.shape[dim] - 1) if right.shape[dim] > _LEAST else None
            if kept is not None:
                source = right.narrow(dim, max(-by, 0), right.shape[dim] - 1)
                if float((kept - source).norm()) <= close:
                    return f"each value along dimension {dim} is that of index {'- 1' if by > 0 else '+ 1'}"
    return ""


def _region(off: torch.Tensor, name: str) -> str:
    """``out[96:100, :]``: the smallest slices of output ``name`` that hold all elements that are ``off``; "" if that is
    the whole output, or less than half of their elements are off."""
    if not bool(off.any()) or bool(off.all()):
        return ""
    slices = [_slice(indices, off.shape[dim]) for dim, indices in enumerate(_touched(off))]
    if None in slices or all(each == (0, n, 1) for each, n in zip(slices, off.shape, strict=True)):
        return ""
    part = off[tuple(slice(*each) for each in slices if each is not None)]
    if float(part.double().mean()) < 0.5:
        return ""
    texts = [_text(each, n) for each, n in zip(slices, off.shape, strict=True) if each is not None]
    return f"{name}[{', '.join(texts)}]"


def _touched(off: torch.Tensor) -> Iterator[list[int]]:
    """For each dimension, the indices at which any element is ``off``."""
    for dim in range(off.ndim):
        others = [d for d in range(off.ndim) if d != dim]
        seen = off.any(dim=others) if others else off
        yield seen.nonzero().reshape(-1).tolist()


def _slice(indices: Sequence[int], size: int) -> tuple[int, int, int] | None:
    """(start, stop, step) of evenly spaced indices; None if they are not evenly spaced. With a step above 1, ``stop``
    is ``size`` if one more step would reach the end of the dimension."""
    steps = {b - a for a, b in pairwise(indices)}
    if len(steps) > 1:
        return None
    step = steps.pop() if steps else 1
    stop = indices[-1] + 1
    return indices[0], size if step > 1 and indices[-1] + step >= size else stop, step


def _text(each: tuple[int, int, int], size: int) -> str:
    start, stop, step = each
    if each == (0, size, 1):
        return ":"
    if stop - start == 1:
        return str(start)
    return f"{start or ''}:{'' if stop == size else stop}" + (f":{step}" if step > 1 else "")
