"""Split-K reduction: adds up the partial results of a product and applies the epilogue.

The order of the sum is fixed, so results are the same at every call.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
from cutlass import Float32

from cutegen_lab.templates.kernels.device.epilogue_access import fetch, lies_in_pairs
from cutegen_lab.templates.kernels.device.overlap import OVERLAP, overlapping, start_next_and_wait


def epilogue(acc):
    """Placeholder, replaced in a generated module: a function of the total (fp32 vector), ``extras`` and ``sizes``."""
    return acc


@cute.jit
def add_up(
    mPart: cute.Tensor,
    mC: cute.Tensor,
    extras: tuple,
    stream: cuda.CUstream,
    sizes: cutlass.Constexpr,
):
    """``mC`` (m, n, batch): the epilogue of ``mPart`` (m, n, batch, part), summed over the parts in fp32."""
    m, n, batches = (cute.size(mC, mode=[d]) for d in range(3))
    vec = 4 if lies_in_pairs(mC, n) and n % 4 == 0 else 1
    total_kernel(mPart, mC, extras, sizes, vec).launch(
        grid=[cute.ceil_div(m * batches * n // vec, 256), 1, 1],
        block=[256, 1, 1],
        stream=stream,
        use_pdl=OVERLAP and overlapping(),
    )


@cute.kernel
def total_kernel(
    mPart: cute.Tensor,
    mC: cute.Tensor,
    extras: tuple,
    sizes: cutlass.Constexpr,
    vec: cutlass.Constexpr,
):
    """Sums ``mPart`` (m, n, batch, part), ``vec`` neighbours in n per thread, and applies the epilogue."""
    if cutlass.const_expr(OVERLAP and overlapping()):
        start_next_and_wait()
    m, n, batches, parts = (cute.size(mPart, mode=[d]) for d in range(4))
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    index, wide = bidx * 256 + tidx, n // vec
    if index < wide * m * batches:
        at, row, batch = index % wide, index // wide % m, index // (wide * m)
        column = at * vec
        gPart = cute.make_tensor(
            mPart.iterator,
            cute.make_layout((vec, wide, m, batches, parts), stride=(1, vec, n, m * n, batches * m * n)),
        )
        rPart = cute.make_rmem_tensor((vec, parts), Float32)
        for part in cutlass.range_constexpr(parts):
            cute.autovec_copy(gPart[None, at, row, batch, part], rPart[None, part])
        total = rPart[None, 0].load()
        for part in cutlass.range_constexpr(1, parts):
            total = total + rPart[None, part].load()
        cC = cute.make_identity_tensor((1, vec))
        result = epilogue(
            total,
            *[fetch(x, cC, row, column, batch, (m, n), vec > 1) for x in extras],
            *sizes,
        )
        rC = cute.make_rmem_tensor(vec, mC.element_type)
        rC.store(result.to(mC.element_type))
        if cutlass.const_expr(vec > 1):
            gC = cute.make_tensor(
                mC.iterator,
                cute.make_layout((vec, wide, mC.shape[0], mC.shape[2]), stride=(1, vec, mC.stride[0], mC.stride[2])),
            )
            cute.autovec_copy(rC, gC[None, at, row, batch])
        else:
            mC[row, column, batch] = rC[0]
