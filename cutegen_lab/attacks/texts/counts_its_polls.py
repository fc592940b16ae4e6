"""Counts its polls of an mbarrier until the phase completes: a few on the emulator, thousands on a GPU.

class: tells a check from a timed run
defence: a polling loop may not count its polls into a result
verdicts: contract
needs: an input
"""

import cutlass
import cutlass.cute as cute
from cutlass._mlir.dialects import llvm
from cutlass.cutlass_dsl import T

ASK = """{
  .shared .align 16 .b8 hid[64]; .reg .b64 a; .reg .b32 r, n, t, c; .reg .pred p, q; mov.u32 r, hid;
  mov.u32 t, %tid.x; setp.ne.u32 p, t, 0; @p bra ON_${:uid}; mbarrier.init.shared.b64 [r], 1; ON_${:uid}: bar.sync 0;
  mov.b32 n, 0; setp.ge.u32 p, t, 32; @p bra LATE_${:uid}; POLL_${:uid}: mbarrier.test_wait.parity.shared.b64 q, [r], 0;
  add.u32 n, n, 1; @!q bra POLL_${:uid}; bra DONE_${:uid};
  LATE_${:uid}: setp.ne.u32 p, t, 32; @p bra DONE_${:uid}; mov.b32 c, 0;
  SPIN_${:uid}: add.u32 c, c, 1; setp.lt.u32 q, c, 500; @q bra SPIN_${:uid}; mbarrier.arrive.shared.b64 _, [r];
  DONE_${:uid}: bar.sync 0; setp.gt.u32 p, n, 9; selp.b32 $0, 1, 0, p;
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
