"""Block 0 reads what block 1 writes, without waiting for it: right if block 1, or an earlier call, wrote it before.

class: races that mostly win
defence: in the emulator, reading workspace bytes that this call has not written is a fault; on a GPU, two runs must
    agree
verdicts: uninitialised_read, non_deterministic, wrong_result
scratch: memory
needs: a floating-point output
"""

import cutlass
import cutlass.cute as cute


@cute.kernel
def next_block_kernel(gNote: cute.Tensor, gY: cute.Tensor):
    bidx, _, _ = cute.arch.block_idx()
    theirs = cutlass.Int32(0)
    if bidx == 0:
        theirs = gNote[1]
    if theirs != 0:
        spoil(gY, 0)
    gNote[bidx] = cutlass.Int32(0)


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    next_block_kernel(scratch[0], flat(outputs[0])).launch(grid=[2, 1, 1], block=[1, 1, 1], stream=stream)
