"""PTX fundamental types (PTX ISA 5.2) and how lanes hold them.

Each register file is one array ``[rows, lanes]``: ``P`` bool, ``H`` uint16, ``U`` uint32, ``D`` uint64. The same
bytes are seen through typed views: ``I`` int16, ``E`` float16; ``S`` int32, ``F`` float32; ``L`` int64, ``G`` float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

WIDTH = {
    "b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2, "e4m3x2": 2,
    "e5m2x2": 2, "b32": 4, "u32": 4, "s32": 4, "f32": 4, "f16x2": 4, "bf16x2": 4, "tf32": 4, "b64": 8,
    "u64": 8, "s64": 8, "f64": 8,
}  # fmt: skip
"""Bytes of a value of each type."""

VIEW = {
    "pred": "P", "b8": "H", "u8": "H", "s8": "H", "b16": "H", "u16": "H", "bf16": "H", "e4m3x2": "H",
    "e5m2x2": "H", "s16": "I", "f16": "E", "b32": "U", "u32": "U", "f16x2": "U", "bf16x2": "U", "tf32": "U", "s32": "S",
    "f32": "F", "b64": "D", "u64": "D", "s64": "L", "f64": "G",
}  # fmt: skip
"""By type: the view through which an operand is read."""

FILE_OF_VIEW = {"P": "P", "H": "H", "I": "H", "E": "H", "U": "U", "S": "U", "F": "U", "D": "D", "L": "D", "G": "D"}
FILE_OF_TYPE = {t: FILE_OF_VIEW[v] for t, v in VIEW.items()}
FILES = "PHUD"

NUMPY = {
    "P": np.bool_, "H": np.uint16, "I": np.int16, "E": np.float16, "U": np.uint32, "S": np.int32, "F": np.float32,
    "D": np.uint64, "L": np.int64, "G": np.float64,
}  # fmt: skip
"""NumPy's type of each view."""

INTEGER_TYPES = {"u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"}
RAW = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}
"""NumPy type for each access width; a copy keeps every bit."""
MARKED = {w: np.ones(w, np.uint8).view(t)[0] for w, t in RAW.items()}
"""By access width: one element whose bytes are all 1, to mark written bytes if these are tracked."""
