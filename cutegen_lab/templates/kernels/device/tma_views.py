"""Operands as views that TMA can address. Host arithmetic: shapes and strides are Python ints."""

import cutlass
import cutlass.cute as cute


def tma_view(x, dense_in):
    """A view of ``x`` (rows, columns, batch) that TMA can address, or None. ``x`` must be contiguous along one of the
    dimensions ``dense_in``, and every other stride a multiple of 16 bytes. A broadcast batch dimension gets size 1."""
    quantum = 128 // x.element_type.width
    sizes, strides = [*x.shape], [*x.stride]
    if not all(isinstance(number, int) for number in sizes + strides):
        return None  # a dimension without a single stride
    if strides[2] == 0:
        sizes[2] = 1
    dense = [d for d in dense_in if strides[d] == 1 and sizes[d] > 1] or [d for d in dense_in if sizes[d] == 1]
    others = [d for d in range(3) if [d] != dense[:1]]
    if not dense or any(strides[d] % quantum and sizes[d] > 1 for d in others):
        return None
    for d in range(3):
        if sizes[d] == 1:
            strides[d] = quantum if d in others else 1  # never used
            sizes[d] = 1 if d == 2 else cutlass.Int32(1)  # a static 1 would drop the dimension from the tensor map
    return cute.make_tensor(x.iterator, cute.make_layout(tuple(sizes), stride=tuple(strides)))


def tma_views(operands):
    """TMA views of all A operands, or all B operands: 16-bit ones in either layout, 8-bit ones contiguous along k, as
    wgmma requires. None if TMA cannot address one of them, or if there are none."""
    dense_in = {8: (1,), 16: (1, 0), 32: ()}
    views = tuple(tma_view(x, dense_in[x.element_type.width]) for x in operands)
    return None if None in views or not views else views


def fit_together(sides, operands):
    """Whether all operands have the same length along k, all A operands the same dtype and (as TMA views) the same
    layout, and all B operands too. The dtypes of A and B may differ if both have 8 bits."""
    dtypes = [{x.element_type for x in side} for side in sides]
    layouts = [{x.stride.index(1) for x in side} for side in sides]
    lengths = {cute.size(x, mode=[1]) for x in operands}
    both = {dtype if dtype.width > 8 else 8 for side in dtypes for dtype in side}
    return all(len(values) == 1 for values in (lengths, both, *dtypes, *layouts))
