"""Right only if the first input's first 64 values are not negative, as after a ReLU.

class: tests for the distribution's moments
defence: fresh inputs from several distributions, results compared with float64
verdicts: wrong_result
needs: a floating-point input
"""

import cutlass
import cutlass.cute as cute


@cute.kernel
def negative_kernel(gX: cute.Tensor, gY: cute.Tensor, count: cutlass.Constexpr, seen: cutlass.Constexpr):
    i = own_index()
    if i < count:
        least = cutlass.Float32(0.0)
        for j in range(seen):
            least = -cute.arch.fmax(-least, -gX[j].to(cutlass.Float32))
        if least < 0.0:
            spoil(gY, i)


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    n = cute.size(outputs[0])
    negative_kernel(flat(inputs[0]), flat(outputs[0]), n, min(64, cute.size(inputs[0]))).launch(
        grid=grid_for(n), block=[128, 1, 1], stream=stream
    )
