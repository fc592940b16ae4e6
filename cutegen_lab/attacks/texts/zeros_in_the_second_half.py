"""Replaces the second half of its output by zeros.

class: writes half
defence: every element is compared with float64
verdicts: wrong_result
"""

import cutlass.cute as cute


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    n = cute.size(outputs[0])
    fill(outputs[0], 0, n // 2, n - n // 2, stream)
