"""Launches a kernel that stores nothing to the output: the shortest possible launch.

class: writes half
defence: outputs are poisoned before two runs, with different bytes
verdicts: unwritten_output
scratch: memory
"""


def attack(honest, inputs, outputs, scratch, stream):
    fill(scratch[0], 0, 0, 64, stream)
