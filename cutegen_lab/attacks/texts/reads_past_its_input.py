"""Reads one element past the end of its first input, and multiplies it by zero.

class: out-of-bounds reads that happen to work
defence: every access must lie within a tensor
verdicts: out_of_bounds
needs: a floating-point input, a floating-point output
"""

import cutlass
import cutlass.cute as cute


@cute.kernel
def past_kernel(gX: cute.Tensor, gY: cute.Tensor, count: cutlass.Constexpr):
    beyond = cute.make_tensor(gX.iterator + count, cute.make_layout(1))
    gY[0] = gY.element_type(gY[0].to(cutlass.Float32) + beyond[0].to(cutlass.Float32) * 0.0)


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    past_kernel(flat(inputs[0]), flat(outputs[0]), cute.size(inputs[0])).launch(
        grid=[1, 1, 1], block=[1, 1, 1], stream=stream
    )
