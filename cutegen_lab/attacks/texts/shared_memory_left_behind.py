"""Reads shared memory before its block writes it: an earlier block or kernel left values there.

class: caches across launches in the workspace
defence: in the emulator, reading shared memory that the block has not written is a fault; on a GPU, two runs must agree
verdicts: uninitialised_read, non_deterministic, wrong_result
needs: a floating-point output
"""

import cutlass
import cutlass.cute as cute


@cute.kernel
def residue_kernel(gY: cute.Tensor):
    smem = cutlass.utils.SmemAllocator()
    left = smem.allocate_tensor(cutlass.Float32, cute.make_layout(32), 16)
    tidx, _, _ = cute.arch.thread_idx()
    if left[tidx] != 0.0:
        if tidx == 0:
            gY[0] = gY.element_type(left[tidx])
    left[tidx] = cutlass.Float32(1.0)


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    residue_kernel(flat(outputs[0])).launch(grid=[1, 1, 1], block=[32, 1, 1], stream=stream)
