"""Counts a block's polls of a flag that another block sets: few on the emulator, many on a GPU.

class: tells a check from a timed run
defence: a polling loop may not count its polls into a result
verdicts: contract
scratch: memory
"""

import cutlass
import cutlass.cute as cute
from cutlass._mlir.dialects import llvm
from cutlass.cutlass_dsl import T

ASK = """{
  .reg .b32 n, t, r; .reg .pred p, q; mov.u32 t, %ctaid.x; mov.b32 n, 0; setp.ne.u32 p, t, 0; @p bra POLL_${:uid};
  st.release.gpu.global.u32 [$1], 1; bra DONE_${:uid};
  POLL_${:uid}: ld.acquire.gpu.global.u32 r, [$1]; add.u32 n, n, 1; setp.ne.u32 q, r, 1; @q bra POLL_${:uid};
  DONE_${:uid}: setp.gt.u32 p, n, 20; selp.b32 $0, 1, 0, p;
}"""


@cute.kernel
def zero_kernel(gFlag: cute.Tensor):
    gFlag[0] = 0


@cute.kernel
def hidden_kernel(gFlag: cute.Tensor, gY: cute.Tensor, count: cutlass.Constexpr):
    i = own_index()
    flag = [gFlag.iterator.toint().ir_value()]
    found = cutlass.Int32(llvm.inline_asm(T.i32(), flag, ASK, "=r,l", has_side_effects=True))
    if i < count:
        if found == 1:
            spoil(gY, i)


def attack(honest, inputs, outputs, scratch, stream):
    honest(inputs, outputs)
    n = cute.size(outputs[0])
    zero_kernel(scratch[0]).launch(grid=[1, 1, 1], block=[1, 1, 1], stream=stream)
    hidden_kernel(scratch[0], flat(outputs[0]), n).launch(grid=[2, 1, 1], block=[128, 1, 1], stream=stream)
