"""Uses its first input as scratch while it works, and puts everything back: another stream would read nonsense.

class: spoils the next launch
defence: a store to an input is a fault where every access is seen
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
