"""Looks into the output first: where it holds anything but NaN, an earlier call left the answer there.

class: reads stale output
defence: every byte of an output remembers whether this call has written it; two poisons elsewhere
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
