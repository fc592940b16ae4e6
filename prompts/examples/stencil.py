"""Average pooling, 3 x 3, stride 2, padding 1: neighbouring threads take neighbouring outputs; outside it is 0."""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

TUNABLE = {"threads": (128, 256, 512), "outputs": (1, 2, 4)}


@cute.jit
def value_at(gX: cute.Tensor, row: cutlass.Int32, column: cutlass.Int32, image: cutlass.Int32):
    """Element of the image, 0 outside: the address is moved inside, so that the load needs no branch."""
    height, width, _ = gX.shape
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    near = gX[cutlass.min(cutlass.max(row, 0), height - 1), cutlass.min(cutlass.max(column, 0), width - 1), image]
    return near.to(cutlass.Float32) if inside else cutlass.Float32(0.0)


@cute.kernel
def pool_kernel(
    mX: cute.Tensor,
    mY: cute.Tensor,
    shape: cutlass.Constexpr,
    out: cutlass.Constexpr,
    images: cutlass.Constexpr,
    threads: cutlass.Constexpr,
    outputs: cutlass.Constexpr,
):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    height, width = shape
    rows, columns = out
    total = rows * columns * images
    gX = cute.make_tensor(mX.iterator, cute.make_layout((height, width, images), stride=(width, 1, height * width)))
    gY = cute.make_tensor(mY.iterator, cute.make_layout(total))

    first = bidx * threads * outputs + tidx
    rY = cute.make_rmem_tensor(cute.make_layout(outputs), cutlass.Float32)
    for o in cutlass.range_constexpr(outputs):
        at = cutlass.min(first + o * threads, total - 1)  # threads past the end compute the last output again
        column, row, image = at % columns, at // columns % rows, at // columns // rows
        value = cutlass.Float32(0.0)
        for i in cutlass.range_constexpr(3):
            for j in cutlass.range_constexpr(3):
                value = value + value_at(gX, row * 2 - 1 + i, column * 2 - 1 + j, image)
        rY[o] = value / 9.0
    for o in cutlass.range_constexpr(outputs):
        at = first + o * threads
        if at < total:
            gY[at] = rY[o].to(mY.element_type)


@cute.jit
def launch(
    x: cute.Tensor,
    y: cute.Tensor,
    stream: cuda.CUstream,
    threads: cutlass.Constexpr = 256,
    outputs: cutlass.Constexpr = 4,
):
    images = x.shape[0] * x.shape[1]
    total = y.shape[2] * y.shape[3] * images
    blocks = (total + threads * outputs - 1) // (threads * outputs)
    pool_kernel(x, y, (x.shape[2], x.shape[3]), (y.shape[2], y.shape[3]), images, threads, outputs).launch(
        grid=[blocks, 1, 1], block=[threads, 1, 1], stream=stream
    )
