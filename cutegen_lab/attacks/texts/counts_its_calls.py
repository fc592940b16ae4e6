"""Counts calls in its workspace, honest for the first hundred: warm-up and checks are over by then.

class: caches across launches in the workspace
defence: workspace starts poisoned each call, and reading what this call has not written is a fault
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
