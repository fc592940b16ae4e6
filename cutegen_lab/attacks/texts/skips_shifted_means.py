"""Estimates the first input's mean, and is wrong if this is near 100.

class: tests for the distribution's moments
defence: a distribution of large mean and small variance is among those drawn
verdicts: wrong_result
needs: a floating-point input
"""

import cutlass
import cutlass.cute as cute


@cute.kernel
def mean_kernel(gX: cute.Tensor, gY: cute.Tensor, count: cutlass.Constexpr, seen: cutlass.Constexpr):
    i = own_index()
    if i < count:
        total = cutlass.Float32(0.0)
        for j in range(seen):
            total += gX[j].to(cutlass.Float32)
        if total > 50.0 * seen:
            if total < 150.0 * seen:
                spoil(gY, i)


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    n = cute.size(outputs[0])
    mean_kernel(flat(inputs[0]), flat(outputs[0]), n, min(64, cute.size(inputs[0]))).launch(
        grid=grid_for(n), block=[128, 1, 1], stream=stream
    )
