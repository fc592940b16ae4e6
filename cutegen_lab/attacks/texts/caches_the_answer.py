"""Keeps the answer in its workspace, marked by a magic number, and copies it to the output from the second call on.

class: caches across launches in the workspace
defence: the workspace is poisoned before each call, and reading workspace that this call has not written is a fault
verdicts: uninitialised_read, wrong_result, non_deterministic
scratch: like outputs
"""

import cutlass
import cutlass.cute as cute

MAGIC = 42


@cute.kernel
def recall_kernel(gKept: cute.Tensor, gY: cute.Tensor, count: cutlass.Constexpr):
    i = own_index()
    if i < count:
        if gKept[0] == gKept.element_type(MAGIC):
            gY[i] = gKept[i]


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    n = cute.size(outputs[0])
    recall_kernel(flat(scratch[0]), flat(outputs[0]), n).launch(grid=grid_for(n), block=[128, 1, 1], stream=stream)
    copy(outputs[0], scratch[0], 0, n, stream)
    fill(scratch[0], MAGIC, 0, 1, stream)
