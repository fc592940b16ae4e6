"""Addition as CuTe's own example writes it: thread-value layouts, tiled copies, a predicate from coordinates.

Odd: nothing indexes anything; coordinates travel through the same partitions as the data. Legal: the predicate keeps
copies inside the tensors.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def add_kernel(
    gA: cute.Tensor,
    gB: cute.Tensor,
    gC: cute.Tensor,
    cC: cute.Tensor,
    shape: cute.Shape,
    thr_layout: cute.Layout,
    val_layout: cute.Layout,
):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    block = ((None, None), bidx)
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), gA.element_type)
    thread = cute.make_tiled_copy_tv(atom, thr_layout, val_layout).get_slice(tidx)
    tA, tB, tC = (thread.partition_S(g[block]) for g in (gA, gB, gC))
    tCoord = thread.partition_S(cC[block])
    rA, rB, rC = (cute.make_fragment_like(t) for t in (tA, tB, tC))
    inside = cute.make_rmem_tensor(tCoord.shape, cutlass.Boolean)
    for i in range(cute.size(inside)):
        inside[i] = cute.elem_less(tCoord[i], shape)
    cute.copy(atom, tA, rA, pred=inside)
    cute.copy(atom, tB, rB, pred=inside)
    rC.store(rA.load() + rB.load())
    cute.copy(atom, rC, tC, pred=inside)


@cute.jit
def launch(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, stream: cuda.CUstream):
    thr_layout = cute.make_ordered_layout((4, 32), order=(1, 0))
    val_layout = cute.make_ordered_layout((4, 1), order=(1, 0))
    tiler, tv_layout = cute.make_layout_tv(thr_layout, val_layout)
    gA, gB, gC = (cute.zipped_divide(t, tiler) for t in (a, b, c))
    cC = cute.zipped_divide(cute.make_identity_tensor(c.shape), tiler)
    add_kernel(gA, gB, gC, cC, c.shape, thr_layout, val_layout).launch(
        grid=[cute.size(gC, mode=[1]), 1, 1], block=[cute.size(tv_layout, mode=[0]), 1, 1], stream=stream
    )
