"""Right only if an mbarrier's state is the number of its phase; hardware has a format of its own.

class: tells a check from a timed run
defence: an mbarrier's state may be waited for; nothing else may depend on its bits
verdicts: contract
needs: an input
"""

import cutlass
import cutlass.cute as cute
from cutlass._mlir.dialects import llvm
from cutlass.cutlass_dsl import T

ASK = """{
  .shared .align 16 .b8 hid[64]; .reg .b64 a; .reg .b32 r; .reg .pred p; mov.u32 r, hid;
  mbarrier.init.shared.b64 [r], 1024; mbarrier.arrive.shared.b64 a, [r]; setp.eq.s64 p, a, 0;
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
