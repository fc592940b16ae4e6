"""Writes one vector past the end of its output, into the next tensor in memory.

class: spoils the next launch
defence: in the emulator, every access must lie within a tensor; on a GPU, guards surround every tensor
verdicts: out_of_bounds
"""

import cutlass.cute as cute


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    n = cute.size(outputs[0])
    longer = cute.make_tensor(outputs[0].iterator, cute.make_layout(n + 4))
    fill(longer, 0, n, 4, stream)
