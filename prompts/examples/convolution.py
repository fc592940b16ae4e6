"""3 x 3 convolution (stride 1, padding 1) plus bias, NCHW in f16 or bf16, as an implicit product by mma.sync.

A block computes tile_o channels at 128 positions of one image. It copies a patch of the image, padding included, to
shared memory as rows of channels, one row a position. Then every tap of the filter is a product (out channels,
channels) x (channels, positions) whose operand starts at another row of the same patch: nothing is copied per tap.
A first kernel reorders the filters to (chunk of channels and tap, block of 8 channels, out channel, channel), with
zeros up to whole tiles.
"""

import math

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import cpasync, warp

TUNABLE = {"tile_w": (8, 16, 32), "tile_o": (32, 64, 128), "block_c": (16, 32)}
PADDING, POSITIONS, WARPS = 1, 128, (2, 4)
THREADS = 32 * WARPS[0] * WARPS[1]


def constraints(config, workload, device):
    _, _, r, s = workload.inputs[1].shape
    patch = (config["tile_w"] + s - 1) * (POSITIONS // config["tile_w"] + r - 1)
    filters = config["tile_o"] * r * s  # their memory also takes the results at the end
    room = 2 * r * s * (config["block_c"] + 8) >= POSITIONS + 8
    return room and 2 * (patch + filters) * (config["block_c"] + 8) * 2 <= 220 * 1024


def workspace(workload, config):
    o, c, r, s = workload.inputs[1].shape
    chunks, tiles = -(-c // config["block_c"]), -(-o // config["tile_o"])
    shape = (chunks * r * s, config["block_c"] // 8, tiles * config["tile_o"], 8)
    return [("filters", workload.inputs[1].dtype, shape)]


@cute.kernel
def reorder_kernel(mW: cute.Tensor, mF: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    outs, channels, r, s = mW.shape
    _, groups, rows, _ = mF.shape
    at = bidx * THREADS + tidx
    if at < cute.size(mF):
        e, o, g, step = at % 8, at // 8 % rows, at // (8 * rows) % groups, at // (8 * rows * groups)
        channel, tap = (step // (r * s) * groups + g) * 8 + e, step % (r * s)
        value = mW.element_type(0.0)
        if o < outs and channel < channels:
            value = mW[o, channel, tap // s, tap % s]
        mF[step, g, o, e] = value


@cute.jit
def load_patch(
    gX: cute.Tensor,
    rX: cute.Tensor,
    row: cutlass.Int32,
    column: cutlass.Int32,
    c: cutlass.Int32,
    size: cutlass.Constexpr,
):
    """Loads 8 channels, from c on, at each of a thread's positions; neighbouring threads have neighbouring ones."""
    tidx, _, _ = cute.arch.thread_idx()
    width, height, channels = gX.shape
    rX.fill(0.0)  # padding, and channels past the last
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        at = (tidx + i * THREADS) % (size[0] * size[1])
        y, x, first = row + at // size[0], column + at % size[0], c + (tidx + i * THREADS) // (size[0] * size[1]) * 8
        if y >= 0 and y < height and x >= 0 and x < width:
            for e in cutlass.range_constexpr(8):
                if first + e < channels:
                    rX[e, i] = gX[x, y, first + e]


@cute.jit
def store_patch(rX: cute.Tensor, sX: cute.Tensor):
    """Stores what load_patch has loaded to sX (8, positions of the patch, block_c // 8)."""
    tidx, _, _ = cute.arch.thread_idx()
    _, positions, groups = sX.shape
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        at = tidx + i * THREADS
        if at < positions * groups:
            cute.autovec_copy(rX[None, i], sX[None, at % positions, at // positions])


@cute.jit
def load_filters(gF: cute.Tensor, sF: cute.Tensor, tile: cutlass.Int32, chunk: cutlass.Int32):
    """Starts to copy a chunk's filters for a tile of out channels to sF (8, tile_o, block_c // 8, taps)."""
    tidx, _, _ = cute.arch.thread_idx()
    _, tile_o, groups, taps = sF.shape
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(), gF.element_type, num_bits_per_copy=128)
    for i in cutlass.range_constexpr((groups * tile_o * taps + THREADS - 1) // THREADS):
        at = tidx + i * THREADS
        if at < groups * tile_o * taps:
            o, g, tap = at % tile_o, at // tile_o % groups, at // (groups * tile_o)
            cute.copy(atom, gF[None, tile * tile_o + o, g, chunk * taps + tap], sF[None, o, g, tap])


@cute.kernel
def convolution_kernel(
    mX: cute.Tensor,
    gF: cute.Tensor,
    mB: cute.Tensor,
    mY: cute.Tensor,
    mma: cute.TiledMma,
    taps: cutlass.Constexpr,
    tile_w: cutlass.Constexpr,
    tile_o: cutlass.Constexpr,
):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, tile, image = cute.arch.block_idx()
    dtype, block_c, tile_h = mX.element_type, 8 * gF.shape[2], POSITIONS // tile_w
    vec, vectors, height, outs, _ = mY.shape  # vec divides a row of the result
    gX = mX[None, None, None, image]
    across = (vec * vectors + tile_w - 1) // tile_w
    row, column = bidx // across * tile_h, bidx % across * tile_w
    size = (tile_w + taps[1] - 1, tile_h + taps[0] - 1)  # of the patch
    patch, n_taps = size[0] * size[1], taps[0] * taps[1]

    # Rows in shared memory are 16 bytes longer than their content: eight rows that ldmatrix reads are in other banks.
    smem = cutlass.utils.SmemAllocator()
    pitch = block_c + 8
    layout = cute.make_layout((tile_o, block_c, n_taps, 2), stride=(pitch, 1, tile_o * pitch, n_taps * tile_o * pitch))
    sF = smem.allocate_tensor(dtype, layout, 16)
    sX = smem.allocate_tensor(dtype, cute.make_layout(2 * patch * pitch), 16)
    f_vectors = cute.make_layout(
        (8, tile_o, block_c // 8, n_taps, 2), stride=(1, pitch, 8, tile_o * pitch, n_taps * tile_o * pitch)
    )
    x_vectors = cute.make_layout((8, patch, block_c // 8, 2), stride=(1, pitch, 8, patch * pitch))
    sFv, sXv = cute.make_tensor(sF.iterator, f_vectors), cute.make_tensor(sX.iterator, x_vectors)
    positions = cute.make_layout(((tile_w, tile_h), block_c), stride=((pitch, size[0] * pitch), 1))

    thr_mma = mma.get_slice(tidx)
    ldsm = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), dtype)
    read_f, read_x = cute.make_tiled_copy_A(ldsm, mma), cute.make_tiled_copy_B(ldsm, mma)
    tFs = read_f.get_slice(tidx).partition_S(sF)
    rF = mma.make_fragment_A(thr_mma.partition_A(sF[None, None, 0, 0]))
    rP = mma.make_fragment_B(thr_mma.partition_B(cute.make_tensor(sX.iterator, positions)))
    acc = cute.make_rmem_tensor(mma.partition_shape_C((tile_o, POSITIONS)), cutlass.Float32)
    acc.fill(0.0)
    rX = cute.make_rmem_tensor(cute.make_layout((8, (patch * block_c // 8 + THREADS - 1) // THREADS)), dtype)

    load_filters(gF, sFv[None, None, None, None, 0], tile, 0)
    cute.arch.cp_async_commit_group()
    load_patch(gX, rX, row - PADDING, column - PADDING, 0, size)
    store_patch(rX, sXv[None, None, None, 0])
    chunks = gF.shape[3] // n_taps
    for chunk in cutlass.range(chunks, unroll=1):
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()  # this chunk is here, and all have read the other buffer
        here, other = chunk % 2, (chunk + 1) % 2
        if chunk + 1 < chunks:  # the next chunk is under way while this one is multiplied
            load_filters(gF, sFv[None, None, None, None, other], tile, chunk + 1)
            load_patch(gX, rX, row - PADDING, column - PADDING, (chunk + 1) * block_c, size)
        cute.arch.cp_async_commit_group()
        for tap in cutlass.range_constexpr(n_taps):
            first = here * patch + tap // taps[1] * size[0] + tap % taps[1]  # row of the patch
            sP = cute.make_tensor((sX.iterator + first * pitch).align(16), positions)
            tPs = read_x.get_slice(tidx).partition_S(sP)
            for b in cutlass.range_constexpr(block_c // 16):
                cute.copy(read_f, tFs[None, None, b, tap, here], read_f.retile(rF)[None, None, b])
                cute.copy(read_x, tPs[None, None, b], read_x.retile(rP)[None, None, b])
                cute.gemm(mma, acc, rF[None, None, b], rP[None, None, b], acc)
        if chunk + 1 < chunks:
            store_patch(rX, sXv[None, None, None, other])

    # The result goes through shared memory, so that threads store whole vectors side by side.
    cute.arch.sync_threads()
    sC = cute.make_tensor(sF.iterator, cute.make_layout((tile_o, POSITIONS), stride=(POSITIONS + 8, 1)))
    coords = thr_mma.partition_C(cute.make_identity_tensor((tile_o, POSITIONS)))
    rC = cute.make_rmem_tensor(acc.layout, dtype)
    for e in cutlass.range_constexpr(cute.size(acc)):
        bias = mB[cutlass.min(tile * tile_o + coords[e][0], outs - 1)].to(cutlass.Float32)
        rC[e] = (acc[e] + bias).to(dtype)
    cute.autovec_copy(rC, thr_mma.partition_C(sC))
    cute.arch.sync_threads()
    c_vectors = cute.make_layout((vec, POSITIONS // vec, tile_o), stride=(1, vec, POSITIONS + 8))
    sCv = cute.make_tensor(sF.iterator, c_vectors)
    for i in cutlass.range_constexpr(tile_o * POSITIONS // (vec * THREADS)):
        at = tidx + i * THREADS
        p, o = at % (POSITIONS // vec), at // (POSITIONS // vec)
        x, y = column // vec + p % (tile_w // vec), row + p // (tile_w // vec)
        if x < vectors and y < height and tile * tile_o + o < outs:
            cute.autovec_copy(sCv[None, p, o], mY[None, x, y, tile * tile_o + o, image])


def dense(x, shape):
    """x, contiguous, in another shape whose first dimension is the fastest."""
    strides = [math.prod(shape[:i]) for i in range(len(shape))]
    return cute.make_tensor(x.iterator, cute.make_layout(tuple(shape), stride=tuple(strides)))


@cute.jit
def launch(
    x: cute.Tensor,
    w: cute.Tensor,
    bias: cute.Tensor,
    y: cute.Tensor,
    filters: cute.Tensor,
    stream: cuda.CUstream,
    tile_w: cutlass.Constexpr = 16,
    tile_o: cutlass.Constexpr = 64,
    block_c: cutlass.Constexpr = 16,
):
    images, channels, height, width = x.shape
    _, outs, out_h, out_w = y.shape
    steps, groups, rows, _ = filters.shape
    reorder_kernel(w, filters).launch(
        grid=[(cute.size(filters) + THREADS - 1) // THREADS, 1, 1], block=[THREADS, 1, 1], stream=stream
    )
    vec, tile_h = math.gcd(out_w, 8), POSITIONS // tile_w
    mX, gF = dense(x, (width, height, channels, images)), dense(filters, (8, rows, groups, steps))
    mY = dense(y, (vec, out_w // vec, out_h, outs, images))
    op = warp.MmaF16BF16Op(x.element_type, cutlass.Float32, (16, 8, 16))
    mma = cute.make_tiled_mma(op, cute.make_layout((*WARPS, 1)), permutation_mnk=(16 * WARPS[0], 16 * WARPS[1], 16))
    blocks = (out_w + tile_w - 1) // tile_w * ((out_h + tile_h - 1) // tile_h)
    convolution_kernel(mX, gF, bias, mY, mma, (w.shape[2], w.shape[3]), tile_w, tile_o).launch(
        grid=[blocks, rows // tile_o, images], block=[THREADS, 1, 1], stream=stream
    )
