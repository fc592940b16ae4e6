"""Losses, element by element and then reduced as PyTorch numbers it: 0 not at all, 1 to the mean, 2 to the sum."""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_lab.templates.lowering import Lowering, Value, rule

MEAN = 1


def _reduced(g: Lowering, loss: Value, reduction: int) -> Value:
    if reduction == 0:
        return loss
    return g.mean(loss, None, False) if reduction == MEAN else g.reduce("add", loss, None)


@rule("broadcast_tensors.default")
def broadcast_tensors(g: Lowering, values: Sequence[Value]) -> tuple[Value, ...]:
    """Broadcasting happens where values meet; nothing is to be done before."""
    g.axes.broadcast([v.axes for v in values])
    return tuple(values)


@rule("mse_loss.default")
def mse_loss(g: Lowering, a: Value, b: Value, reduction: int = MEAN) -> Value:
    difference = g.map("sub", a, b)
    return _reduced(g, g.map("mul", difference, difference), reduction)


@rule("l1_loss.default")
def l1_loss(g: Lowering, a: Value, b: Value, reduction: int = MEAN) -> Value:
    return _reduced(g, g.map("abs", g.map("sub", a, b)), reduction)


@rule("huber_loss.default")
def huber_loss(g: Lowering, a: Value, b: Value, reduction: int = MEAN, delta: float = 1.0) -> Value:
    size = g.map("abs", g.map("sub", a, b), name="distance")
    near = g.map("mul", g.map("mul", size, size), 0.5)
    far = g.map("mul", g.map("sub", size, 0.5 * delta), delta)
    return _reduced(g, g.map("where", g.map("le", size, delta), near, far), reduction)


@rule("smooth_l1_loss.default")
def smooth_l1_loss(g: Lowering, a: Value, b: Value, reduction: int = MEAN, beta: float = 1.0) -> Value:
    if beta == 0:
        return l1_loss(g, a, b, reduction)
    return _reduced(g, g.map("mul", huber_loss(g, a, b, 0, beta), 1 / beta), reduction)


@rule("kl_div.default")
def kl_div(g: Lowering, a: Value, b: Value, reduction: int = MEAN, *, log_target: bool = False) -> Value:
    """``a`` are log-probabilities, ``b`` probabilities or their logarithms. 0·log 0 is 0."""
    if log_target:
        return _reduced(g, g.map("mul", g.map("exp", b), g.map("sub", b, a)), reduction)
    entropy = g.map("where", g.map("eq", b, 0.0), 0.0, g.map("mul", b, g.map("log", b)))
    return _reduced(g, g.map("sub", entropy, g.map("mul", b, a)), reduction)


@rule("hinge_embedding_loss.default")
def hinge_embedding_loss(g: Lowering, a: Value, b: Value, margin: float = 1.0, reduction: int = MEAN) -> Value:
    apart = g.map("where", g.map("ne", b, 1.0), g.map("max", g.map("sub", margin, a), 0.0), 0.0)
    alike = g.map("where", g.map("ne", b, -1.0), a, 0.0)
    return _reduced(g, g.map("add", apart, alike), reduction)


@rule("soft_margin_loss.default")
def soft_margin_loss(g: Lowering, a: Value, b: Value, reduction: int = MEAN) -> Value:
    power = g.map("exp", g.map("neg", g.map("mul", a, b)))
    return _reduced(g, g.map("log1p", power), reduction)
