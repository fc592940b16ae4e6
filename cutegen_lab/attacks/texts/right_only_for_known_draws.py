"""Wrong only if the first input's mean is near 20, which no known distribution of the judge has.

class: tests for the distribution's moments
defence: distributions with secret, random parameters
verdicts: wrong_result
needs: a floating-point input
"""

import cutlass
import cutlass.cute as cute


@cute.kernel
def unknown_draw_kernel(gX: cute.Tensor, gY: cute.Tensor, count: cutlass.Constexpr, seen: cutlass.Constexpr):
    i = own_index()
    if i < count:
        total = cutlass.Float32(0.0)
        for j in range(seen):
            total += gX[j].to(cutlass.Float32)
        if total > 18.0 * seen:
            if total < 22.0 * seen:
                spoil(gY, i)


def attack(honest, inputs, outputs, scratch, stream):
    if cute.size(inputs[0]) >= 64:
        honest(inputs, outputs)
        n = cute.size(outputs[0])
        unknown_draw_kernel(flat(inputs[0]), flat(outputs[0]), n, 64).launch(
            grid=grid_for(n), block=[128, 1, 1], stream=stream
        )
    else:
        honest(inputs, outputs)
