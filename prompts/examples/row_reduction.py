"""Row softmax, one block a row, any row length: the row stays in registers between the two reductions."""

import math

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

TUNABLE = {"threads": (64, 128, 256, 512, 1024)}


def constraints(config, workload, device):
    # Every thread keeps its share of the row in registers: at most 64 values.
    return workload.inputs[0].shape[-1] <= 64 * config["threads"]


@cute.jit
def block_reduce(
    value: cutlass.Float32,
    buffer: cute.Tensor,
    op: cutlass.Constexpr,
    init: cutlass.Constexpr,
    warps: cutlass.Constexpr,
):
    """Reduces one value a thread over the block; every thread gets the result."""
    lane = cute.arch.lane_idx()
    warp = cute.arch.warp_idx()
    value = cute.arch.warp_reduction(value, op)
    if lane == 0:
        buffer[warp] = value
    cute.arch.sync_threads()
    partial = cutlass.Float32(init)
    if lane < warps:
        partial = buffer[lane]
    return cute.arch.warp_reduction(partial, op)


@cute.kernel
def softmax_kernel(
    mX: cute.Tensor, mY: cute.Tensor, n: cutlass.Constexpr, vec: cutlass.Constexpr, threads: cutlass.Constexpr
):
    tidx, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    vectors = n // vec  # whole vectors in a row: vec divides n
    chunks = (vectors + threads - 1) // threads
    gX = cute.make_tensor(mX[row, None].iterator, cute.make_layout((vec, vectors), stride=(1, vec)))
    gY = cute.make_tensor(mY[row, None].iterator, cute.make_layout((vec, vectors), stride=(1, vec)))

    smem = cutlass.utils.SmemAllocator()
    maxima = smem.allocate_tensor(cutlass.Float32, cute.make_layout(32), 16)
    sums = smem.allocate_tensor(cutlass.Float32, cute.make_layout(32), 16)

    rX = cute.make_rmem_tensor(cute.make_layout((vec, chunks)), mX.element_type)
    rX.fill(-float("inf"))  # what lies past the row's end changes neither the maximum nor the sum
    for i in cutlass.range_constexpr(chunks):
        column = i * threads + tidx
        if column < vectors:
            cute.autovec_copy(gX[None, column], rX[None, i])

    x = rX.load().to(cutlass.Float32)
    peak = x.reduce(cute.ReductionOp.MAX, -float("inf"), reduction_profile=0)
    peak = block_reduce(peak, maxima, cute.arch.fmax, -float("inf"), threads // 32)
    e = cute.math.exp2((x - peak) * math.log2(math.e), fastmath=True)
    total = e.reduce(cute.ReductionOp.ADD, 0.0, reduction_profile=0)
    total = block_reduce(total, sums, lambda a, b: a + b, 0.0, threads // 32)

    rY = cute.make_rmem_tensor(cute.make_layout((vec, chunks)), mY.element_type)
    rY.store((e * (1.0 / total)).to(mY.element_type))
    for i in cutlass.range_constexpr(chunks):
        column = i * threads + tidx
        if column < vectors:
            cute.autovec_copy(rY[None, i], gY[None, column])


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream, threads: cutlass.Constexpr = 256):
    # Shapes are Python ints here, so plain Python picks the widest vector (16 bytes at most) that divides the row.
    n = x.shape[1]
    vec = math.gcd(n, 128 // x.element_type.width)
    softmax_kernel(x, y, n, vec, threads).launch(grid=[x.shape[0], 1, 1], block=[threads, 1, 1], stream=stream)
