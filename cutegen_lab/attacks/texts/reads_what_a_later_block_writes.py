"""Adds what the next block wrote, without waiting for it: mostly the blocks run side by side.

class: races that mostly win
defence: every byte of a workspace remembers whether this call has written it; two runs must agree elsewhere
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
