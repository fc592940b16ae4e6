"""Reductions of rows: a row stays in registers between its reductions, and is read once.

A row is split over ``threads_per_row`` threads of each of ``cluster_n`` blocks. Each thread reduces its share
(``fold``), then the warp and the warps of the row (``row_reduce``), then the cluster's blocks (``cluster_reduce``). A
share is walked in steps of up to ``loads`` vectors, all loaded before the first is used. The kernel is the problem's
own: its walks, and what each computes, follow from the reductions; it is made of what stands here.
"""

import cutlass
import cutlass.cute as cute
from cutlass import Float32

from cutegen_lab.templates.kernels.device.cluster_reduce import cluster_reduce
from cutegen_lab.templates.kernels.device.finish import total_kernel  # noqa: F401 - of totals
from cutegen_lab.templates.kernels.device.lasting_loads import load_lasting
from cutegen_lab.templates.kernels.device.moments import centre_of, cluster_moments, row_moments, together
from cutegen_lab.templates.kernels.device.online_softmax import finite, rescale
from cutegen_lab.templates.kernels.device.overlap import overlapping
from cutegen_lab.templates.kernels.device.row_io import fetch, pick, positions, put
from cutegen_lab.templates.kernels.device.row_reduce import pairwise, row_reduce
from cutegen_lab.templates.kernels.device.row_staging import stage, stageable, unstage

# What the kernel of a problem is made of, beside what this file has.
__all__ = [
    "centre_of",
    "cluster_moments",
    "cluster_reduce",
    "fetch",
    "finite",
    "load_lasting",
    "overlapping",
    "pick",
    "positions",
    "put",
    "rescale",
    "row_moments",
    "row_reduce",
    "stage",
    "stageable",
    "together",
    "unstage",
]


def fold(values, combine, neutral, start, stride, vectors, sure):
    """Reduces a thread's values of one step, pairwise; vectors past the row's end count for nothing."""
    rValue = cute.make_rmem_tensor(values.shape, Float32)
    rValue.store(values)
    vec, held = values.shape
    parts = []
    for i in range(held):
        part = pairwise([rValue[j, i] for j in range(vec)], combine)
        parts += [part if i < sure else cutlass.select_(start + i * stride < vectors, part, Float32(neutral))]
    return pairwise(parts, combine)


def inside(start, stride, vectors, mine, sure):
    """How many of a thread's values of one step lie in the row."""
    vec, held = mine.shape
    count = Float32(vec * sure)
    for i in range(sure, held):
        count += cutlass.select_(start + i * stride < vectors, Float32(vec), Float32(0.0))
    return count


def share_of_row(n, vec, stride, loads):
    """How ``stride`` threads share a row: its vectors; a thread's vectors of a step, and steps; those of a step that
    every thread has: all, or all but the last one of a row's only step."""
    vectors = n // vec
    held = min(loads, -(-vectors // stride))
    steps = -(-vectors // (stride * held))
    sure = held if vectors % (stride * held) == 0 else vectors // stride if steps == 1 else 0
    return vectors, held, steps, sure
