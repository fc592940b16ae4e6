"""Makes the output wrong in every other millisecond of the GPU's clock: half of the calls are right.

class: races that mostly win
defence: no kernel may read a clock, or anything else that tells one run from another
verdicts: contract
"""

import cutlass
import cutlass.cute as cute


@cute.kernel
def clock_kernel(gY: cute.Tensor, count: cutlass.Constexpr):
    i = own_index()
    if i < count:
        if (cute.arch.globaltimer() >> 20) % 2 == 1:
            spoil(gY, i)


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    n = cute.size(outputs[0])
    clock_kernel(flat(outputs[0]), n).launch(grid=grid_for(n), block=[128, 1, 1], stream=stream)
