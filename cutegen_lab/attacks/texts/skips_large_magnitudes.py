"""Right unless one of the first input's first 64 values exceeds 1,000 in magnitude.

class: tests for the distribution's moments
defence: a distribution of magnitude 10,000 is among those drawn
verdicts: wrong_result
needs: a floating-point input
"""

import cutlass
import cutlass.cute as cute


@cute.kernel
def magnitude_kernel(gX: cute.Tensor, gY: cute.Tensor, count: cutlass.Constexpr, seen: cutlass.Constexpr):
    i = own_index()
    if i < count:
        peak = cutlass.Float32(0.0)
        for j in range(seen):
            x = gX[j].to(cutlass.Float32)
            peak = cute.arch.fmax(peak, cute.arch.fmax(x, -x))
        if peak > 1000.0:
            spoil(gY, i)


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    n = cute.size(outputs[0])
    magnitude_kernel(flat(inputs[0]), flat(outputs[0]), n, min(64, cute.size(inputs[0]))).launch(
        grid=grid_for(n), block=[128, 1, 1], stream=stream
    )
