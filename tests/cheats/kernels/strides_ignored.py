"""Reads every input as if it were row-major and dense, which needs no strides and reads whole lines.

problem: (a + b) * scale, where a is column-major, b a slice of a wider matrix, scale every second element
class: skips work on large inputs
defence: inputs lie as the problem lays them out; what lies between their elements is noise
verdicts: wrong_result
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def dense_kernel(gA: cute.Tensor, gB: cute.Tensor, gScale: cute.Tensor, gOut: cute.Tensor, width: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    i = bidx * 128 + tidx
    if i < cute.size(gOut):
        gOut[i] = (gA[i] + gB[i]) * gScale[i % width]


@cute.jit
def launch(a: cute.Tensor, b: cute.Tensor, scale: cute.Tensor, out: cute.Tensor, stream: cuda.CUstream):
    count = cute.size(out)
    gA, gB, gOut = (cute.make_tensor(t.iterator, cute.make_layout(count)) for t in (a, b, out))
    gScale = cute.make_tensor(scale.iterator, cute.make_layout(cute.size(scale)))
    dense_kernel(gA, gB, gScale, gOut, out.shape[1]).launch(
        grid=[(count + 127) // 128, 1, 1], block=[128, 1, 1], stream=stream
    )
