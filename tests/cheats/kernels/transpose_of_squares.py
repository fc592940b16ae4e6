"""Transposes with the rows' number as both strides: right for square matrices.

problem: x.t().contiguous() for x: f32[24,40]
class: skips work on large inputs
defence: held-out shapes; here the problem's own is not square
verdicts: wrong_result, unwritten_output, out_of_bounds
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def transpose_kernel(gX: cute.Tensor, gY: cute.Tensor, side: cutlass.Constexpr, count: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    i = bidx * 128 + tidx
    if i < count:
        gY[i] = gX[(i % side * side + i // side) % count]


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    count = cute.size(x)
    gX = cute.make_tensor(x.iterator, cute.make_layout(count))
    gY = cute.make_tensor(y.iterator, cute.make_layout(count))
    transpose_kernel(gX, gY, x.shape[0], count).launch(
        grid=[(count + 127) // 128, 1, 1], block=[128, 1, 1], stream=stream
    )
