"""Rounds its first input to bfloat16, then computes in float32.

class: lower precision
defence: the error budget is PyTorch's own error at the problem's precision
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
