"""Computes the answer in a workspace, and copies only its first half to the output.

class: writes half
defence: outputs are poisoned before two runs, with different bytes
verdicts: unwritten_output
scratch: like outputs
"""

import cutlass.cute as cute


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, (scratch[0], *outputs[1:]))
    copy(scratch[0], outputs[0], 0, cute.size(outputs[0]) // 2, stream)
