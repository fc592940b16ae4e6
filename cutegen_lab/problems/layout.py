"""Strides for another shape with the same memory layout."""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_lab.core.problem import TensorSpec


def strides_for(spec: TensorSpec, shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of ``spec`` for another shape: the same order of dimensions in memory, with the same gaps."""
    if not spec.strides:
        return ()
    strides = list(spec.strides)
    dense = dense_before = 1
    for axis in sorted(range(len(shape)), key=lambda a: (spec.strides[a], spec.shape[a])):
        gap = spec.strides[axis] - dense_before
        strides[axis] = dense + gap
        dense, dense_before = strides[axis] * shape[axis], spec.strides[axis] * spec.shape[axis]
    return tuple(strides)
