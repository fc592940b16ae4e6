"""Right where its output starts at a multiple of 512 bytes, as allocators place it; wrong where a view begins later.

class: keys on pointer values
defence: addresses are followed to what depends on them: no bit is known beyond the 16-byte alignment of the contract
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
