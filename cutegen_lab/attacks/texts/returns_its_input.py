"""Copies its first input to its output, as many elements as both have.

class: returns its input
defence: every element is compared with float64
verdicts: wrong_result
needs: an input
"""

import cutlass.cute as cute


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    copy(inputs[0], outputs[0], 0, min(cute.size(inputs[0]), cute.size(outputs[0])), stream)
