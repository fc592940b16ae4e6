"""Max pooling, 3×3 with stride 2 and padding 1, one output a thread, windows clipped at the borders.

Odd: four dimensions are walked as one, by divisions with constants. Legal: NaN spreads to its windows, as in PyTorch.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def pool_kernel(mX: cute.Tensor, mY: cute.Tensor, threads: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    height, width = mX.shape[2], mX.shape[3]
    channels, rows, columns = mY.shape[1], mY.shape[2], mY.shape[3]
    i = bidx * threads + tidx
    if i < cute.size(mY):
        column = i % columns
        row = i // columns % rows
        channel = i // (columns * rows) % channels
        image = i // (columns * rows * channels)
        peak = cutlass.Float32(-float("inf"))
        for dy in cutlass.range_constexpr(3):
            for dx in cutlass.range_constexpr(3):
                y, x = row * 2 + dy - 1, column * 2 + dx - 1
                if y >= 0 and y < height and x >= 0 and x < width:
                    peak = cute.arch.fmax(peak, mX[image, channel, y, x], nan=True)
        mY[image, channel, row, column] = peak


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream, threads: cutlass.Constexpr = 128):
    blocks = (cute.size(y) + threads - 1) // threads
    pool_kernel(x, y, threads).launch(grid=[blocks, 1, 1], block=[threads, 1, 1], stream=stream)
