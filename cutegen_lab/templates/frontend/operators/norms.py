"""Softmax and the norms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cutegen_lab.templates.frontend.lowering import Lowering, Unsupported, Value
from cutegen_lab.templates.frontend.operators.registry import rule


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


@rule("group_norm.default")
def group_norm(
    g: Lowering, a: Value, groups: int, weight: Value | None = None, bias: Value | None = None, eps: float = 1e-5,
    *_: Any,
) -> Value:  # fmt: skip
    """Normalises over the channels of each group and all following dimensions."""
    apart = g.split(a, 1, groups)
    statistics = g.variance(apart, range(2, len(apart.axes)), 0, True)
    weight, bias = (v if v is None else g.split(_of_channels(g, v, a), 0, groups) for v in (weight, bias))
    return Value(_scaled(g, apart, *statistics, eps, weight, bias).node, a.axes)


@rule("instance_norm.default")
def instance_norm(
    g: Lowering, a: Value, weight: Value | None, bias: Value | None, mean: Value | None, variance: Value | None,
    own: bool, _momentum: float, eps: float, *_: Any,
) -> Value:  # fmt: skip
    """``own``: normalises with the statistics of each image and channel; otherwise with given statistics of each
    channel."""
    if not own:
        return by_given(g, a, weight, bias, mean, variance, 0.0, eps)[0]
    statistics = g.variance(a, range(2, len(a.axes)), 0, True)
    return _scaled(g, a, *statistics, eps, _of_channels(g, weight, a), _of_channels(g, bias, a))


@rule("_native_batch_norm_legit.no_stats")
def batch_norm(
    g: Lowering, a: Value, weight: Value | None, bias: Value | None, own: bool, _momentum: float, eps: float
) -> tuple[Value, Value, Value]:
    """Normalises each channel with its statistics over the batch."""
    variance, mean = g.variance(a, [0, *range(2, len(a.axes))], 0, True)
    result = _scaled(g, a, variance, mean, eps, _of_channels(g, weight, a), _of_channels(g, bias, a))
    return result, mean, variance


@rule("_native_batch_norm_legit_no_training.default")
def by_given(
    g: Lowering, a: Value, weight: Value | None, bias: Value | None, mean: Value | None, variance: Value | None,
    _momentum: float, eps: float,
) -> tuple[Value]:  # fmt: skip
    mean, variance, weight, bias = (_of_channels(g, v, a) for v in (mean, variance, weight, bias))
    if mean is None or variance is None:
        raise Unsupported("normalisation with running statistics that are not given")
    return (_scaled(g, a, variance, mean, eps, weight, bias),)


def _of_channels(g: Lowering, a: Value | None, like: Value) -> Any:
    """``a`` (channels) reshaped to broadcast with ``like`` (batch, channels, …)."""
    return a and Value(a.node, (*a.axes, *(g.axes.fresh(1, made=True) for _ in like.axes[2:])))


def _scaled(
    g: Lowering, a: Value, variance: Value, mean: Value, eps: float, weight: Value | None, bias: Value | None
) -> Value:
    """Normalises with one multiplication and one addition, as PyTorch does: an infinite weight gives NaN."""
    scale = g.map("rsqrt", g.map("add", variance, eps), name="rstd")
    if weight is not None:
        scale = g.map("mul", scale, weight, name="scale")
    shift = g.map("mul", mean, scale)
    shift = g.map("neg", shift) if bias is None else g.map("sub", bias, shift)
    return g.map("add", g.map("mul", a, scale), shift)
