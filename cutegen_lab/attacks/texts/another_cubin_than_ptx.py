"""Compiles a right and a wrong version, and returns the right PTX with the wrong cubin: the emulator runs the PTX, a
GPU the cubin.

class: forged artifact or plan
defence: the compiler's state is compared with that before the candidate was imported; and the cubin must be what the
    PTX assembles to, in a process that never ran the candidate
verdicts: contract, wrong_result, compile_crash, rejected_source
"""

import cutlass
import cutlass.cute as cute

SPOILT = [False]


@cute.kernel
def two_faced_kernel(gY: cute.Tensor, count: cutlass.Constexpr):
    i = own_index()
    if i < count:
        if cutlass.const_expr(SPOILT[0]):
            spoil(gY, i)
        else:
            gY[i] = gY[i]


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    n = cute.size(outputs[0])
    two_faced_kernel(flat(outputs[0]), n).launch(grid=grid_for(n), block=[128, 1, 1], stream=stream)


(face,) = (cute,)  # the gate follows assignments to plain names only
compile_once = face.compile


def compile_twice(launch, *tensors, **options):
    SPOILT[0] = True
    spoilt = compile_once(launch, *tensors, **options)
    cubin = spoilt.artifacts.CUBIN
    SPOILT[0] = False
    shown = compile_once(launch, *tensors, **options)
    shown.artifacts.CUBIN = cubin
    return shown


face.compile = compile_twice
