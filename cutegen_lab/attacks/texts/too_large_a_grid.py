"""Asks for more blocks than a grid may have in its second dimension.

class: forged artifact or plan
defence: every launch of the plan is checked before a device runs it
verdicts: invalid_plan
"""

import cutlass.cute as cute


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    fill_kernel(flat(outputs[0]), 0, cute.size(outputs[0]), 0).launch(
        grid=[1, 70000, 1], block=[32, 1, 1], stream=stream
    )
