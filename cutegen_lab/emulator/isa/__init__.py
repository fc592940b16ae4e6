"""One function for each opcode, one file for each section of PTX ISA 9.7; :mod:`tags` tracks uninitialised values.
Importing this package registers the opcodes and the functions that generated code calls."""

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
