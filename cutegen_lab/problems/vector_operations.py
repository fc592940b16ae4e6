"""Arithmetic outside matrix products: one operation per element and step; special functions are counted apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from cutegen_lab.problems.matrix_flops import attended_pairs
from cutegen_lab.problems.traffic import tensors

Counts = tuple[int, int]  # (additions, multiplications and comparisons; special functions)

_MOVING = {"clone", "copy", "fill", "masked_fill", "where", "_to_copy"}  # pointwise operators without arithmetic
_SPECIAL = {
    "acos", "asin", "atan", "atan2", "cos", "cosh", "digamma", "erf", "erfc", "erfinv", "exp", "exp2", "expm1",
    "lgamma", "log", "log10", "log1p", "log2", "pow", "reciprocal", "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh",
    "xlogy",
}  # fmt: skip
_ACTIVATIONS = {"celu", "elu", "gelu", "log_sigmoid_forward", "mish", "selu", "sigmoid", "silu", "softplus"}
# Steps for each element of the first operand.
_STEPS: Mapping[str, Counts] = {
    "_softmax": (4, 1),  # maximum, subtraction, exponential, sum, division
    "_safe_softmax": (4, 1),
    "_log_softmax": (4, 1),
    "logsumexp": (3, 1),
    "native_layer_norm": (5, 0),  # sum, subtraction, square, sum of squares, scale
    "native_group_norm": (5, 0),
    "native_batch_norm": (5, 0),
    "rms_norm": (3, 0),  # square, sum, scale
    "cumsum": (1, 0),
    "cumprod": (1, 0),
    "cummax": (1, 0),
    "cummin": (1, 0),
    "logcumsumexp": (2, 2),
}
_WINDOWS = {f"{kind}_pool{n}d{form}" for kind in ("avg", "max") for n in (1, 2, 3) for form in ("", "_with_indices")}
_ATTENTION = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu


def vector_operations(func: Any, args: Sequence[Any], result: Any) -> Counts:
    """Operations of one ATen operator; (0, 0) for operators that only move or order elements, and for those of
    matrices."""
    name = func._opname.rstrip("_")
    results = list(tensors([result]))
    given = args[0].numel() if args and isinstance(args[0], torch.Tensor) else 0
    made = results[0].numel() if results else 0
    if func.overloadpacket is _ATTENTION:
        pairs = attended_pairs(args[0].shape, args[1].shape, bool(args[4]) if len(args) > 4 else False)
        return 4 * pairs, pairs
    if steps := _STEPS.get(name):
        return (steps[0] + _affine(func, args)) * given, steps[1] * given
    if name in _WINDOWS:
        return made * math.prod(args[1]), 0
    if name in _ACTIVATIONS:
        return made, made
    if name in _SPECIAL and not _is_whole_power(name, args):
        return 0, made
    if torch.Tag.pointwise in func.tags:
        return (0 if name in _MOVING else made), 0
    return (given if torch.Tag.reduction in func.tags else 0), 0


def _affine(func: Any, args: Sequence[Any]) -> int:
    """Number of operands ``weight`` and ``bias``: a multiplication and an addition."""
    names = [argument.name for argument in func._schema.arguments]
    return sum(name in ("weight", "bias") and arg is not None for name, arg in zip(names, args, strict=False))


def _is_whole_power(name: str, args: Sequence[Any]) -> bool:
    """Whether it is a power with a whole exponent, computed by multiplications."""
    return name == "pow" and isinstance(args[1], int | float) and float(args[1]).is_integer()
