"""Activations."""

from __future__ import annotations

import math

from cutegen_lab.templates.frontend.lowering import Lowering, Operand, Value
from cutegen_lab.templates.frontend.operators.arithmetic import clamp
from cutegen_lab.templates.frontend.operators.registry import rule
from cutegen_lab.templates.frontend.operators.shapes import chunk


@rule("relu.default")
def relu(g: Lowering, a: Value) -> Value:
    return g.map("max", a, 0.0)


@rule("relu6.default")
def relu6(g: Lowering, a: Value) -> Value:
    return clamp(g, a, 0.0, 6.0)


@rule("leaky_relu.default")
def leaky_relu(g: Lowering, a: Value, slope: Operand = 0.01) -> Value:
    return g.map("where", g.map("gt", a, 0.0), a, g.map("mul", a, slope))


@rule("prelu.default", "_prelu_kernel.default")
def prelu(g: Lowering, a: Value, slope: Value) -> Value:
    """One slope, or one for each index along dimension 1."""
    if len(slope.axes) == 1 and len(a.axes) > 2:
        slope = Value(slope.node, (*slope.axes, *(g.axes.fresh(1, made=True) for _ in a.axes[2:])))
    return leaky_relu(g, a, slope)


@rule("threshold.default")
def threshold(g: Lowering, a: Value, least: float, value: float) -> Value:
    return g.map("where", g.map("le", a, least), value, a)


@rule("elu.default")
def elu(g: Lowering, a: Value, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Value:
    negative = g.map("mul", g.map("expm1", g.map("mul", a, input_scale)), alpha * scale)
    return g.map("where", g.map("gt", a, 0.0), g.map("mul", a, scale), negative)


@rule("selu.default")
def selu(g: Lowering, a: Value) -> Value:
    """Klambauer et al., Self-Normalizing Neural Networks, 2017: the two constants of section 2."""
    return elu(g, a, 1.6732632423543772, 1.0507009873554805)


@rule("celu.default")
def celu(g: Lowering, a: Value, alpha: float = 1.0) -> Value:
    return elu(g, a, alpha, 1.0, 1.0 / alpha)


@rule("sigmoid.default")
def sigmoid(g: Lowering, a: Value) -> Value:
    return g.map("sigmoid", a)


@rule("glu.default")
def glu(g: Lowering, a: Value, dim: int = -1) -> Value:
    first, second = chunk(g, a, 2, dim)
    return g.map("mul", first, sigmoid(g, second))


@rule("silu.default")
def silu(g: Lowering, a: Value) -> Value:
    return g.map("mul", a, sigmoid(g, a))


@rule("log_sigmoid.default")
def log_sigmoid(g: Lowering, a: Value) -> Value:
    tail = g.map("log1p", g.map("exp", g.map("neg", g.map("abs", a))))
    return g.map("sub", g.map("min", a, 0.0), tail)


@rule("log_sigmoid_forward.default")
def log_sigmoid_forward(g: Lowering, a: Value) -> tuple[Value]:
    return (log_sigmoid(g, a),)


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
