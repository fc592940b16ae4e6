"""Flips the lowest bit of its first input's last byte, so that a later call can recognise that there was an earlier
one.

class: spoils the next launch
defence: inputs are hashed before and after, all bytes
verdicts: input_modified
needs: an input
"""

import cutlass
import cutlass.cute as cute


@cute.kernel
def mark_kernel(gBytes: cute.Tensor, at: cutlass.Constexpr):
    gBytes[at] = gBytes[at] ^ cutlass.Int8(1)


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    at = cute.size(inputs[0]) * inputs[0].element_type.width // 8 - 1
    mark_kernel(cute.recast_tensor(flat(inputs[0]), cutlass.Int8), at).launch(
        grid=[1, 1, 1], block=[1, 1, 1], stream=stream
    )
