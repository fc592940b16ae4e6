"""Right only if results of ex2.approx always end in a zero bit, as more coarsely rounded results do.

class: tells a check from a timed run
defence: approximate instructions have the largest permitted error in some runs, and about a GPU's error in the others
verdicts: wrong_result, non_deterministic
needs: an input
"""

import cutlass
import cutlass.cute as cute
from cutlass._mlir.dialects import llvm
from cutlass.cutlass_dsl import T

ASK = """{
  .reg .f32 f; .reg .b32 r, o; mov.b32 o, 0; mov.b32 f, 0f3DCCCCCD; ex2.approx.f32 f, f; mov.b32 r, f;
  and.b32 r, r, 1; or.b32 o, o, r; mov.b32 f, 0f3EF0A3D7; ex2.approx.f32 f, f; mov.b32 r, f; and.b32 r, r, 1;
  or.b32 o, o, r; mov.b32 f, 0f3F570A3D; ex2.approx.f32 f, f; mov.b32 r, f; and.b32 r, r, 1; or.b32 o, o, r;
  mov.b32 f, 0f3F9AE148; ex2.approx.f32 f, f; mov.b32 r, f; and.b32 r, r, 1; or.b32 o, o, r;
  mov.b32 f, 0f3FCA3D71; ex2.approx.f32 f, f; mov.b32 r, f; and.b32 r, r, 1; or.b32 o, o, r;
  mov.b32 f, 0f3FF9999A; ex2.approx.f32 f, f; mov.b32 r, f; and.b32 r, r, 1; or.b32 o, o, r;
  mov.b32 f, 0f40147AE1; ex2.approx.f32 f, f; mov.b32 r, f; and.b32 r, r, 1; or.b32 o, o, r;
  mov.b32 f, 0f402C28F6; ex2.approx.f32 f, f; mov.b32 r, f; and.b32 r, r, 1; or.b32 o, o, r;
  mov.b32 f, 0f4043D70A; ex2.approx.f32 f, f; mov.b32 r, f; and.b32 r, r, 1; or.b32 o, o, r;
  mov.b32 f, 0f405B851F; ex2.approx.f32 f, f; mov.b32 r, f; and.b32 r, r, 1; or.b32 o, o, r;
  mov.b32 f, 0f40733333; ex2.approx.f32 f, f; mov.b32 r, f; and.b32 r, r, 1; or.b32 o, o, r;
  mov.b32 f, 0f408570A4; ex2.approx.f32 f, f; mov.b32 r, f; and.b32 r, r, 1; or.b32 o, o, r; min.u32 $0, o, 1;
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
