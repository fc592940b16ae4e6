"""The launcher launches no kernel at all.

class: writes half
defence: a plan without launches is refused when it is recorded
verdicts: contract
"""


def attack(honest, inputs, outputs, scratch, stream):
    pass
