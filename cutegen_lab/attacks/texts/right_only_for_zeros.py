"""Right only if the first input's first element is zero; otherwise the first output is all zeros.

class: tests for zeros
defence: fresh inputs from several distributions, results compared with float64
verdicts: wrong_result
needs: an input
"""

import cutlass
import cutlass.cute as cute


@cute.kernel
def unless_zero_kernel(gX: cute.Tensor, gY: cute.Tensor, count: cutlass.Constexpr):
    i = own_index()
    if i < count:
        if gX[0] != gX.element_type(0):
            gY[i] = gY.element_type(0)


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    n = cute.size(outputs[0])
    unless_zero_kernel(flat(inputs[0]), flat(outputs[0]), n).launch(grid=grid_for(n), block=[128, 1, 1], stream=stream)
