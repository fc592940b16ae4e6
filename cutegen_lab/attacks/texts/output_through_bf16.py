"""Computes in bfloat16 and returns float32: twice the throughput, an eighth of a per cent of error.

class: lower precision
defence: the error budget follows what PyTorch loses at the problem's own precision
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
