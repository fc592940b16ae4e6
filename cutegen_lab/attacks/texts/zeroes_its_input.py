"""Zeroes its first input when it is done: the next call, and the reference after it, have less to do.

class: spoils the next launch
defence: inputs are hashed before and after
verdicts: input_modified
needs: an input
"""

import cutlass.cute as cute


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    fill(inputs[0], 0, 0, cute.size(inputs[0]), stream)
