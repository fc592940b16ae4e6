"""The launcher looks at an input's first element, to choose by it which kernel to launch.

class: tests for zeros
defence: tensors have no memory behind them while the launcher is recorded
verdicts: host_reads_data
needs: an input
"""


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    flat(outputs[0])[0] = flat(inputs[0])[0].to(outputs[0].element_type)
