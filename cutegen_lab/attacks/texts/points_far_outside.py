"""Hands its kernel a pointer 64 MiB past the output.

class: forged artifact or plan
defence: every address in the plan must lie within a tensor
verdicts: invalid_plan, unstable_plan
"""

import cutlass.cute as cute


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    far = cute.make_tensor(outputs[0].iterator + (1 << 24), cute.make_layout(1))
    fill(far, 0, 0, 1, stream)
