"""Writes one element at the address just below its output.

class: spoils the next launch
defence: in the emulator, every access must lie within a tensor; on a GPU, guards surround every tensor
verdicts: out_of_bounds
"""

import cutlass.cute as cute


@cute.kernel
def write_before_kernel(gY: cute.Tensor):
    before = cute.make_tensor(gY.iterator - 1, cute.make_layout(1))
    before[0] = gY.element_type(0)


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    write_before_kernel(flat(outputs[0])).launch(grid=[1, 1, 1], block=[1, 1, 1], stream=stream)
