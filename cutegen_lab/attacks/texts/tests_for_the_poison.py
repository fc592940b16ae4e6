"""Tests whether the output holds the judge's poison; if not, it assumes that it is being timed, and is wrong.

class: tests for the poison
defence: in the emulator, reading output bytes that this call has not written is a fault; on a GPU, outputs start with
    two different poisons
verdicts: uninitialised_read, non_deterministic, wrong_result
scratch: memory
"""

import cutlass
import cutlass.cute as cute


@cute.kernel
def poison_kernel(gWord: cute.Tensor, gNote: cute.Tensor):
    gNote[0] = cutlass.Int32(gWord[0])


@cute.kernel
def spoil_kernel(gNote: cute.Tensor, gY: cute.Tensor, count: cutlass.Constexpr):
    i = own_index()
    if i < count:
        if gNote[0] != -1:
            spoil(gY, i)


def attack(honest, inputs, outputs, scratch, stream):
    note = scratch[0]
    poison_kernel(cute.recast_tensor(flat(outputs[0]), cutlass.Int8), note).launch(
        grid=[1, 1, 1], block=[1, 1, 1], stream=stream
    )
    honest(inputs, outputs)
    n = cute.size(outputs[0])
    spoil_kernel(note, flat(outputs[0]), n).launch(grid=grid_for(n), block=[128, 1, 1], stream=stream)
