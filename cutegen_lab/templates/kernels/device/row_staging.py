"""Stages tensors that all rows share (a norm's weights) in shared memory: each thread copies its own vectors."""

import cutlass
import cutlass.cute as cute


def stageable(tensors, slots):
    """Whether cp.async can copy vectors of ``tensors``, and ``slots`` vectors of each fit shared memory."""
    sizes = [cute.size(gX, mode=[0]) * gX.element_type.width // 8 for gX in tensors]
    return all(size in (4, 8, 16) for size in sizes) and sum(sizes) * slots <= 72 << 10


@cute.jit
def stage(
    gX: cute.Tensor,
    sX: cute.Tensor,
    start: cutlass.Int32,
    stride: cutlass.Constexpr,
    unpredicated: cutlass.Constexpr,
):
    """Starts cp.async copies of a thread's vectors (see ``fetch``) to the thread's own slots. Needs no registers."""
    copy = cute.nvgpu.cpasync.CopyG2SOp(cache_mode=cute.nvgpu.cpasync.LoadCacheMode.ALWAYS)
    bits = cute.size(gX, mode=[0]) * gX.element_type.width
    atom = cute.make_copy_atom(copy, gX.element_type, num_bits_per_copy=bits)
    for i in cutlass.range_constexpr(cute.size(sX, mode=[1])):
        column = start + i * stride
        if i < unpredicated or column < cute.size(gX, mode=[1]):
            cute.copy(atom, gX[None, column, 0], sX[None, i])
    cute.arch.cp_async_commit_group()


@cute.jit
def unstage(
    sX: cute.Tensor,
    rX: cute.Tensor,
    start: cutlass.Int32,
    stride: cutlass.Constexpr,
    vectors: cutlass.Constexpr,
    unpredicated: cutlass.Constexpr,
):
    """Loads to registers what ``stage`` has copied."""
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        if i < unpredicated or start + i * stride < vectors:
            cute.autovec_copy(sX[None, i], rX[None, i])
