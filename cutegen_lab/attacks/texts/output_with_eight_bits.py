"""Keeps the eight leading bits of a 16-bit float, as if it had been computed in an 8-bit format.

class: lower precision
defence: the error budget is PyTorch's own error at the problem's precision
verdicts: wrong_result
needs: a 16-bit floating-point output
"""

import cutlass
import cutlass.cute as cute


@cute.kernel
def eight_bits_kernel(gBits: cute.Tensor, dropped: cutlass.Constexpr, count: cutlass.Constexpr):
    i = own_index()
    if i < count:
        gBits[i] = gBits[i] & cutlass.Int16(dropped)


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    n = cute.size(outputs[0])
    dropped = -32 if outputs[0].element_type is cutlass.BFloat16 else -256
    eight_bits_kernel(cute.recast_tensor(flat(outputs[0]), cutlass.Int16), dropped, n).launch(
        grid=grid_for(n), block=[128, 1, 1], stream=stream
    )
