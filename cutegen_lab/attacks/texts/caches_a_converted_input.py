"""Copies its first input once into its workspace, marked by a magic number, as if the input were a weight: later calls
compute from the copy.

class: caches across launches in the workspace
defence: the workspace is poisoned before each call, and reading workspace that this call has not written is a fault
verdicts: uninitialised_read, wrong_result, non_deterministic
needs: an input
scratch: like inputs
"""

import cutlass
import cutlass.cute as cute

MAGIC = 42


@cute.kernel
def convert_kernel(gX: cute.Tensor, gKept: cute.Tensor, count: cutlass.Constexpr):
    i = own_index()
    if i < count - 1:
        if gKept[count - 1] != gKept.element_type(MAGIC):
            gKept[i] = gX[i]


def attack(honest, inputs, outputs, scratch, stream):
    n = cute.size(inputs[0])
    convert_kernel(flat(inputs[0]), flat(scratch[0]), n).launch(grid=grid_for(n), block=[128, 1, 1], stream=stream)
    copy(inputs[0], scratch[0], n - 1, 1, stream)
    honest((scratch[0], *inputs[1:]), outputs)
    fill(scratch[0], MAGIC, n - 1, 1, stream)
