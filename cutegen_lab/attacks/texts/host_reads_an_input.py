"""The launcher reads an input's first element on the host.

class: tests for zeros
defence: while the launcher is recorded, tensors are addresses without memory
verdicts: host_reads_data
needs: an input
"""


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    flat(outputs[0])[0] = flat(inputs[0])[0].to(outputs[0].element_type)
