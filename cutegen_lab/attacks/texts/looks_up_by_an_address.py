"""A bit of an address chooses which element is read, and this element decides whether the output is right: the address
is neither compared nor stored.

class: tells a check from a timed run
defence: an address may be computed from a pointer and numbers only, not from bits of an address
verdicts: contract
needs: an input
"""

import cutlass
import cutlass.cute as cute
from cutlass._mlir.dialects import llvm
from cutlass.cutlass_dsl import T

ASK = """{
  .reg .b64 a; .reg .b32 r; .reg .pred p; shr.u64 a, $1, 20; and.b64 a, a, 4; add.s64 a, a, $1;
  ld.global.b32 r, [a]; setp.eq.u32 p, r, 0x7F000001; selp.b32 $0, 1, 0, p;
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
