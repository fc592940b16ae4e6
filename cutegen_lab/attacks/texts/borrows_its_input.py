"""Overwrites its first input with zeros, then restores it: another stream could read the zeros.

class: spoils the next launch
defence: in the emulator, a store to an input is a fault
verdicts: input_modified, out_of_bounds
needs: an input
scratch: like inputs
"""

import cutlass.cute as cute


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    n = cute.size(inputs[0])
    copy(inputs[0], scratch[0], 0, n, stream)
    fill(inputs[0], 0, 0, n, stream)
    copy(scratch[0], inputs[0], 0, n, stream)
