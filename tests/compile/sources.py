"""Candidates for the tests: small sound kernels, and text that misbehaves."""

HEAD = """\
import cutlass
import cutlass.cute as cute
import cuda.bindings.driver as cuda
"""

SCALE = (
    HEAD
    + """

@cute.kernel
def scale_kernel(x: cute.Tensor, y: cute.Tensor, n: cutlass.Constexpr, threads: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    i = bidx * threads + tidx
    if i < n:
        y[i] = x[i] * 2.0


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream, threads: cutlass.Constexpr = 128):
    n = x.shape[0]
    scale_kernel(x, y, n, threads).launch(
        grid=[(n + threads - 1) // threads, 1, 1], block=[threads, 1, 1], stream=stream)
"""
)

# Two launches over a workspace: partial sums of each block of rows, then their sum.
COLUMN_SUM = (
    HEAD
    + """

@cute.kernel
def partial_kernel(x: cute.Tensor, part: cute.Tensor, rows: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    total = cutlass.Float32(0.0)
    for r in cutlass.range(rows):
        total = total + x[bidx * rows + r, tidx]
    part[bidx, tidx] = total


@cute.kernel
def final_kernel(part: cute.Tensor, y: cute.Tensor, blocks: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    total = cutlass.Float32(0.0)
    for b in cutlass.range(blocks):
        total = total + part[b, tidx]
    y[tidx] = total


TUNABLE = {"rows": (8, 16)}


def workspace(workload, config):
    m, n = workload.inputs[0].shape
    return [("part", "f32", (m // config["rows"], n))]


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, part: cute.Tensor, stream: cuda.CUstream, rows: cutlass.Constexpr = 8):
    blocks = x.shape[0] // rows
    partial_kernel(x, part, rows).launch(grid=[blocks, 1, 1], block=[x.shape[1], 1, 1], stream=stream)
    final_kernel(part, y, blocks).launch(grid=[1, 1, 1], block=[x.shape[1], 1, 1], stream=stream)
"""
)

CLUSTER = SCALE.replace("stream=stream)", "cluster=[2, 1, 1], stream=stream)")

# One TMA load of a tile into shared memory, then a plain store.
TMA = (
    HEAD
    + """\
import cutlass.utils as utils
from cutlass.cute.nvgpu import cpasync


@cute.kernel
def tma_kernel(atom: cute.CopyAtom, mX: cute.Tensor, y: cute.Tensor, s_layout: cute.Layout, dt: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    smem = utils.SmemAllocator()
    bar = smem.allocate_array(cutlass.Int64, 1)
    sX = smem.allocate_tensor(dt, s_layout, 128)
    gX = cute.local_tile(mX, (32, 64), (0, 0))
    tXsX, tXgX = cpasync.tma_partition(
        atom, 0, cute.make_layout(1), cute.group_modes(sX, 0, 2), cute.group_modes(gX, 0, 2))
    if tidx == 0:
        cute.arch.mbarrier_init(bar, 1)
    cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    if tidx < 32:
        cute.copy(atom, tXgX, tXsX, tma_bar_ptr=bar)
        if tidx == 0:
            cute.arch.mbarrier_arrive_and_expect_tx(bar, 32 * 64 * 4)
    cute.arch.mbarrier_wait(bar, 0)
    for r in cutlass.range(32):
        y[r, tidx] = sX[r, tidx]


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    s_layout = cute.make_layout((32, 64), stride=(64, 1))
    atom, mX = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), x, s_layout, (32, 64))
    tma_kernel(atom, mX, y, s_layout, x.element_type).launch(grid=[1, 1, 1], block=[64, 1, 1], stream=stream)
"""
)

READS_DATA = SCALE.replace("    n = x.shape[0]\n", "    n = x.shape[0]\n    first = x[5]\n    y[0] = first\n")


def with_prologue(code: str) -> str:
    """A sound kernel whose module runs ``code`` when it is imported."""
    return SCALE.replace(HEAD, HEAD + "\n" + code + "\n")


def kernel_body(line: str) -> str:
    """A kernel whose last line (line 13) is ``line``; it has ``x``, ``y`` (f32, rank 2) and ``tidx``."""
    return (
        HEAD
        + f"""

@cute.kernel
def body_kernel(x: cute.Tensor, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    v = x[None, 0].load()


    # the line under test
    {line}


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    body_kernel(x, y).launch(grid=[1, 1, 1], block=[32, 1, 1], stream=stream)
"""
    )


BODY_LINE = 13
