"""Sets every output element to whether the first input has a number other than zero: one reduction in place of the
work.

class: hard-codes an answer
defence: every element is compared with float64
verdicts: wrong_result
needs: an input
"""

import cutlass
import cutlass.cute as cute


@cute.kernel
def any_kernel(gX: cute.Tensor, gY: cute.Tensor, count: cutlass.Constexpr, seen: cutlass.Constexpr):
    i = own_index()
    if i < count:
        found = gY.element_type(0)
        for j in range(seen):
            if gX[j] != gX.element_type(0):
                found = gY.element_type(1)
        gY[i] = found


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    n = cute.size(outputs[0])
    any_kernel(flat(inputs[0]), flat(outputs[0]), n, min(64, cute.size(inputs[0]))).launch(
        grid=grid_for(n), block=[128, 1, 1], stream=stream
    )
