"""Adds the answer to what the output held, as if the output started from zero.

class: reads stale output
defence: in the emulator, reading output bytes that this call has not written is a fault; on a GPU, outputs start
    poisoned
verdicts: uninitialised_read, wrong_result, non_deterministic
scratch: like outputs
needs: a floating-point output
"""

import cutlass
import cutlass.cute as cute


@cute.kernel
def add_kernel(gFrom: cute.Tensor, gTo: cute.Tensor, count: cutlass.Constexpr):
    i = own_index()
    if i < count:
        gTo[i] = gTo[i] + gFrom[i]


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, (scratch[0], *outputs[1:]))
    n = cute.size(outputs[0])
    add_kernel(flat(scratch[0]), flat(outputs[0]), n).launch(grid=grid_for(n), block=[128, 1, 1], stream=stream)
