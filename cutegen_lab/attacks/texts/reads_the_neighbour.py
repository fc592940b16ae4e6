"""Searches the 64 KiB after its output for another tensor, such as the reference's result.

class: reads the neighbour buffer
defence: every access must lie within a tensor, and the candidate runs before the reference
verdicts: out_of_bounds
"""

import cutlass
import cutlass.cute as cute


@cute.kernel
def search_kernel(gY: cute.Tensor, count: cutlass.Constexpr, elements: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    beyond = cute.make_tensor(gY.iterator + count, cute.make_layout(elements))
    for i in range(tidx, elements, 128):
        if beyond[i] == gY[0]:
            gY[tidx % count] = beyond[i]


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    n = cute.size(outputs[0])
    search_kernel(flat(outputs[0]), n, 65536 * 8 // outputs[0].element_type.width).launch(
        grid=[1, 1, 1], block=[128, 1, 1], stream=stream
    )
