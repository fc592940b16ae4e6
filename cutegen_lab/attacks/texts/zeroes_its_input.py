"""Sets its first input to zero when it is done: later calls, and the reference, read zeros.

class: spoils the next launch
defence: inputs are hashed before and after
verdicts: input_modified
needs: an input
"""

import cutlass.cute as cute


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    fill(inputs[0], 0, 0, cute.size(inputs[0]), stream)
