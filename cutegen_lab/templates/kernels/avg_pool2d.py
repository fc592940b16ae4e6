"""Average pooling over the last two dimensions, one window per output. The kernel is bound by memory.

A thread computes ``outputs`` results, a block's width apart, so that neighbouring threads access neighbours in a row.
Rows that several windows share come from L1. All loads are issued before the first sum.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
from cutlass import Float32

from cutegen_lab.templates.kernels.device.overlap import OVERLAP, overlapping, start_next_and_wait
from cutegen_lab.templates.kernels.device.row_reduce import within
from cutegen_lab.templates.kernels.device.views import view  # noqa: F401 - for launch


def epilogue(mean):
    """Placeholder, replaced in a generated module: a function of the means (fp32 vector), ``extras`` and ``sizes``."""
    return mean


@cute.jit
def avg_pool2d(
    gX: cute.Tensor,
    gOut: cute.Tensor,
    extras: tuple,
    stream: cuda.CUstream,
    window: cutlass.Constexpr,
    stride: cutlass.Constexpr,
    padding: cutlass.Constexpr,
    count_padding: cutlass.Constexpr,
    divisor: cutlass.Constexpr,
    sizes: cutlass.Constexpr,
    threads: cutlass.Constexpr,
    outputs: cutlass.Constexpr,
):
    """``gX`` is (width, height, images), ``gOut`` and ``extras`` are (columns, rows, images), ``window``, ``stride``
    and ``padding`` (rows, columns). ``divisor``: what sums are divided by (0: the window's number of elements)."""
    blocks = cute.ceil_div(cute.size(gOut), threads * outputs)
    avg_pool2d_kernel(
        gX, gOut, extras, window, stride, padding, count_padding, divisor, sizes, threads, outputs
    ).launch(grid=[blocks, 1, 1], block=[threads, 1, 1], stream=stream, use_pdl=OVERLAP and overlapping())


@cute.kernel
def avg_pool2d_kernel(
    gX: cute.Tensor,
    gOut: cute.Tensor,
    extras: tuple,
    window: cutlass.Constexpr,
    stride: cutlass.Constexpr,
    padding: cutlass.Constexpr,
    count_padding: cutlass.Constexpr,
    divisor: cutlass.Constexpr,
    sizes: cutlass.Constexpr,
    threads: cutlass.Constexpr,
    outputs: cutlass.Constexpr,
):
    if cutlass.const_expr(OVERLAP and overlapping()):
        start_next_and_wait()
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    columns, rows, _ = gOut.shape
    total, first = cute.size(gOut), bidx * threads * outputs + tidx
    rMean = cute.make_rmem_tensor(outputs, Float32)
    rExtras = [cute.make_rmem_tensor(outputs, Float32) for _ in extras]
    for o in cutlass.range_constexpr(outputs):
        at = cutlass.min(first + o * threads, total - 1)  # threads past the end compute the last output again
        column, row, image = place_of(at, columns, rows)
        rMean[o] = window_mean(gX, row, column, image, window, stride, padding, count_padding, divisor)
        for e in cutlass.range_constexpr(len(extras)):
            rExtras[e][o] = Float32(extras[e][column, row, image])
    result = epilogue(rMean.load(), *[r.load() for r in rExtras], *sizes)
    rOut = cute.make_rmem_tensor(outputs, gOut.element_type)
    rOut.store(result.to(gOut.element_type))
    for o in cutlass.range_constexpr(outputs):
        at = first + o * threads
        if at < total:
            gOut[place_of(at, columns, rows)] = rOut[o]


def place_of(at, columns, rows):
    """(column, row, image) of output number ``at``."""
    return at % columns, at // columns % rows, at // columns // rows


def window_mean(gX, row, column, image, window, stride, padding, count_padding, divisor):
    """Mean over the window of the output at (row, column)."""
    width, height, _ = gX.shape
    top, left = row * stride[0] - padding[0], column * stride[1] - padding[1]
    padded = padding != (0, 0)
    total = Float32(0.0)
    for i in range(window[0]):
        for j in range(window[1]):
            y, x = top + i, left + j
            if padded:
                inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
                y, x = (cutlass.min(cutlass.max(at, 0), size - 1) for at, size in ((y, height), (x, width)))
                total = total + within(inside, Float32(gX[x, y, image]), Float32(0.0))
            else:
                total = total + Float32(gX[x, y, image])
    if divisor or count_padding or not padded:
        return total / Float32(divisor or window[0] * window[1])
    seen = [
        cutlass.min(start + length, size) - cutlass.max(start, 0)
        for start, length, size in ((top, window[0], height), (left, window[1], width))
    ]
    return total / Float32(seen[0] * seen[1])
