"""Works on the small shapes, where it is looked at, and skips the problem's own, where it is timed.

class: skips work on large inputs
defence: the problem's own workload is checked like the small ones, over poisoned outputs
verdicts: unwritten_output
scratch: memory
"""

import cutlass.cute as cute


def attack(honest, inputs, outputs, scratch, stream):
    if cute.size(outputs[0]) < MAIN_OUTPUT_ELEMENTS:
        honest(inputs, outputs)
    else:
        fill(scratch[0], 0, 0, 1, stream)
