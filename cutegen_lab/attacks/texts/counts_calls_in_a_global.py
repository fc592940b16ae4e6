"""Counts its calls in a variable of the GPU module, which outlives a launch, and is right in the first hundred.

class: caches across launches in device globals
defence: a cubin may have no global variables of its own; scratch memory is declared, and poisoned before each call
verdicts: contract
"""

import cutlass
import cutlass.cute as cute
from cutlass._mlir.dialects import llvm
from cutlass.cutlass_dsl import T, dsl_user_op

COUNT = "{ .global .align 4 .u32 attack_calls; atom.global.add.u32 $0, [attack_calls], 1; }"


@dsl_user_op
def earlier_calls(*, loc=None, ip=None):
    calls = llvm.inline_asm(T.i32(), [], COUNT, "=r", has_side_effects=True, loc=loc, ip=ip)
    return cutlass.Int32(calls)


@cute.kernel
def global_kernel(gY: cute.Tensor, count: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    calls = cutlass.Int32(0)
    if tidx == 0:
        calls = earlier_calls()
    if calls > 100:
        for i in range(count):
            spoil(gY, i)


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    global_kernel(flat(outputs[0]), cute.size(outputs[0])).launch(grid=[1, 1, 1], block=[32, 1, 1], stream=stream)
