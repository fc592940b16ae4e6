"""Losses. ``reduction`` is PyTorch's number (0: none, 1: mean, 2: sum)."""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_lab.templates.frontend.elements import gathered
from cutegen_lab.templates.frontend.lowering import Lowering, Operand, Unsupported, Value
from cutegen_lab.templates.frontend.operators.activations import log_sigmoid
from cutegen_lab.templates.frontend.operators.norms import log_softmax
from cutegen_lab.templates.frontend.operators.reductions import vector_norm
from cutegen_lab.templates.frontend.operators.registry import rule
from cutegen_lab.templates.frontend.operators.shapes import unsqueeze

MEAN = 1
_SMALLEST_NORMAL = 2.0**-126


def _reduced(g: Lowering, loss: Value, reduction: int) -> Value:
    if reduction == 0:
        return loss
    return g.mean(loss, None, False) if reduction == MEAN else g.reduce("add", loss, None)


@rule("broadcast_tensors.default")
def broadcast_tensors(g: Lowering, values: Sequence[Value]) -> tuple[Value, ...]:
    """Returns the values unchanged, since elementwise operations broadcast their operands."""
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
    """``a``: log-probabilities; ``b``: probabilities, or their logarithms if ``log_target``. 0·log 0 is 0."""
    if log_target:
        return _reduced(g, g.map("mul", g.map("exp", b), g.map("sub", b, a)), reduction)
    # The hardware's logarithm flushes subnormal numbers to 0 (PTX ISA, lg2.approx.ftz).
    nothing = g.map("and", g.map("ge", b, 0.0), g.map("lt", b, _SMALLEST_NORMAL))
    entropy = g.map("where", nothing, 0.0, g.map("mul", b, g.map("log", b)))
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


@rule("binary_cross_entropy.default")
def binary_cross_entropy(g: Lowering, a: Value, b: Value, weight: Value | None = None, reduction: int = MEAN) -> Value:
    """Logarithms are clamped to at least -100, as in PyTorch."""
    yes = g.map("max", g.map("log", a), -100.0)
    no = g.map("max", g.map("log1p", g.map("neg", a)), -100.0)
    loss = g.map("sub", g.map("mul", g.map("sub", b, 1.0), no), g.map("mul", b, yes))
    return _reduced(g, loss if weight is None else g.map("mul", loss, weight), reduction)


@rule("binary_cross_entropy_with_logits.default")
def binary_cross_entropy_with_logits(
    g: Lowering, a: Value, b: Value, weight: Value | None = None, positive: Value | None = None, reduction: int = MEAN
) -> Value:
    """(1 - b)·a - (1 + (positive - 1)·b)·log sigmoid(a)."""
    logarithm = log_sigmoid(g, a)
    if positive is not None:
        logarithm = g.map("mul", g.map("add", g.map("mul", g.map("sub", positive, 1.0), b), 1.0), logarithm)
    loss = g.map("sub", g.map("mul", g.map("sub", 1.0, b), a), logarithm)
    return _reduced(g, loss if weight is None else g.map("mul", loss, weight), reduction)


@rule("nll_loss_nd.default", "nll_loss.default")
def nll_loss(
    g: Lowering, a: Value, target: Value, weight: Value | None = None, reduction: int = MEAN, ignored: int = -100
) -> Value:
    """``a``: (rows, classes, …) log-probabilities. The loss of a row is that of its class, given by ``target``."""
    row, share = _of_class(g, a, target, weight, ignored)
    loss = g.map("mul", g.map("neg", row), share)
    return _weighted(g, _kept(g, loss, target, ignored), share, reduction)


@rule("cross_entropy_loss.default")
def cross_entropy(
    g: Lowering, a: Value, target: Value, weight: Value | None = None, reduction: int = MEAN, ignored: int = -100,
    smoothing: float = 0.0,
) -> Value:  # fmt: skip
    dim = _class_dim(a)
    logs = log_softmax(g, a, dim)
    classes = g.extent(a, dim)
    if len(target.axes) == len(a.axes):
        return _from_probabilities(g, logs, target, weight, reduction, smoothing)
    if not smoothing:
        return nll_loss(g, logs, target, weight, reduction, ignored)
    row, share = _of_class(g, logs, target, weight, ignored)
    sharp = g.map("mul", g.map("neg", row), share)
    weighted = logs if weight is None else g.map("mul", logs, _along_classes(g, weight, a))
    flat = g.map("neg", g.reduce("add", weighted, dim))
    hard, soft = (_weighted(g, _kept(g, loss, target, ignored), share, reduction) for loss in (sharp, flat))
    return g.map("add", g.map("mul", hard, 1 - smoothing), g.map("mul", soft, g.map("div", smoothing, classes)))


def _from_probabilities(
    g: Lowering, logs: Value, target: Value, weight: Value | None, reduction: int, smoothing: float
) -> Value:
    dim = _class_dim(logs)
    if smoothing:
        even = g.map("div", smoothing, g.extent(logs, dim))
        target = g.map("add", g.map("mul", target, 1 - smoothing), even)
    product = g.map("mul", logs, target)
    if weight is not None:
        product = g.map("mul", product, _along_classes(g, weight, logs))
    return _reduced(g, g.map("neg", g.reduce("add", product, dim)), reduction)


def _class_dim(a: Value) -> int:
    return 0 if len(a.axes) == 1 else 1


def _along_classes(g: Lowering, weight: Value, a: Value) -> Value:
    for _ in a.axes[_class_dim(a) + 1 :]:
        weight = unsqueeze(g, weight, -1)
    return weight


def _of_class(g: Lowering, a: Value, target: Value, weight: Value | None, ignored: int) -> tuple[Value, Value]:
    """For each row: the value at its class, and the weight of that class (1 without weights, 0 if ignored)."""
    dim = _class_dim(a)
    rest = (*a.axes[:dim], *a.axes[dim + 1 :])
    if tuple(map(g.axes.size, rest)) != tuple(map(g.axes.size, target.axes)):
        raise Unsupported("a target whose shape does not match that of the scores")
    axes = g.axes.broadcast([rest, target.axes])
    share: Operand = 1.0 if weight is None else Value(gathered(g, weight, 0, target), axes)
    share = g.map("where", g.map("eq", target, float(ignored)), 0.0, share)
    return Value(gathered(g, a, dim, target), axes), share


def _kept(g: Lowering, loss: Value, target: Value, ignored: int) -> Value:
    """``loss`` with 0 for ignored classes, even if the value there is not finite."""
    return g.map("where", g.map("eq", target, float(ignored)), 0.0, loss)


def _weighted(g: Lowering, loss: Value, share: Value, reduction: int) -> Value:
    """``loss``, reduced as ``reduction`` says; the mean is Σ ``loss`` / Σ ``share`` (the weights)."""
    if reduction != MEAN:
        return _reduced(g, loss, reduction)
    return g.map("div", g.reduce("add", loss, None), g.reduce("add", share, None))


@rule("cosine_similarity.default")
def cosine_similarity(g: Lowering, a: Value, b: Value, dim: int = 1, eps: float = 1e-8) -> Value:
    """Each norm is clamped to at least ``eps``, as PyTorch does since 2.0."""
    g.axes.broadcast([a.axes, b.axes])
    lengths = [g.map("max", vector_norm(g, v, 2, dim, False), eps) for v in (a, b)]
    return g.map("div", g.reduce("add", g.map("mul", a, b), dim), g.map("mul", *lengths))


@rule("triplet_margin_loss.default")
def triplet_margin_loss(
    g: Lowering, anchor: Value, positive: Value, negative: Value, margin: float = 1.0, p: float = 2,
    eps: float = 1e-6, swap: bool = False, reduction: int = MEAN,
) -> Value:  # fmt: skip
    def distance(a: Value, b: Value) -> Value:
        return vector_norm(g, g.map("add", g.map("sub", a, b), eps), p, -1, False)

    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = g.map("min", far, distance(positive, negative))
    return _reduced(g, g.map("max", g.map("sub", g.map("add", near, margin), far), 0.0), reduction)
