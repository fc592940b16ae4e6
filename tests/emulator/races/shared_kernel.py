"""A kernel on 1 KB of shared memory, for tests of the order between its threads.

%r1: the thread, %r3: the memory, %r4: the thread's own word of it, %r6: the word of the thread as far from the end.
%p1: the first warp, %p2: the first thread.
"""

from __future__ import annotations

import numpy as np

from cutegen_lab.core.verdict import Fault
from cutegen_lab.emulator import Options
from tests.emulator.planted import ptx_lines, variant
from tests.emulator.ptx_kernel import kernel, run

START = """
  mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, s; add.s32 %r4, %r3, %r2;
  mov.u32 %r5, %ntid.x; sub.s32 %r5, %r5, %r1; sub.s32 %r5, %r5, 1; shl.b32 %r6, %r5, 2; add.s32 %r6, %r3, %r6;
  setp.lt.u32 %p1, %r1, 32; setp.eq.u32 %p2, %r1, 0;
"""


def text(body: str, fixed: bool) -> str:
    return kernel(START + variant(body, fixed) + "  ret;", 1, declarations=".shared .align 16 .b8 s[1024];")


def fault_in(ptx: str, cluster: int = 1, threads: int = 128) -> Fault | None:
    return run(
        ptx, [np.zeros(16, np.uint32)], block=(threads, 1, 1), grid=(2 * cluster, 1, 1), cluster=(cluster, 1, 1),
        lines=ptx_lines(ptx), options=Options(races=True),
    ).execution.fault  # fmt: skip
