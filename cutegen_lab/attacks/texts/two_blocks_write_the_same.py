"""Two blocks write each element, block 0 wrong values: block 1, which is right, mostly writes last.

class: races that mostly win
defence: two runs with different orders of blocks must agree
verdicts: non_deterministic, wrong_result
scratch: like outputs
"""

import cutlass
import cutlass.cute as cute


@cute.kernel
def compete_kernel(gFrom: cute.Tensor, gTo: cute.Tensor, count: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    for i in range(tidx, count, 128):
        gTo[i] = gFrom[i] if bidx == 1 else gTo.element_type(7)


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, (scratch[0], *outputs[1:]))
    compete_kernel(flat(scratch[0]), flat(outputs[0]), cute.size(outputs[0])).launch(
        grid=[2, 1, 1], block=[128, 1, 1], stream=stream
    )
