"""Keeps ten bits of its first input's mantissa, as tensor cores do under TF32, and works on that.

class: lower precision
defence: the error budget follows what PyTorch loses at the problem's own precision
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
