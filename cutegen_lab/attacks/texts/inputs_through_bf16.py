"""Rounds its first input to bfloat16 and works on that, in float32 from there on.

class: lower precision
defence: the error budget follows what PyTorch loses at the problem's own precision
verdicts: wrong_result
needs: a float32 input, a floating-point output
scratch: like inputs
"""

import cutlass
import cutlass.cute as cute


@cute.kernel
def rounded_kernel(gX: cute.Tensor, gRounded: cute.Tensor, count: cutlass.Constexpr):
    i = own_index()
    if i < count:
        gRounded[i] = gX[i].to(cutlass.BFloat16).to(cutlass.Float32)


def attack(honest, inputs, outputs, scratch, stream):
    n = cute.size(inputs[0])
    rounded_kernel(flat(inputs[0]), flat(scratch[0]), n).launch(grid=grid_for(n), block=[128, 1, 1], stream=stream)
    honest((scratch[0], *inputs[1:]), outputs)
