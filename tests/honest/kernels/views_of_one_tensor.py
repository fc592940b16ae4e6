"""Heads before tokens: a permutation done by strides alone, seen from a flat index.

Odd: the host makes views with strides that are not sorted, and one of the views has a mode of two sizes. Legal: views
stay inside their tensors.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def permute_kernel(gX: cute.Tensor, gY: cute.Tensor, threads: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    for i in range(bidx * threads + tidx, cute.size(gY), 4 * threads):
        gY[i] = (gX[i].to(cutlass.Float32) * 2.0).to(gY.element_type)


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    a, b, c = x.shape
    # The first mode varies fastest: channels, then the old first dimension, then the old second.
    gX = cute.make_tensor(x.iterator, cute.make_layout(((c, a), b), stride=((1, b * c), c)))
    gY = cute.make_tensor(y.iterator, cute.make_layout(a * b * c))
    permute_kernel(gX, gY, 128).launch(grid=[4, 1, 1], block=[128, 1, 1], stream=stream)
