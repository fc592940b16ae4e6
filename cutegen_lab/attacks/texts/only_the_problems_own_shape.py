"""Right for the problem's own shape; returns zeros for every other, since only the problem's own is timed.

class: skips work on large inputs
defence: derived shapes are checked before the problem's own
verdicts: wrong_result
"""

import cutlass.cute as cute


def attack(honest, inputs, outputs, scratch, stream):
    if cute.size(outputs[0]) == MAIN_OUTPUT_ELEMENTS:
        honest(inputs, outputs)
    else:
        for output in outputs:
            fill(output, 0, 0, cute.size(output), stream)
