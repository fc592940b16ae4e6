"""Operators for matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cutegen_lab.templates.frontend.lowering import Lowering, Unsupported, Value
from cutegen_lab.templates.frontend.operators.arithmetic import add
from cutegen_lab.templates.frontend.operators.registry import rule


@rule("matmul.default", "mm.default", "bmm.default", "mv.default", "dot.default", "vdot.default",
      "linalg_matmul.default")  # fmt: skip
def matmul(g: Lowering, a: Value, b: Value) -> Value:
    """A vector is a one-row matrix on the left and a one-column matrix on the right; that dimension is dropped from the
    result."""
    left = a if len(a.axes) > 1 else Value(a.node, (g.axes.fresh(1, made=True), *a.axes))
    right = b if len(b.axes) > 1 else Value(b.node, (*b.axes, g.axes.fresh(1, made=True)))
    product = g.dot(left, right)
    axes = product.axes if len(b.axes) > 1 else product.axes[:-1]
    if len(a.axes) == 1:
        axes = (*product.axes[:-2], *axes[len(product.axes) - 1 :])
    return Value(product.node, axes)


def _transposed(a: Value) -> Value:
    return Value(a.node, (*a.axes[:-2], a.axes[-1], a.axes[-2]))


@rule("linear.default")
def linear(g: Lowering, a: Value, weight: Value, bias: Value | None = None) -> Value:
    product = matmul(g, a, _transposed(weight) if len(weight.axes) > 1 else weight)
    return product if bias is None else add(g, product, bias)


@rule("inner.default")
def inner(g: Lowering, a: Value, b: Value) -> Value:
    if len(b.axes) > 2:
        raise Unsupported("an inner product of more than two dimensions")
    return matmul(g, a, _transposed(b) if len(b.axes) > 1 else b)


@rule("addmm.default", "addmv.default", "baddbmm.default")
def addmm(g: Lowering, bias: Value, a: Value, b: Value, *, beta: float = 1, alpha: float = 1, **_: Any) -> Value:
    product = g.map("mul", matmul(g, a, b), alpha)
    return product if beta == 0 else add(g, product, bias, beta)


@rule("_scaled_mm.default")
def scaled(
    g: Lowering, a: Value, b: Value, scale_a: Value, scale_b: Value, bias: Value | None = None,
    scale_result: Value | None = None, *_: Any,
) -> Value:  # fmt: skip
    """``torch._scaled_mm``. Each scale is one number, or one for each row of ``a`` and one for each column of ``b``."""
    if scale_result is not None or any(
        len(scale.axes) > 1 and g.axes.size(scale.axes[along]) > 1 for scale, along in ((scale_a, -1), (scale_b, -2))
    ):
        raise Unsupported("scales that are neither one per operand nor one per row of a and column of b")
    product = g.map("mul", g.map("mul", matmul(g, a, b), scale_a), scale_b)
    return product if bias is None else add(g, product, bias)


@rule("einsum.default")
def einsum(g: Lowering, equation: str, operands: Sequence[Value], **_: Any) -> Value:
    """Einsum of two operands with one shared summed letter; one of them has exactly one letter of its own."""
    inputs, _arrow, out = equation.replace(" ", "").partition("->")
    letters = inputs.split(",")
    if not out or "." in equation or len(letters) != 2 or any(len(set(term)) < len(term) for term in letters):
        raise Unsupported(f"einsum {equation!r}")
    first, second = (dict(zip(term, value.axes, strict=True)) for term, value in zip(letters, operands, strict=True))
    a, b = operands
    if len([x for x in second if x not in first]) != 1:
        (first, a), (second, b) = (second, b), (first, a)
    batch = [x for x in out if x in first and x in second]
    rows, columns = (
        [x for x in out if x in mine and x not in other] for mine, other in ((first, second), (second, first))
    )
    summed = [x for x in first if x in second and x not in out]
    named = {*batch, *rows, *columns, *summed}
    if len(columns) != 1 or not rows or len(summed) != 1 or named != {*first, *second}:
        raise Unsupported(f"einsum {equation!r}")
    left = [first[x] for x in (*batch, *rows, *summed)]
    between = [g.axes.fresh(1, made=True) for _ in rows[1:]]
    right = [*(second[x] for x in batch), *between, second[summed[0]], second[columns[0]]]
    product = matmul(g, Value(a.node, tuple(left)), Value(b.node, tuple(right)))
    made = dict(zip((*batch, *rows, *columns), product.axes, strict=True))
    return Value(product.node, tuple(made[x] for x in out))
