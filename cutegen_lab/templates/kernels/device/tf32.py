"""fp32 operands in TF32: TMA rounds them to nearest on their way to shared memory.

wgmma itself would truncate them, which biases sums of numbers with one sign. It reads TF32 operands only if they are
contiguous along k; other operands are copied to that layout first.
"""

import cutlass
import cutlass.cute as cute
import cutlass.utils as utils
from cutlass import Float32
from cutlass.cute.nvgpu import warpgroup

from cutegen_lab.templates.kernels.device.overlap import OVERLAP, overlapping, start_next_and_wait
from cutegen_lab.templates.kernels.device.tma_views import tma_view


class MmaTF32Op(warpgroup.MmaF16BF16Op):
    """wgmma's TF32 kind (m64nNk8, k-major operands; PTX ISA, wgmma.mma_async), for which the DSL has no class."""

    def _verify(self):
        """Skips the base class's checks, which require 16-bit operands."""


def tf32_mma(a_dtype, b_dtype, major_a, major_b, acc_dtype, atom_layout_mnk, tiler_mn):
    op = MmaTF32Op(a_dtype, acc_dtype, (*tiler_mn, 8), warpgroup.OperandSource.SMEM, major_a, major_b)
    return cute.make_tiled_mma(op, atom_layout_mnk)


def tf32_views(operands):
    """TMA views of all A operands, or all B operands, rounded to TF32; None if TMA cannot address one along k."""
    views = tuple(tma_view(x, (1,)) for x in operands)
    if None in views:
        return None
    return tuple(cute.make_tensor(cute.recast_ptr(x.iterator, dtype=cutlass.TFloat32), x.layout) for x in views)


@cute.kernel
def convert_kernel(
    mX: cute.Tensor,
    mCopy: cute.Tensor,
    along_k: cutlass.Constexpr,
):
    """Copies a 64×64 piece of ``mX`` (rows, k, batch) through shared memory. Neighbouring threads read neighbours in
    memory (``along_k``: in k; otherwise in rows) and write neighbours in k."""
    if cutlass.const_expr(OVERLAP and overlapping()):
        start_next_and_wait()
    rows, k = cute.size(mCopy, mode=[0]), cute.size(mCopy, mode=[1])
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    high, wide = cute.ceil_div(rows, 64), cute.ceil_div(k, 64)
    row, first, batch = bidx % high * 64, bidx // high % wide * 64, bidx // (high * wide)
    sX = utils.SmemAllocator().allocate_tensor(Float32, cute.make_layout((64, 64), stride=(65, 1)), 16)
    rX = cute.make_rmem_tensor(16, Float32)
    for turn in cutlass.range_constexpr(16):
        near, far = tidx % 64, tidx // 64 + 4 * turn
        i, j = (far, near) if cutlass.const_expr(along_k) else (near, far)
        rX[turn] = mX[cutlass.min(row + i, rows - 1), cutlass.min(first + j, k - 1), batch]
    for turn in cutlass.range_constexpr(16):
        near, far = tidx % 64, tidx // 64 + 4 * turn
        i, j = (far, near) if cutlass.const_expr(along_k) else (near, far)
        sX[i, j] = rX[turn]
    cute.arch.sync_threads()
    for turn in cutlass.range_constexpr(16):
        i, j = tidx // 64 + 4 * turn, tidx % 64
        if row + i < rows and first + j < k:
            mCopy[row + i, first + j, batch] = sX[i, j]


def copied_along_k(mX, scratch, stream):
    """Copies ``mX`` (rows, k, batch) to ``scratch`` (1, batches, :func:`tf32_scratch_size`), contiguous along k."""
    rows, k = cute.size(mX, mode=[0]), cute.size(mX, mode=[1])
    _, batches, room = scratch.shape
    copy = cute.make_tensor(scratch.iterator, cute.make_layout((rows, k, batches), stride=(even_pitch(k), 1, room)))
    convert_kernel(mX, copy, mX.stride[1] == 1).launch(
        grid=[cute.ceil_div(rows, 64) * cute.ceil_div(k, 64) * batches, 1, 1],
        block=[256, 1, 1],
        stream=stream,
        use_pdl=OVERLAP and overlapping(),
    )
    return copy


def even_pitch(length):
    """Stride in elements of rows of ``length`` fp32 numbers that begin at multiples of 128 bytes."""
    return (length + 31) // 32 * 32


def tf32_scratch_size(rows, k):
    """Number of elements of one batch of a copy."""
    return rows * even_pitch(k)
