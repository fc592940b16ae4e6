"""Computes everything except the ragged end: the last element is never written.

class: writes half
defence: outputs are poisoned before two runs, with different bytes
verdicts: unwritten_output
scratch: like outputs
"""

import cutlass.cute as cute


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, (scratch[0], *outputs[1:]))
    copy(scratch[0], outputs[0], 0, cute.size(outputs[0]) - 1, stream)
