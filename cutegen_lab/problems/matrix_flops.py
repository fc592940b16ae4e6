"""Floating-point operations of matrix products, convolutions and attention: two for each multiplication and addition.

A convolution counts as the direct one, taps on padding included, as in PyTorch and cuDNN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry, shape_wrapper

Shape = Sequence[int]
_aten = torch.ops.aten


def matrix_flops(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> int:
    """Operations of one ATen operator; 0 for operators without a product."""
    formula = _FORMULAS.get(func.overloadpacket)
    return int(formula(*args, **kwargs, out_val=result)) if formula else 0


def attended_pairs(q: Shape, k: Shape, causal: bool) -> int:
    """Pairs of query and key, of all heads of ``q[…, L, E]``, that ``causal`` does not exclude."""
    *heads, queries, _ = q
    keys = k[-2]
    seen = min(queries, keys)  # row i uses the first i + 1 keys
    pairs = seen * (seen + 1) // 2 + (queries - seen) * keys if causal else queries * keys
    return math.prod(heads) * pairs


def _attention(q: Shape, k: Shape, v: Shape, dropout: float = 0.0, causal: bool = False, *_: Any, **__: Any) -> int:
    """Operations of two products over the pairs of query and key that ``is_causal`` does not exclude; with a mask,
    which is data, all pairs count. The number of heads is that of the queries, which may share keys."""
    return 2 * attended_pairs(q, k, causal) * (q[-1] + v[-1])


def _product(a: Shape, b: Shape, *_: Any, **__: Any) -> int:
    """``a[M, K] @ b[K, N]``."""
    return 2 * math.prod(a) * b[-1]


def _matrix_vector(a: Shape, *_: Any, **__: Any) -> int:
    """``a[M, K] @ b[K]``, or ``a[K] @ b[K]``."""
    return 2 * math.prod(a)


def _added(formula: Callable[..., int]) -> Callable[..., int]:
    """``formula`` for an operator whose first operand is added to the product."""
    return lambda _, *operands, **kwargs: formula(*operands, **kwargs)


def _grouped(a: Shape, b: Shape, *_: Any, **__: Any) -> int:
    """Products in which rows of ``a``, columns of ``b`` or terms of the sum belong to groups, or one for each group."""
    return 2 * math.prod(a if len(b) == 3 else a[-2:]) * b[-1]


def _trilinear(
    a: Shape, b: Shape, c: Shape, expand_a: Shape, expand_b: Shape, expand_c: Shape, *_: Any, **__: Any
) -> int:
    """Sum of ``a · b · c`` over the broadcast shape; the product with the third operand comes after a sum."""
    rank = len(a) + len(expand_a)
    sizes = [1] * rank
    for shape, expanded in ((a, expand_a), (b, expand_b), (c, expand_c)):
        for axis, size in zip((axis for axis in range(rank) if axis not in expanded), shape, strict=True):
            sizes[axis] = max(sizes[axis], size)
    return 2 * math.prod(sizes)


# PyTorch counts nothing for these.
_MISSING: Mapping[Any, Callable[..., int]] = {
    _aten._scaled_dot_product_flash_attention_for_cpu: _attention,
    _aten._int_mm: _product,
    _aten.mv: _matrix_vector,
    _aten.addmv: _added(_matrix_vector),
    _aten.dot: _matrix_vector,
    _aten.vdot: _matrix_vector,
    _aten.addbmm: _added(_product),
    _aten._grouped_mm: _grouped,
    _aten._scaled_grouped_mm: _grouped,
    _aten._trilinear: _trilinear,
}
_FORMULAS = {**flop_registry, **{packet: shape_wrapper(formula) for packet, formula in _MISSING.items()}}
