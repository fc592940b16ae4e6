"""Declares 128 GiB of workspace, which the judge would have to allocate.

class: spoils the next launch
defence: memory is counted before it is allocated
verdicts: out_of_memory, contract, invalid_plan
scratch: 128 GiB
"""


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    fill(scratch[0], 0, 0, 1, stream)
