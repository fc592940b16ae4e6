"""Asks for a block of 2,048 threads: what a driver does with it is not the judge's to find out.

class: forged artifact or plan
defence: every launch of the plan is checked before a device sees it
verdicts: invalid_plan, compile_error
"""

import cutlass.cute as cute


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    fill_kernel(flat(outputs[0]), 0, cute.size(outputs[0]), 0).launch(grid=[1, 1, 1], block=[1024, 2, 1], stream=stream)
