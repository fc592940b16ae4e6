"""Asks for a block of 2,048 threads, more than any GPU runs.

class: forged artifact or plan
defence: every launch of the plan is checked before a device runs it
verdicts: invalid_plan, compile_error
"""

import cutlass.cute as cute


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    fill_kernel(flat(outputs[0]), 0, cute.size(outputs[0]), 0).launch(grid=[1, 1, 1], block=[1024, 2, 1], stream=stream)
