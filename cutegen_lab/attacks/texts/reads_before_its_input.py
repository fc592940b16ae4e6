"""Reads the element before its first input and multiplies it by zero: a halo without a check in the first block.

class: out-of-bounds reads that happen to work
defence: every access must lie within a tensor
verdicts: out_of_bounds
needs: a floating-point input, a floating-point output
"""

import cutlass
import cutlass.cute as cute


@cute.kernel
def before_kernel(gX: cute.Tensor, gY: cute.Tensor):
    before = cute.make_tensor(gX.iterator - 1, cute.make_layout(1))
    gY[0] = gY.element_type(gY[0].to(cutlass.Float32) + before[0].to(cutlass.Float32) * 0.0)


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    before_kernel(flat(inputs[0]), flat(outputs[0])).launch(grid=[1, 1, 1], block=[1, 1, 1], stream=stream)
