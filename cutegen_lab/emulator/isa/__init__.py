"""One function an opcode, one file a section of the PTX ISA's chapter 9.7; :mod:`tags` follows uninitialised values.
Importing this fills the tables of opcodes and of what generated code may name."""

from cutegen_lab.emulator.isa import (
    async_copy,
    atomics,
    barrier,
    bits,
    call,
    compare,
    convert,
    extended,
    floating,
    half,
    integer,
    logic,
    matrix_move,
    mbarrier,
    memory_ops,
    mma,
    move,
    tags,
    tensor_maps,
    warp,
    wgmma,
)

__all__ = [
    "async_copy", "atomics", "barrier", "bits", "call", "compare", "convert", "extended", "floating", "half", "integer",
    "logic", "matrix_move", "mbarrier", "memory_ops", "mma", "move", "tags", "tensor_maps", "warp", "wgmma",
]  # fmt: skip
