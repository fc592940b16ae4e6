"""What kernels that reduce everything to single numbers call: two kernels, so that the whole GPU reads.

The first kernel's blocks walk all elements and leave a partial result each in a workspace; the second, one block,
reduces those and works out the results. The order of every sum is fixed, so results are the same at every call.
"""

import cutlass
import cutlass.cute as cute
from cutlass import Float32

from cutegen_lab.templates.kernels.device.overlap import overlapping  # noqa: F401 - of both kernels
from cutegen_lab.templates.kernels.device.row_io import fetch  # noqa: F401 - of the first kernel
from cutegen_lab.templates.kernels.device.row_reduce import pairwise, row_reduce, values_of  # noqa: F401 - of both


def inside(start, stride, vectors, mine, sure):
    """1 for each of a thread's values that lies inside, 0 past the end; None where none ever does."""
    vec, loads = mine.shape
    if sure == loads:
        return None
    rInside = cute.make_rmem_tensor(mine, Float32)
    for i in range(loads):
        left = cutlass.max(vectors - (start + i * stride), 0)
        for j in range(vec):
            rInside[j, i] = Float32(cutlass.min(left, 1))
    return rInside.load()


def only(values, real, neutral):
    """``values``, and what changes nothing in their place past the end."""
    if real is None:
        return values
    return cute.where(real > 0.0, values, cute.full_like(values, neutral))
