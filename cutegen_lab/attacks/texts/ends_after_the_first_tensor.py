"""Writes every output except the last.

class: writes half
defence: outputs are poisoned before two runs, with different bytes
verdicts: unwritten_output
scratch: like outputs
"""


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, (*outputs[:-1], scratch[len(outputs) - 1]))
