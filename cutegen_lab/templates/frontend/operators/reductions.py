"""Reductions over one or several dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from cutegen_lab.templates.frontend.lowering import Lowering, Unsupported, Value
from cutegen_lab.templates.frontend.operators.registry import rule


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
    """(best value, its first index). NaN counts as best, as in PyTorch."""
    if dim is None:
        if len(a.axes) != 1:
            raise Unsupported(f"arg{op} over all dimensions (without dim)")
        dim = 0
    best = g.reduce(op, a, dim, True)
    is_best = g.map("or", g.map("eq", a, best), g.map("isnan", a))
    where = g.map("where", is_best, g.position(a, dim), float(1 << 24))
    value = best if keepdim else g.reduce(op, a, dim, False)
    return value, g.reduce("min", where, dim, keepdim, name=f"arg{op}")


@rule("cumsum.default")
def cumsum(g: Lowering, a: Value, dim: int, **_: Any) -> Value:
    return g.scan("add", a, dim) if a.axes else a


@rule("cumprod.default")
def cumprod(g: Lowering, a: Value, dim: int, **_: Any) -> Value:
    return g.scan("mul", a, dim) if a.axes else a


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


@rule("any.default", "any.dim", "any.dims")
def any_(g: Lowering, a: Value, dim: Any = None, keepdim: bool = False) -> Value:
    return g.map("ne", g.reduce("max", g.map("ne", a, 0.0), dim, keepdim), 0.0)


@rule("all.default", "all.dim", "all.dims")
def all_(g: Lowering, a: Value, dim: Any = None, keepdim: bool = False) -> Value:
    return g.map("ne", g.reduce("min", g.map("ne", a, 0.0), dim, keepdim), 0.0)


@rule("var.correction")
def var(g: Lowering, a: Value, dim: Any = None, *, correction: float | None = 1, keepdim: bool = False) -> Value:
    return g.variance(a, dim, 1 if correction is None else correction, keepdim)[0]


@rule("var_mean.correction")
def var_mean(
    g: Lowering, a: Value, dim: Any = None, *, correction: float | None = 1, keepdim: bool = False
) -> tuple[Value, Value]:
    """If an infinity makes the variance NaN, PyTorch's mean is NaN too, unless there is only one element."""
    variance, average = g.variance(a, dim, 1 if correction is None else correction, keepdim)
    apart = g.variance(a, dim, 0, keepdim)[0]
    return variance, g.map("where", g.map("isnan", apart), apart, average)


@rule("std.correction")
def std(g: Lowering, a: Value, dim: Any = None, *, correction: float | None = 1, keepdim: bool = False) -> Value:
    return g.map("sqrt", var(g, a, dim, correction=correction, keepdim=keepdim))


@rule("std_mean.correction")
def std_mean(
    g: Lowering, a: Value, dim: Any = None, *, correction: float | None = 1, keepdim: bool = False
) -> tuple[Value, Value]:
    variance, average = var_mean(g, a, dim, correction=correction, keepdim=keepdim)
    return g.map("sqrt", variance), average


def _older(of: Callable[..., Any]) -> Callable[..., Any]:
    """Overloads of ``of`` with an argument ``unbiased`` instead of ``correction``."""

    def by_dim(g: Lowering, a: Value, dim: Any = None, unbiased: bool = True, keepdim: bool = False) -> Any:
        return of(g, a, dim, correction=int(unbiased), keepdim=keepdim)

    def of_all(g: Lowering, a: Value, unbiased: bool = True) -> Any:
        return of(g, a, None, correction=int(unbiased))

    name = of.__name__
    rule(f"{name}.dim")(by_dim)
    rule(f"{name}.default")(of_all)
    return of


for _statistic in (var, var_mean, std, std_mean):
    _older(_statistic)


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
