"""Causal depthwise convolution over time, as in state-space models: a KernelBench ``Model`` with weight and bias.

Odd: the first outputs use fewer taps than the rest. Legal: the reference pads with zeros, and zeros need no load.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def conv_kernel(mX: cute.Tensor, mW: cute.Tensor, mB: cute.Tensor, mY: cute.Tensor, threads: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, channel, image = cute.arch.block_idx()
    taps = mW.shape[2]
    t = bidx * threads + tidx
    if t < mY.shape[2]:
        total = mB[channel]
        for tap in cutlass.range_constexpr(taps):
            source = t + tap - (taps - 1)
            if source >= 0:
                total += mX[image, channel, source] * mW[channel, 0, tap]
        mY[image, channel, t] = total


@cute.jit
def launch(
    x: cute.Tensor,
    weight: cute.Tensor,
    bias: cute.Tensor,
    y: cute.Tensor,
    stream: cuda.CUstream,
    threads: cutlass.Constexpr = 64,
):
    images, channels, length = y.shape
    conv_kernel(x, weight, bias, y, threads).launch(
        grid=[(length + threads - 1) // threads, channels, images], block=[threads, 1, 1], stream=stream
    )
