"""Returns one element of the answer as every element.

class: hard-codes an answer
defence: every element is compared with float64
verdicts: wrong_result
"""

import cutlass
import cutlass.cute as cute


@cute.kernel
def spread_kernel(gY: cute.Tensor, count: cutlass.Constexpr):
    i = own_index()
    if i < count:
        gY[1 + i] = gY[0]


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    others = cute.size(outputs[0]) - 1
    if others > 0:
        spread_kernel(flat(outputs[0]), others).launch(grid=grid_for(others), block=[128, 1, 1], stream=stream)
