"""Calls (PTX ISA 9.7.12.4 call): only ``vprintf``, to which printing from a kernel compiles."""

from __future__ import annotations

import numpy as np

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.generated_globals import runtime
from cutegen_lab.emulator.memory.block_memory import GENERIC_LOCAL, BlockMemory
from cutegen_lab.emulator.memory.global_memory import GlobalMemory
from cutegen_lab.emulator.memory.printf import MOST_FORMAT_BYTES, formatted
from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.roles import Group
from cutegen_lab.emulator.translate.emit import Emit, opcode


@opcode("call")
def call(e: Emit) -> None:
    """9.7.12.4 call of ``vprintf(format, arguments)``. The emulator returns 0 instead of the number of bytes."""
    e.skip("uni")
    e.klass = "control"
    match e.ops:
        case (ptx.Vector((result,)), ptx.Symbol("vprintf"), ptx.Vector((text, arguments))):
            e.line(f"printf(g,g.ctas.memory,g.ctas.local,{e.s(text, 'b64')},{e.s(arguments, 'b64')})")
            e.line(f"{e.d(result, 'b32')}[:]=0")
        case _:
            raise e.refuse(f"the emulator does not execute `{e.ins.text}`: only vprintf may be called")


@runtime
def printf(g: Group, memory: GlobalMemory, local: BlockMemory, text: Array, arguments: Array) -> None:
    """Prints once for each thread, in ascending order of threads."""
    for lane, gid in enumerate(g.gid.tolist()):
        start = int(arguments[lane]) - GENERIC_LOCAL

        def argument(offset: int, size: int, gid: int = gid, start: int = start) -> bytes:
            at = start + offset
            if not 0 <= at <= local.limit - size:
                raise Trap(Verdict.OUT_OF_BOUNDS, "printf has more conversions than arguments", gid)
            window = gid * local.stride
            return local.data[window + at : window + at + size].tobytes()

        def string(address: int, gid: int = gid) -> bytes:
            return memory.string(gid, address, MOST_FORMAT_BYTES)

        memory.printed.write(formatted(string(int(np.uint64(text[lane]))), argument, string))
