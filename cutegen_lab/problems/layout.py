"""The strides of a tensor that is to lie in memory as another of another shape does."""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_lab.core.problem import TensorSpec


def strides_for(spec: TensorSpec, shape: Sequence[int]) -> tuple[int, ...]:
    """Those of ``spec`` for another shape: dimensions lie in memory in the same order, with the same gaps between."""
    if not spec.strides:
        return ()
    strides = list(spec.strides)
    dense = dense_before = 1
    for axis in sorted(range(len(shape)), key=lambda a: (spec.strides[a], spec.shape[a])):
        gap = spec.strides[axis] - dense_before
        strides[axis] = dense + gap
        dense, dense_before = strides[axis] * shape[axis], spec.strides[axis] * spec.shape[axis]
    return tuple(strides)
