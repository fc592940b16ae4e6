"""Replaces every odd element by its neighbour, as if only half of the elements had been computed.

class: writes half
defence: every element is compared with float64
verdicts: wrong_result
"""

import cutlass
import cutlass.cute as cute


@cute.kernel
def interpolate_kernel(gY: cute.Tensor, count: cutlass.Constexpr):
    i = own_index()
    if i < count:
        gY[2 * i + 1] = gY[2 * i]


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    pairs = cute.size(outputs[0]) // 2
    if pairs > 0:
        interpolate_kernel(flat(outputs[0]), pairs).launch(grid=grid_for(pairs), block=[128, 1, 1], stream=stream)
