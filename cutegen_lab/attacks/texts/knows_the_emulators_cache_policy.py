"""Right only if a cache policy is the number zero, as in an emulator without caches.

class: tells a check from a timed run
defence: a cache policy may be passed to instructions that take one; nothing else may depend on its bits
verdicts: contract
needs: an input
"""

import cutlass
import cutlass.cute as cute
from cutlass._mlir.dialects import llvm
from cutlass.cutlass_dsl import T

ASK = """{
  .reg .b64 a; .reg .pred p; createpolicy.fractional.L2::evict_last.b64 a, 1.0; setp.eq.s64 p, a, 0;
  selp.b32 $0, 0, 1, p;
}"""


@cute.kernel
def hidden_kernel(gX: cute.Tensor, gY: cute.Tensor, count: cutlass.Constexpr):
    i = own_index()
    addresses = [gX.iterator.toint().ir_value(), gY.iterator.toint().ir_value()]
    found = cutlass.Int32(llvm.inline_asm(T.i32(), addresses, ASK, "=r,l,l", has_side_effects=True))
    if i < count:
        if found == 1:
            spoil(gY, i)


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    n = cute.size(outputs[0])
    hidden_kernel(flat(inputs[0]), flat(outputs[0]), n).launch(grid=grid_for(n), block=[128, 1, 1], stream=stream)
