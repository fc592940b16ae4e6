"""Linear layer for few rows, y = x @ w.T: a block computes a few columns of y, its threads split the sum."""

import math

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

# rows: rows of w that a block takes, at most; depth: vectors of each row that a thread loads before it multiplies.
TUNABLE = {"threads": (64, 128, 256), "rows": (2, 4, 8), "depth": (1, 2, 4)}


def constraints(config, workload, device):
    # A thread holds depth vectors of every row and of every token in registers, four registers each.
    tokens = workload.inputs[0].shape[0]
    return config["depth"] * (config["rows"] + tokens) <= 32


@cute.jit
def load_vectors(
    g: cute.Tensor,
    r: cute.Tensor,
    start: cutlass.Int32,
    vectors: cutlass.Constexpr,
    count: cutlass.Constexpr,
    depth: cutlass.Constexpr,
    threads: cutlass.Constexpr,
    whole: cutlass.Constexpr,
):
    """Loads depth vectors of each of count rows; what lies past the row's end becomes zero."""
    if cutlass.const_expr(not whole):
        r.fill(0.0)
    for i in cutlass.range_constexpr(depth):
        column = start + i * threads
        for j in cutlass.range_constexpr(count):
            if cutlass.const_expr(whole):
                cute.autovec_copy(g[None, column, j], r[None, j, i])
            else:
                if column < vectors:
                    cute.autovec_copy(g[None, column, j], r[None, j, i])


@cute.kernel
def linear_kernel(
    mX: cute.Tensor,
    mW: cute.Tensor,
    mY: cute.Tensor,
    k: cutlass.Constexpr,
    tokens: cutlass.Constexpr,
    vec: cutlass.Constexpr,
    threads: cutlass.Constexpr,
    rows: cutlass.Constexpr,
    depth: cutlass.Constexpr,
):
    tidx, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    first = block * rows  # the block's first row of w
    vectors = k // vec  # whole vectors in a row: vec divides k
    span = threads * depth  # vectors of a row that the block takes in one step
    steps = (vectors + span - 1) // span
    gX = cute.make_tensor(mX.iterator, cute.make_layout((vec, vectors, tokens), stride=(1, vec, k)))
    gW = cute.make_tensor(mW[first, None].iterator, cute.make_layout((vec, vectors, rows), stride=(1, vec, k)))

    rX = cute.make_rmem_tensor(cute.make_layout((vec, tokens, depth)), mX.element_type)
    rW = cute.make_rmem_tensor(cute.make_layout((vec, rows, depth)), mW.element_type)
    fX = cute.make_rmem_tensor(cute.make_layout((vec, tokens, depth)), cutlass.Float32)
    fW = cute.make_rmem_tensor(cute.make_layout((vec, rows, depth)), cutlass.Float32)
    acc = cute.make_rmem_tensor(cute.make_layout((rows, tokens)), cutlass.Float32)
    acc.fill(0.0)

    for step in cutlass.range_constexpr(steps):
        start = step * span + tidx
        whole = (step + 1) * span <= vectors  # known at compile time: only the last step may be ragged
        load_vectors(gW, rW, start, vectors, rows, depth, threads, whole)
        load_vectors(gX, rX, start, vectors, tokens, depth, threads, whole)
        fW.store(rW.load().to(cutlass.Float32))
        fX.store(rX.load().to(cutlass.Float32))
        for i in cutlass.range_constexpr(depth):
            for v in cutlass.range_constexpr(vec):
                for r in cutlass.range_constexpr(rows):
                    for t in cutlass.range_constexpr(tokens):
                        acc[r, t] = acc[r, t] + fW[v, r, i] * fX[v, t, i]

    # Every thread leaves its partial sums in shared memory; then each warp adds up some of the outputs.
    warps = threads // 32
    outputs = rows * tokens
    rounds = (outputs + warps - 1) // warps
    smem = cutlass.utils.SmemAllocator()
    partial = smem.allocate_tensor(cutlass.Float32, cute.make_layout((threads, rounds * warps)), 16)
    for r in cutlass.range_constexpr(rows):
        for t in cutlass.range_constexpr(tokens):
            partial[tidx, r * tokens + t] = acc[r, t]
    cute.arch.sync_threads()

    lane = cute.arch.lane_idx()
    warp = cute.arch.warp_idx()
    for j in cutlass.range_constexpr(rounds):
        output = j * warps + warp
        total = cutlass.Float32(0.0)
        for i in cutlass.range_constexpr(warps):
            total = total + partial[i * 32 + lane, output]
        total = cute.arch.warp_reduction(total, lambda a, b: a + b)
        if lane == 0 and output < outputs:  # the last round may have more warps than outputs
            mY[output % tokens, first + output // tokens] = mY.element_type(total)


@cute.jit
def launch(
    x: cute.Tensor,
    w: cute.Tensor,
    y: cute.Tensor,
    stream: cuda.CUstream,
    threads: cutlass.Constexpr = 128,
    rows: cutlass.Constexpr = 4,
    depth: cutlass.Constexpr = 2,
):
    # The widest vector that divides a row, and a number of rows a block that divides the output features.
    tokens = x.shape[0]
    k = x.shape[1]
    features = w.shape[0]
    vec = math.gcd(k, 128 // x.element_type.width)
    block_rows = math.gcd(features, rows)
    linear_kernel(x, w, y, k, tokens, vec, threads, block_rows, depth).launch(
        grid=[features // block_rows, 1, 1], block=[threads, 1, 1], stream=stream
    )
