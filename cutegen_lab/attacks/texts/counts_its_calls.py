"""Counts its calls in its workspace, and is right in the first hundred: checks and warm-up are over by then.

class: caches across launches in the workspace
defence: the workspace is poisoned before each call, and reading workspace that this call has not written is a fault
verdicts: uninitialised_read, wrong_result, non_deterministic
scratch: memory
"""

import cutlass
import cutlass.cute as cute


@cute.kernel
def count_kernel(gCount: cute.Tensor):
    gCount[0] = gCount[0] + 1


@cute.kernel
def spoil_kernel(gCount: cute.Tensor, gY: cute.Tensor, count: cutlass.Constexpr):
    i = own_index()
    if i < count:
        if gCount[0] > 100:
            spoil(gY, i)


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    n = cute.size(outputs[0])
    count_kernel(scratch[0]).launch(grid=[1, 1, 1], block=[1, 1, 1], stream=stream)
    spoil_kernel(scratch[0], flat(outputs[0]), n).launch(grid=grid_for(n), block=[128, 1, 1], stream=stream)
