"""Pooling over windows of the last two dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_lab.templates.frontend.expr import Dims, Pool
from cutegen_lab.templates.frontend.lowering import Lowering, Unsupported, Value
from cutegen_lab.templates.frontend.operators.registry import rule


@rule("avg_pool2d.default")
def avg_pool2d(
    g: Lowering, a: Value, kernel_size: Sequence[int] | int, stride: Sequence[int] | int = (),
    padding: Sequence[int] | int = 0, ceil_mode: bool = False, count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Value:  # fmt: skip
    if ceil_mode:
        raise Unsupported("pooling windows that reach beyond the padding (ceil_mode)")
    window, before = _pair(kernel_size), _pair(padding)
    step = _pair(stride) if stride else window
    sizes = [
        (g.axes.size(axis) + 2 * zeros - length) // by + 1
        for axis, zeros, length, by in zip(a.axes[-2:], before, window, step, strict=True)
    ]

    def pool(tensor: int, axes: Dims) -> Pool:
        return Pool(tensor, axes, window, step, before, count_include_pad, divisor_override)

    return g.pool(a, sizes, pool)


def _pair(numbers: Sequence[int] | int) -> tuple[int, int]:
    """(rows, columns) from one number or a list of one or two."""
    first, *rest = [numbers] if isinstance(numbers, int) else numbers
    return int(first), int(rest[0] if rest else first)
