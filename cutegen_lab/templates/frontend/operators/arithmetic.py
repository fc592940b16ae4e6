"""Arithmetic, clamping and selecting."""

from __future__ import annotations

import math

from cutegen_lab.templates.frontend.lowering import Lowering, Operand, Unsupported, Value
from cutegen_lab.templates.frontend.operators.registry import plain, rule

for _op in ("exp", "exp2", "log", "log2", "log1p", "expm1", "sqrt", "rsqrt", "tanh", "erf", "sin", "cos", "abs", "neg",
            "floor", "ceil", "trunc", "isnan"):  # fmt: skip
    plain(_op, f"{_op}.default")
plain("recip", "reciprocal.default")
plain("round", "round.default")
plain("mul", "mul.Tensor", "mul.Scalar")
plain("max", "maximum.default", "max.other")
plain("min", "minimum.default", "min.other")
plain("and", "logical_and.default", "bitwise_and.Tensor", "__and__.Tensor")
plain("or", "logical_or.default", "bitwise_or.Tensor", "__or__.Tensor")
plain("not", "logical_not.default", "bitwise_not.default")
plain("where", "where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
for _op in ("lt", "le", "gt", "ge", "eq", "ne"):
    plain(_op, f"{_op}.Tensor", f"{_op}.Scalar")


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


@rule("pow.Scalar")
def power_of(g: Lowering, base: float, a: Value) -> Value:
    if base != 2:
        raise Unsupported(f"powers of {base}")
    return g.map("exp2", a)


@rule("log10.default")
def log10(g: Lowering, a: Value) -> Value:
    return g.map("mul", g.map("log2", a), math.log10(2.0))


@rule("frac.default")
def frac(g: Lowering, a: Value) -> Value:
    return g.map("sub", a, g.map("trunc", a))


@rule("isinf.default")
def isinf(g: Lowering, a: Value) -> Value:
    return g.map("eq", g.map("abs", a), math.inf)


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
    positive = g.map("where", g.map("gt", a, 0.0), 1.0, 0.0)  # 0 for NaN, as in PyTorch
    return g.map("where", g.map("lt", a, 0.0), -1.0, positive)


@rule("nan_to_num.default")
def nan_to_num(
    g: Lowering, a: Value, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Value:
    high, low = (g.largest if posinf is None else posinf), (-g.largest if neginf is None else neginf)
    known = g.map("where", g.map("isnan", a), nan or 0.0, a)
    known = g.map("where", g.map("eq", a, math.inf), high, known)
    return g.map("where", g.map("eq", a, -math.inf), low, known)


@rule("addcmul.default")
def addcmul(g: Lowering, a: Value, b: Value, c: Value, value: float = 1) -> Value:
    return add(g, a, g.map("mul", b, c), value)


@rule("addcdiv.default")
def addcdiv(g: Lowering, a: Value, b: Value, c: Value, value: float = 1) -> Value:
    return add(g, a, g.map("div", b, c), value)


@rule("logaddexp.default")
def logaddexp(g: Lowering, a: Value, b: Value) -> Value:
    apart = g.map("exp", g.map("neg", g.map("abs", g.map("sub", a, b))))
    larger = g.map("add", g.map("max", a, b), g.map("log1p", apart))
    return g.map("where", g.map("eq", a, b), g.map("add", a, math.log(2.0)), larger)  # inf - inf is NaN


@rule("lerp.Scalar", "lerp.Tensor")
def lerp(g: Lowering, a: Value, b: Value, weight: Operand) -> Value:
    return g.map("add", a, g.map("mul", weight, g.map("sub", b, a)))


@rule("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(g: Lowering, a: Value, mask: Value, value: Operand) -> Value:
    return g.map("where", mask, value, a)
