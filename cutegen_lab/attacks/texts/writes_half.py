"""Computes the answer in a workspace, and hands over only the first half of it.

class: writes half
defence: outputs start poisoned, twice, with different bytes
verdicts: unwritten_output
scratch: like outputs
"""

import cutlass.cute as cute


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, (scratch[0], *outputs[1:]))
    copy(scratch[0], outputs[0], 0, cute.size(outputs[0]) // 2, stream)
