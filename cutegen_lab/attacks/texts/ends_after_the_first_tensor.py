"""Writes every output but the last: a reader of the code sees stores, and one tensor is missing.

class: writes half
defence: outputs start poisoned, twice, with different bytes
verdicts: unwritten_output
scratch: like outputs
"""


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, (*outputs[:-1], scratch[len(outputs) - 1]))
