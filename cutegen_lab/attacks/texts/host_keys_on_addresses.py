"""The launcher takes another grid for another address: one path for the checks, one for the timing.

class: keys on pointer values
defence: the launcher is recorded several times, at other addresses, and all must ask for the same
verdicts: unstable_plan
"""

import cutlass.cute as cute


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    n = cute.size(outputs[0])
    blocks = (outputs[0].iterator.toint() // 16) % 7 + 1
    fill_kernel(flat(outputs[0]), 0, n, 0).launch(grid=[blocks, 1, 1], block=[32, 1, 1], stream=stream)
