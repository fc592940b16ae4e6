"""Softmax and the norms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cutegen_lab.templates.lowering import Lowering, Value, rule


@rule("_softmax.default", "softmax.int")
def softmax(g: Lowering, a: Value, dim: int, _half_to_float: Any = None, **_: Any) -> Value:
    top = g.reduce("max", a, dim, True)
    power = g.map("exp", g.map("sub", a, top))
    return g.map("div", power, g.reduce("add", power, dim, True))


@rule("_log_softmax.default", "log_softmax.int")
def log_softmax(g: Lowering, a: Value, dim: int, _half_to_float: Any = None, **_: Any) -> Value:
    top = g.reduce("max", a, dim, True)
    shifted = g.map("sub", a, top)
    return g.map("sub", shifted, g.map("log", g.reduce("add", g.map("exp", shifted), dim, True)))


def _normalised_dims(shape: Sequence[int]) -> list[int]:
    return list(range(-len(shape), 0))


@rule("layer_norm.default")
def layer_norm(g: Lowering, *args: Any, **named: Any) -> Value:
    return native_layer_norm(g, *args, **named)[0]


@rule("native_layer_norm.default")
def native_layer_norm(
    g: Lowering, a: Value, shape: Sequence[int], weight: Value | None = None, bias: Value | None = None,
    eps: float = 1e-5, *_: Any,
) -> tuple[Value, Value, Value]:  # fmt: skip
    variance, mean = g.variance(a, _normalised_dims(shape), 0, True)
    rstd = g.map("rsqrt", g.map("add", variance, eps), name="rstd")
    result = g.map("mul", g.map("sub", a, mean), rstd)
    if weight is not None:
        result = g.map("mul", result, weight)
    if bias is not None:
        result = g.map("add", result, bias)
    return result, mean, rstd


@rule("rms_norm.default")
def rms_norm(g: Lowering, *args: Any, **named: Any) -> Value:
    return fused_rms_norm(g, *args, **named)[0]


@rule("_fused_rms_norm.default")
def fused_rms_norm(
    g: Lowering, a: Value, shape: Sequence[int], weight: Value | None = None, eps: float | None = None
) -> tuple[Value, Value]:
    mean_square = g.mean(g.map("mul", a, a), _normalised_dims(shape), True, name="mean_square")
    rstd = g.map("rsqrt", g.map("add", mean_square, 2.0**-23 if eps is None else eps), name="rstd")
    result = g.map("mul", a, rstd)
    return (result if weight is None else g.map("mul", result, weight)), rstd
