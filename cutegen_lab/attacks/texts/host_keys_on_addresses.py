"""The launcher chooses the grid by an address: one grid for the checks, another for the timing.

class: keys on pointer values
defence: the launcher is recorded several times, at different addresses, and all recordings must agree
verdicts: unstable_plan
"""

import cutlass.cute as cute


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    n = cute.size(outputs[0])
    blocks = (outputs[0].iterator.toint() // 16) % 7 + 1
    fill_kernel(flat(outputs[0]), 0, n, 0).launch(grid=[blocks, 1, 1], block=[32, 1, 1], stream=stream)
