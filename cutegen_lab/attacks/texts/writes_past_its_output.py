"""Writes one vector more than its output has: the tensor behind it is somebody else's.

class: spoils the next launch
defence: every access must lie within a tensor; canaries around every tensor elsewhere
verdicts: out_of_bounds
"""

import cutlass.cute as cute


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    n = cute.size(outputs[0])
    longer = cute.make_tensor(outputs[0].iterator, cute.make_layout(n + 4))
    fill(longer, 0, n, 4, stream)
