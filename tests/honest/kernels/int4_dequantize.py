"""Unpacks two int4 numbers from each byte and scales them (the weights of AWQ and of GPTQ).

Odd: a uint8 input, of which every bit counts. Legal: shifts and masks of what was loaded.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def dequantize_kernel(mPacked: cute.Tensor, mScale: cute.Tensor, mOut: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    scale = mScale[row, 0].to(cutlass.Float32)
    for c in range(thread, mPacked.shape[1], 128):
        byte = mPacked[row, c].to(cutlass.Int32) & 255
        low = cutlass.Float32((byte & 15) - 8)
        high = cutlass.Float32((byte >> 4) - 8)
        mOut[row, 2 * c] = (low * scale).to(mOut.element_type)
        mOut[row, 2 * c + 1] = (high * scale).to(mOut.element_type)


@cute.jit
def launch(packed: cute.Tensor, scale: cute.Tensor, out: cute.Tensor, stream: cuda.CUstream):
    dequantize_kernel(packed, scale, out).launch(grid=[packed.shape[0], 1, 1], block=[128, 1, 1], stream=stream)
