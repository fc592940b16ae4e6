"""Rules for ATen operators that are more than one operation: activations, norms, reductions, shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from cutegen_lab.templates.lowering import Lowering, Operand, Unsupported, Value, rule

# --- arithmetic -----------------------------------------------------------------------------------------------------


@rule("add.Tensor", "add.Scalar")
def add(g: Lowering, a: Operand, b: Operand, alpha: float = 1) -> Value:
    return g.map("add", a, b if alpha == 1 else g.map("mul", b, alpha))


@rule("sub.Tensor", "sub.Scalar")
def sub(g: Lowering, a: Operand, b: Operand, alpha: float = 1) -> Value:
    return g.map("sub", a, b if alpha == 1 else g.map("mul", b, alpha))


@rule("rsub.Scalar", "rsub.Tensor")
def rsub(g: Lowering, a: Operand, b: Operand, alpha: float = 1) -> Value:
    return sub(g, b, a, alpha)


@rule("div.Tensor", "div.Scalar", "div.Tensor_mode", "true_divide.Tensor")
def div(g: Lowering, a: Operand, b: Operand, rounding_mode: str | None = None) -> Value:
    by = g.constant_of(b)
    if by is not None and by != 0 and math.frexp(by)[0] == 0.5:  # dividing by a power of two is multiplying, exactly
        quotient = g.map("mul", a, 1 / by)
    else:
        quotient = g.map("div", a, b)
    return g.map(rounding_mode, quotient) if rounding_mode else quotient


@rule("pow.Tensor_Scalar", "pow.Tensor_Tensor")
def power(g: Lowering, a: Value, b: Operand) -> Value:
    exponent = g.constant_of(b)
    if exponent == 0.5:
        return g.map("sqrt", a)
    if exponent == -0.5:
        return g.map("rsqrt", a)
    if exponent is not None and exponent == int(exponent) and 1 <= abs(exponent) <= 4:
        result = a
        for _ in range(int(abs(exponent)) - 1):
            result = g.map("mul", result, a)
        return result if exponent > 0 else g.map("recip", result)
    raise Unsupported(f"pow with exponent {exponent if exponent is not None else 'given as a tensor'}")


@rule("square.default")
def square(g: Lowering, a: Value) -> Value:
    return g.map("mul", a, a)


@rule("clamp.default", "clamp.Tensor", "hardtanh.default", "clip.default")
def clamp(g: Lowering, a: Value, low: Operand | None = None, high: Operand | None = None, **named: Operand) -> Value:
    low, high = named.get("min", low), named.get("max", high)
    result = a if low is None else g.map("max", a, low)
    return result if high is None else g.map("min", result, high)


@rule("clamp_min.default", "clamp_min.Tensor")
def clamp_min(g: Lowering, a: Value, low: Operand) -> Value:
    return g.map("max", a, low)


@rule("clamp_max.default", "clamp_max.Tensor")
def clamp_max(g: Lowering, a: Value, high: Operand) -> Value:
    return g.map("min", a, high)


@rule("sign.default", "sgn.default")
def sign(g: Lowering, a: Value) -> Value:
    positive = g.map("where", g.map("gt", a, 0.0), 1.0, g.map("mul", a, 0.0))  # 0·a: a NaN stays one
    return g.map("where", g.map("lt", a, 0.0), -1.0, positive)


@rule("addcmul.default")
def addcmul(g: Lowering, a: Value, b: Value, c: Value, value: float = 1) -> Value:
    return add(g, a, g.map("mul", b, c), value)


@rule("addcdiv.default")
def addcdiv(g: Lowering, a: Value, b: Value, c: Value, value: float = 1) -> Value:
    return add(g, a, g.map("div", b, c), value)


@rule("lerp.Scalar", "lerp.Tensor")
def lerp(g: Lowering, a: Value, b: Value, weight: Operand) -> Value:
    return g.map("add", a, g.map("mul", weight, g.map("sub", b, a)))


@rule("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(g: Lowering, a: Value, mask: Value, value: Operand) -> Value:
    return g.map("where", mask, value, a)


# --- activations ----------------------------------------------------------------------------------------------------


@rule("relu.default")
def relu(g: Lowering, a: Value) -> Value:
    return g.map("max", a, 0.0)


@rule("relu6.default")
def relu6(g: Lowering, a: Value) -> Value:
    return clamp(g, a, 0.0, 6.0)


@rule("leaky_relu.default")
def leaky_relu(g: Lowering, a: Value, slope: float = 0.01) -> Value:
    return g.map("where", g.map("gt", a, 0.0), a, g.map("mul", a, slope))


@rule("elu.default")
def elu(g: Lowering, a: Value, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Value:
    negative = g.map("mul", g.map("expm1", g.map("mul", a, input_scale)), alpha * scale)
    return g.map("where", g.map("gt", a, 0.0), g.map("mul", a, scale), negative)


@rule("sigmoid.default")
def sigmoid(g: Lowering, a: Value) -> Value:
    return g.map("sigmoid", a)


@rule("silu.default")
def silu(g: Lowering, a: Value) -> Value:
    return g.map("mul", a, sigmoid(g, a))


@rule("log_sigmoid_forward.default", "log_sigmoid.default")
def log_sigmoid(g: Lowering, a: Value) -> tuple[Value]:
    tail = g.map("log1p", g.map("exp", g.map("neg", g.map("abs", a))))
    return (g.map("sub", g.map("min", a, 0.0), tail),)


@rule("gelu.default")
def gelu(g: Lowering, a: Value, approximate: str = "none") -> Value:
    if approximate == "tanh":  # x·(1 + tanh u)/2 is x·sigmoid(2u), which keeps the small tail exact
        cubic = g.map("mul", g.map("mul", a, a), a)
        u = g.map("mul", g.map("add", a, g.map("mul", cubic, 0.044715)), 2 * math.sqrt(2 / math.pi))
        return g.map("mul", a, sigmoid(g, u))
    phi = g.map("add", g.map("erf", g.map("mul", a, math.sqrt(0.5))), 1.0)
    return g.map("mul", g.map("mul", a, 0.5), phi)


@rule("softplus.default")
def softplus(g: Lowering, a: Value, beta: float = 1.0, threshold: float = 20.0) -> Value:
    scaled = g.map("mul", a, beta)
    smooth = g.map("div", g.map("log1p", g.map("exp", scaled)), beta)
    return g.map("where", g.map("gt", scaled, threshold), a, smooth)


@rule("mish.default")
def mish(g: Lowering, a: Value) -> Value:
    return g.map("mul", a, g.map("tanh", softplus(g, a)))


@rule("hardsigmoid.default")
def hardsigmoid(g: Lowering, a: Value) -> Value:
    return g.map("div", clamp(g, g.map("add", a, 3.0), 0.0, 6.0), 6.0)


@rule("hardswish.default")
def hardswish(g: Lowering, a: Value) -> Value:
    return g.map("mul", a, hardsigmoid(g, a))


# --- reductions -----------------------------------------------------------------------------------------------------


@rule("sum.dim_IntList", "sum.default")
def total(g: Lowering, a: Value, dim: Any = None, keepdim: bool = False, **_: Any) -> Value:
    return g.reduce("add", a, dim, keepdim)


@rule("prod.dim_int")
def product(g: Lowering, a: Value, dim: int, keepdim: bool = False, **_: Any) -> Value:
    return g.reduce("mul", a, dim, keepdim)


@rule("mean.dim", "mean.default")
def mean(g: Lowering, a: Value, dim: Any = None, keepdim: bool = False, **_: Any) -> Value:
    return g.mean(a, dim, keepdim)


@rule("amax.default")
def amax(g: Lowering, a: Value, dim: Any = (), keepdim: bool = False) -> Value:
    return g.reduce("max", a, dim, keepdim)


@rule("amin.default")
def amin(g: Lowering, a: Value, dim: Any = (), keepdim: bool = False) -> Value:
    return g.reduce("min", a, dim, keepdim)


def _arg(g: Lowering, op: str, a: Value, dim: int | None, keepdim: bool) -> tuple[Value, Value]:
    """(best value, its first position): NaN counts as best, as PyTorch has it."""
    if dim is None:
        if len(a.axes) != 1:
            raise Unsupported(f"arg{op} over all dimensions at once")
        dim = 0
    best = g.reduce(op, a, dim, True)
    is_best = g.map("or", g.map("eq", a, best), g.map("isnan", a))
    where = g.map("where", is_best, g.position(a, dim), float(1 << 24))
    value = best if keepdim else g.reduce(op, a, dim, False)
    return value, g.reduce("min", where, dim, keepdim, name=f"arg{op}")


@rule("argmax.default")
def argmax(g: Lowering, a: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    return _arg(g, "max", a, dim, keepdim)[1]


@rule("argmin.default")
def argmin(g: Lowering, a: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    return _arg(g, "min", a, dim, keepdim)[1]


@rule("max.dim")
def max_dim(g: Lowering, a: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    return _arg(g, "max", a, dim, keepdim)


@rule("min.dim")
def min_dim(g: Lowering, a: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    return _arg(g, "min", a, dim, keepdim)


@rule("max.default")
def max_all(g: Lowering, a: Value) -> Value:
    return g.reduce("max", a, None)


@rule("min.default")
def min_all(g: Lowering, a: Value) -> Value:
    return g.reduce("min", a, None)


@rule("var.correction", "var.dim")
def var(g: Lowering, a: Value, dim: Any = None, *_: Any, correction: float | None = 1, keepdim: bool = False) -> Value:
    return g.variance(a, dim, 1 if correction is None else correction, keepdim)[0]


@rule("var_mean.correction")
def var_mean(
    g: Lowering, a: Value, dim: Any = None, *, correction: float | None = 1, keepdim: bool = False
) -> tuple[Value, Value]:
    return g.variance(a, dim, 1 if correction is None else correction, keepdim)


@rule("std.correction")
def std(g: Lowering, a: Value, dim: Any = None, *, correction: float | None = 1, keepdim: bool = False) -> Value:
    return g.map("sqrt", var(g, a, dim, correction=correction, keepdim=keepdim))


@rule("linalg_vector_norm.default")
def vector_norm(g: Lowering, a: Value, ord: float = 2, dim: Any = None, keepdim: bool = False, **_: Any) -> Value:
    magnitude = g.map("abs", a)
    if ord == 2:
        return g.map("sqrt", g.reduce("add", g.map("mul", a, a), dim, keepdim))
    if ord == 1:
        return g.reduce("add", magnitude, dim, keepdim)
    if ord in (math.inf, -math.inf):
        return g.reduce("max" if ord > 0 else "min", magnitude, dim, keepdim)
    raise Unsupported(f"a vector norm of order {ord}")


@rule("logsumexp.default")
def logsumexp(g: Lowering, a: Value, dim: Any, keepdim: bool = False) -> Value:
    top = g.reduce("max", a, dim, True)
    top = g.map("where", g.map("eq", g.map("abs", top), math.inf), 0.0, top)
    logs = g.map("log", g.reduce("add", g.map("exp", g.map("sub", a, top)), dim, True))
    result = g.map("add", logs, top)
    return result if keepdim else Value(result.node, g.reduce("max", a, dim, False).axes)


# --- norms ----------------------------------------------------------------------------------------------------------


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


# --- shapes ---------------------------------------------------------------------------------------------------------


@rule("clone.default", "alias.default", "detach.default", "contiguous.default", "lift_fresh_copy.default")
def same(g: Lowering, a: Value, **_: Any) -> Value:
    return a


@rule("unsqueeze.default")
def unsqueeze(g: Lowering, a: Value, dim: int) -> Value:
    at = dim % (len(a.axes) + 1)
    return Value(a.node, (*a.axes[:at], g.axes.fresh(1, made=True), *a.axes[at:]))


@rule("squeeze.dim", "squeeze.dims", "squeeze.default")
def squeeze(g: Lowering, a: Value, dims: Any = None) -> Value:
    wanted = range(len(a.axes)) if dims is None else [dims] if isinstance(dims, int) else dims
    drop = {d % len(a.axes) for d in wanted if g.axes.size(a.axes[d]) == 1} if a.axes else set()
    return Value(a.node, tuple(s for d, s in enumerate(a.axes) if d not in drop))


@rule("expand.default")
def expand(g: Lowering, a: Value, sizes: Sequence[int], **_: Any) -> Value:
    """A dimension that expanding stretches gets its name from what it later meets."""
    lead = len(sizes) - len(a.axes)
    axes = [g.axes.fresh(int(size)) for size in sizes[:lead]]
    for symbol, size in zip(a.axes, sizes[lead:], strict=True):
        axes.append(symbol if size == -1 or size == g.axes.size(symbol) else g.axes.fresh(int(size)))
    return Value(a.node, tuple(axes))


@rule("permute.default")
def permute(g: Lowering, a: Value, dims: Sequence[int]) -> Value:
    return Value(a.node, tuple(a.axes[d] for d in dims))


@rule("transpose.int")
def transpose(g: Lowering, a: Value, first: int, second: int) -> Value:
    axes = list(a.axes)
    axes[first], axes[second] = axes[second], axes[first]
    return Value(a.node, tuple(axes))


@rule("t.default")
def t(g: Lowering, a: Value) -> Value:
    return Value(a.node, tuple(reversed(a.axes)))


@rule("view.default", "_unsafe_view.default", "reshape.default")
def view(g: Lowering, a: Value, sizes: Sequence[int]) -> Value:
    """Only views that add or drop dimensions of size 1: those keep every element where it was."""
    kept = [s for s in a.axes if g.axes.size(s) > 1]
    if [size for size in sizes if size > 1] != [g.axes.size(s) for s in kept]:
        shape = [g.axes.size(s) for s in a.axes]
        raise Unsupported(f"a view that regroups dimensions ({shape} as {list(sizes)})")
    rest = iter(kept)
    return Value(a.node, tuple(next(rest) if size > 1 else g.axes.fresh(1, made=True) for size in sizes))


@rule("full.default")
def full(g: Lowering, sizes: Sequence[int], value: float, **_: Any) -> Value:
    return Value(g.build.const(value), tuple(g.axes.fresh(int(s)) for s in sizes))


@rule("scalar_tensor.default")
def scalar_tensor(g: Lowering, value: float, **_: Any) -> Value:
    return g.const(value)


@rule("zeros_like.default")
def zeros_like(g: Lowering, a: Value, **_: Any) -> Value:
    return Value(g.build.const(0.0), a.axes)


@rule("ones_like.default")
def ones_like(g: Lowering, a: Value, **_: Any) -> Value:
    return Value(g.build.const(1.0), a.axes)


@rule("full_like.default")
def full_like(g: Lowering, a: Value, value: float, **_: Any) -> Value:
    return Value(g.build.const(value), a.axes)
