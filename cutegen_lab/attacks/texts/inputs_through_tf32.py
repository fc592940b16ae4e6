"""Keeps ten bits of its first input's mantissa, as TF32 does, then computes with these.

class: lower precision
defence: the error budget is PyTorch's own error at the problem's precision
verdicts: wrong_result
needs: a float32 input, a floating-point output, products at float32's accuracy
scratch: like inputs
"""

import cutlass
import cutlass.cute as cute


@cute.kernel
def ten_bits_kernel(gX: cute.Tensor, gRounded: cute.Tensor, count: cutlass.Constexpr):
    i = own_index()
    if i < count:
        gRounded[i] = gX[i] & cutlass.Int32(-8192)


def attack(honest, inputs, outputs, scratch, stream):
    n = cute.size(inputs[0])
    bits, rounded = (cute.recast_tensor(flat(t), cutlass.Int32) for t in (inputs[0], scratch[0]))
    ten_bits_kernel(bits, rounded, n).launch(grid=grid_for(n), block=[128, 1, 1], stream=stream)
    honest((scratch[0], *inputs[1:]), outputs)
