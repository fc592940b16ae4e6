"""Right only if its output starts at a multiple of 512 bytes, as allocators place it, and wrong for a view that starts
later.

class: keys on pointer values
defence: nothing but accesses may depend on an address beyond its 16-byte alignment, which the contract ensures
verdicts: contract
"""

import cutlass
import cutlass.cute as cute


@cute.kernel
def alignment_kernel(gY: cute.Tensor, count: cutlass.Constexpr):
    i = own_index()
    if i < count:
        if gY.iterator.toint() % 512 != 0:
            spoil(gY, i)


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    n = cute.size(outputs[0])
    alignment_kernel(flat(outputs[0]), n).launch(grid=grid_for(n), block=[128, 1, 1], stream=stream)
