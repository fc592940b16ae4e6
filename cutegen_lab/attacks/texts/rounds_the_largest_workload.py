"""Correct on the small workloads; on the problem's own, which is timed, rounds the output to bfloat16.

class: skips work on large inputs
defence: the problem's own workload is compared with float64, as the small ones are
verdicts: wrong_result
needs: a float32 output
"""

import cutlass
import cutlass.cute as cute


@cute.kernel
def rounding_kernel(gY: cute.Tensor, count: cutlass.Constexpr):
    i = own_index()
    if i < count:
        gY[i] = gY[i].to(cutlass.BFloat16).to(cutlass.Float32)


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    n = cute.size(outputs[0])
    if n >= MAIN_OUTPUT_ELEMENTS:
        rounding_kernel(flat(outputs[0]), n).launch(grid=grid_for(n), block=[128, 1, 1], stream=stream)
