"""The launcher passes its kernel a hash of the output's address, so that the kernel can tell calls apart.

class: keys on pointer values
defence: the launcher is recorded several times; a parameter may depend on addresses only as a pointer into a tensor
verdicts: unstable_plan
"""

import cutlass
import cutlass.cute as cute


@cute.kernel
def hash_kernel(gY: cute.Tensor, key: cutlass.Int64, count: cutlass.Constexpr):
    i = own_index()
    if i < count:
        if key % 7 == 3:
            spoil(gY, i)


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    n = cute.size(outputs[0])
    key = (outputs[0].iterator.toint() // 4096) * 31
    hash_kernel(flat(outputs[0]), key, n).launch(grid=grid_for(n), block=[128, 1, 1], stream=stream)
