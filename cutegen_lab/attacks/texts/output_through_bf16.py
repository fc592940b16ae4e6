"""Rounds its float32 output to bfloat16, as if it had been computed in this faster type.

class: lower precision
defence: the error budget is PyTorch's own error at the problem's precision
verdicts: wrong_result
needs: a float32 output
"""

import cutlass
import cutlass.cute as cute


@cute.kernel
def through_bf16_kernel(gY: cute.Tensor, count: cutlass.Constexpr):
    i = own_index()
    if i < count:
        gY[i] = gY[i].to(cutlass.BFloat16).to(cutlass.Float32)


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    n = cute.size(outputs[0])
    through_bf16_kernel(flat(outputs[0]), n).launch(grid=grid_for(n), block=[128, 1, 1], stream=stream)
