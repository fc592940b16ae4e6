"""What the attacks share: flat views of tensors, and kernels that fill and copy."""

import cutlass
import cutlass.cute as cute


def flat(tensor):
    return cute.make_tensor(tensor.iterator, cute.make_layout(cute.size(tensor)))


def grid_for(count):
    return [(count + 127) // 128, 1, 1]


def own_index():
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    return bidx * 128 + tidx


@cute.jit
def spoil(gY: cute.Tensor, i: cutlass.Int32):
    """Makes one element wrong: zero becomes seven, any other value becomes zero."""
    gY[i] = gY.element_type(7) if gY[i] == gY.element_type(0) else gY.element_type(0)


@cute.kernel
def fill_kernel(gTo: cute.Tensor, value: cutlass.Constexpr, first: cutlass.Constexpr, count: cutlass.Constexpr):
    i = own_index()
    if i < count:
        gTo[first + i] = gTo.element_type(value)


@cute.kernel
def copy_kernel(gFrom: cute.Tensor, gTo: cute.Tensor, first: cutlass.Constexpr, count: cutlass.Constexpr):
    i = own_index()
    if i < count:
        gTo[first + i] = gFrom[first + i].to(gTo.element_type)


def fill(target, value, first, count, stream):
    """Sets ``count`` elements from ``first`` on."""
    if count > 0:
        fill_kernel(flat(target), value, first, count).launch(grid=grid_for(count), block=[128, 1, 1], stream=stream)


def copy(source, target, first, count, stream):
    """Copies ``count`` elements, starting at index ``first``, and converts them."""
    if count > 0:
        copy_kernel(flat(source), flat(target), first, count).launch(
            grid=grid_for(count), block=[128, 1, 1], stream=stream
        )
