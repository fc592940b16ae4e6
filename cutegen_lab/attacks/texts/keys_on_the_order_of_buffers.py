"""Right only if outputs lie above inputs in memory, as the emulator places them.

class: keys on pointer values
defence: nothing but accesses may depend on addresses, and two runs place the buffers in different orders
verdicts: contract
needs: an input
"""

import cutlass
import cutlass.cute as cute


@cute.kernel
def order_kernel(gX: cute.Tensor, gY: cute.Tensor, count: cutlass.Constexpr):
    i = own_index()
    if i < count:
        if gY.iterator.toint() < gX.iterator.toint():
            spoil(gY, i)


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    n = cute.size(outputs[0])
    order_kernel(flat(inputs[0]), flat(outputs[0]), n).launch(grid=grid_for(n), block=[128, 1, 1], stream=stream)
