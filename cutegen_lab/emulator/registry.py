"""The table of opcodes, and what generated code may name.

A function registered by :func:`opcode` takes the :class:`~cutegen_lab.emulator.translate.emit.Emit` of one instruction;
one registered by :func:`runtime` is called by generated code under its own name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from cutegen_lab.emulator.translate.emit import Emit

OpcodeFunction = Callable[["Emit"], None]
F = TypeVar("F", bound=Callable[..., Any])

OPCODES: dict[str, OpcodeFunction] = {}
RUNTIME: dict[str, Any] = {"np": np, "f32": np.float32, "f64": np.float64, "f16": np.float16, "u8": np.uint8,
                           "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "i8": np.int8, "i16": np.int16,
                           "i32": np.int32, "i64": np.int64}  # fmt: skip
"""What generated code may name."""


def opcode(*names: str) -> Callable[[OpcodeFunction], OpcodeFunction]:
    """Registers a function for one or more opcodes (the part before the first dot)."""

    def register(function: OpcodeFunction) -> OpcodeFunction:
        OPCODES.update(dict.fromkeys(names, function))
        return function

    return register


def runtime(function: F) -> F:
    """Makes a function callable from generated code by its own name."""
    RUNTIME[function.__name__] = function
    return function
