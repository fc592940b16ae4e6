"""Launches a kernel that stores nothing to the output: as fast as a launch can be.

class: writes half
defence: outputs start poisoned, twice, with different bytes
verdicts: unwritten_output
scratch: memory
"""


def attack(honest, inputs, outputs, scratch, stream):
    fill(scratch[0], 0, 0, 64, stream)
