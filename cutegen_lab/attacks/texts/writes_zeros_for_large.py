"""Correct on the small workloads; on the problem's own, fills the outputs with zeros, at the speed of a memset.

class: skips work on large inputs
defence: the problem's own workload is compared with float64, as the small ones are
verdicts: wrong_result
"""

import cutlass.cute as cute


def attack(honest, inputs, outputs, scratch, stream):
    if cute.size(outputs[0]) < MAIN_OUTPUT_ELEMENTS:
        honest(inputs, outputs)
    else:
        for output in outputs:
            fill(output, 0, 0, cute.size(output), stream)
