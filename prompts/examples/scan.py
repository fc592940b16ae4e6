"""Cumulative sum of each row: scans within the thread, the warp and the block; a prefix carries from step to step."""

import math

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

TUNABLE = {"threads": (64, 128, 256, 512)}


@cute.jit
def warp_scan(value: cutlass.Float32):
    """Inclusive scan: each lane gets the sum of the lanes up to itself."""
    lane = cute.arch.lane_idx()
    for i in cutlass.range_constexpr(5):
        below = cute.arch.shuffle_sync_up(value, 1 << i)
        if lane >= (1 << i):
            value = below + value
    return value


@cute.jit
def below_lane(value: cutlass.Float32):
    """The value of the lane below; 0 in lane 0."""
    below = cute.arch.shuffle_sync_up(value, 1)
    return below if cute.arch.lane_idx() > 0 else cutlass.Float32(0.0)


@cute.kernel
def scan_kernel(
    mX: cute.Tensor, mY: cute.Tensor, n: cutlass.Constexpr, vec: cutlass.Constexpr, threads: cutlass.Constexpr
):
    tidx, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    lane = cute.arch.lane_idx()
    warp = cute.arch.warp_idx()
    warps = threads // 32
    vectors = n // vec  # whole vectors in a row: vec divides n
    gX = cute.make_tensor(mX[row, None].iterator, cute.make_layout((vec, vectors), stride=(1, vec)))
    gY = cute.make_tensor(mY[row, None].iterator, cute.make_layout((vec, vectors), stride=(1, vec)))
    smem = cutlass.utils.SmemAllocator()
    totals = smem.allocate_tensor(cutlass.Float32, cute.make_layout((32, 2)), 16)  # double buffer: a warp may run ahead

    rX = cute.make_rmem_tensor(cute.make_layout(vec), mX.element_type)
    rSum = cute.make_rmem_tensor(cute.make_layout(vec), cutlass.Float32)
    rY = cute.make_rmem_tensor(cute.make_layout(vec), mY.element_type)
    carried = cutlass.Float32(0.0)  # sum of all earlier steps
    for step in cutlass.range((vectors + threads - 1) // threads, unroll=1):
        column = step * threads + tidx
        rX.fill(0.0)
        if column < vectors:
            cute.autovec_copy(gX[None, column], rX)
        rSum.store(rX.load().to(cutlass.Float32))
        for j in cutlass.range_constexpr(1, vec):
            rSum[j] = rSum[j - 1] + rSum[j]

        upto = warp_scan(rSum[vec - 1])
        before = below_lane(upto)
        if lane == 31:
            totals[warp, step % 2] = upto
        cute.arch.sync_threads()
        total = cutlass.Float32(0.0)
        if lane < warps:
            total = totals[lane, step % 2]
        total = warp_scan(total)
        earlier = cute.arch.shuffle_sync(below_lane(total), warp)
        start = carried + earlier + before
        for j in cutlass.range_constexpr(vec):
            rSum[j] = start + rSum[j]
        carried = carried + cute.arch.shuffle_sync(total, 31)

        rY.store(rSum.load().to(mY.element_type))
        if column < vectors:
            cute.autovec_copy(rY, gY[None, column])


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream, threads: cutlass.Constexpr = 256):
    rows, n = x.shape
    vec = math.gcd(n, 128 // x.element_type.width)
    scan_kernel(x, y, n, vec, threads).launch(grid=[rows, 1, 1], block=[threads, 1, 1], stream=stream)
