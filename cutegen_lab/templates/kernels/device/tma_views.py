"""Operands as TMA can address them: host arithmetic, shapes and strides are Python ints."""

import cutlass
import cutlass.cute as cute


def tma_view(x, dense_in):
    """``x`` (rows, columns, batch) as TMA can address it, or None: it lies densely along one of the dimensions
    ``dense_in``, and every other pitch is a multiple of 16 bytes. What is broadcast over the batch has one."""
    quantum = 128 // x.element_type.width
    sizes, strides = [*x.shape], [*x.stride]
    if not all(isinstance(number, int) for number in sizes + strides):
        return None  # dimensions that do not lie evenly
    if strides[2] == 0:
        sizes[2] = 1
    dense = [d for d in dense_in if strides[d] == 1 and sizes[d] > 1] or [d for d in dense_in if sizes[d] == 1]
    others = [d for d in range(3) if [d] != dense[:1]]
    if not dense or any(strides[d] % quantum and sizes[d] > 1 for d in others):
        return None
    for d in range(3):
        if sizes[d] == 1:
            strides[d] = quantum if d in others else 1  # never walked
            sizes[d] = 1 if d == 2 else cutlass.Int32(1)  # a static 1 would drop the dimension TMA counts on
    return cute.make_tensor(x.iterator, cute.make_layout(tuple(sizes), stride=tuple(strides)))


def tma_views(operands):
    """Each operand of a side as TMA can address it, of 16 bits, or of 8 and dense along k as wgmma needs it; None where
    one is not, or none is given."""
    dense_in = {8: (1,), 16: (1, 0), 32: ()}
    views = tuple(tma_view(x, dense_in[x.element_type.width]) for x in operands)
    return None if None in views or not views else views


def fit_together(sides, operands):
    """Have all operands one length along k, and those of a side one dtype and, as TMA sees them, one layout? Sides may
    differ in dtype where both have 8 bits."""
    dtypes = [{x.element_type for x in side} for side in sides]
    layouts = [{x.stride.index(1) for x in side} for side in sides]
    lengths = {cute.size(x, mode=[1]) for x in operands}
    both = {dtype if dtype.width > 8 else 8 for side in dtypes for dtype in side}
    return all(len(values) == 1 for values in (lengths, both, *dtypes, *layouts))
