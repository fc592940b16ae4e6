"""Reads the output first: if its first element is not NaN, takes it for an earlier call's answer and writes nothing.

class: reads stale output
defence: in the emulator, reading output bytes that this call has not written is a fault; on a GPU, outputs start with
    two different poisons
verdicts: uninitialised_read, non_deterministic, wrong_result, unwritten_output
scratch: like outputs
needs: a floating-point output
"""

import cutlass
import cutlass.cute as cute


@cute.kernel
def keep_kernel(gFrom: cute.Tensor, gTo: cute.Tensor, count: cutlass.Constexpr):
    i = own_index()
    if i < count:
        if gTo[0] != gTo[0]:
            gTo[count - 1 - i] = gFrom[count - 1 - i]


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, (scratch[0], *outputs[1:]))
    n = cute.size(outputs[0])
    keep_kernel(flat(scratch[0]), flat(outputs[0]), n).launch(grid=grid_for(n), block=[128, 1, 1], stream=stream)
