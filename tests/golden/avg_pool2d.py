"""tested: average pooling.

out = max(avg_pool2d(x, 3×3), 0)

Each thread sums the windows of its results in fp32; adjacent threads read and write adjacent elements of a
row. The epilogue is applied in fp32.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
from cutlass import Float32

TUNABLE = {
    "threads": (64, 128, 256, 512, 1024),
    "outputs": (1, 2, 4, 8),
}


def constraints(config, workload, device):
    return not why_not(config, 9)


MAX_VALUES = 128  # maximum number of values in a thread's windows, which are all loaded before the first sum


def why_not(config, window):
    """The limit that ``config`` exceeds, as text; "" if it is feasible. ``window``: number of elements of a window."""
    values = config["outputs"] * window
    if config["outputs"] > 1 and values > MAX_VALUES:
        return f"{values} values in flight in a thread's registers (at most {MAX_VALUES})"
    return ""


OVERLAP = False  # whether all kernels of this module start early; set by modules with several kernels


def overlapping():
    """Whether a kernel can start before the previous one has ended: from sm_90 on."""
    return cutlass.cutlass_dsl.BaseDSL._get_dsl().get_arch_enum() >= cutlass.Arch.sm_90


def start_next_and_wait():
    """Lets the next kernel start, then waits until the previous kernel's writes are visible."""
    cute.arch.griddepcontrol_launch_dependents()
    cute.arch.griddepcontrol_wait()


@cute.jit
def within(there: cutlass.Boolean, value: Float32, neutral: Float32):
    return value if there else neutral


def view(pointer, shape, stride):
    """The memory at ``pointer`` as a tensor with this shape, and strides in elements."""
    return cute.make_tensor(pointer, cute.make_layout(shape, stride=stride))


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


def epilogue(mean):
    return cute.where(mean < 0.0, 0.0, mean)


@cute.jit
def launch(
    x: cute.Tensor,
    out: cute.Tensor,
    stream: cuda.CUstream,
    threads: cutlass.Constexpr = 256,
    outputs: cutlass.Constexpr = 2,
):
    images = x.shape[0] * x.shape[1]
    gX = view(x.iterator, (x.shape[3], x.shape[2], images), (1, x.shape[3], x.shape[2] * x.shape[3]))
    gOut = view(out.iterator, (out.shape[3], out.shape[2], images), (out.stride[3], out.stride[2], out.stride[1]))
    extras, sizes = (), ()
    avg_pool2d(gX, gOut, extras, stream, (3, 3), (2, 2), (1, 1), True, 0, sizes, threads, outputs)
