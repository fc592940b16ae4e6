"""Options of ``%cute_layout`` and ``cutegen layout``: one table for both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cutegen_lab.core.dtypes import DType
from cutegen_lab.layouts.notation import SWIZZLE_MODES

OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "layout": {"nargs": "*", "help": "as CuTe prints it: ((2,4),8):((1,16),2) or Sw<3,4,3> o 0 o (8,64):(64,1)"},
    "--swizzle": {"default": "", "metavar": "B,M,S", "help": f"on element indices (3,4,3), or a TMA or wgmma mode, on "
                  f"addresses: {', '.join(SWIZZLE_MODES)}"},
    "--dtype": {"default": "", "help": "type of an element in memory (f32)"},
    "--banks": {"action": "store_true", "help": "colour by the bank of shared memory, and draw memory"},
    "--access": {"default": "", "metavar": "16B", "help": "draw the wavefronts of a warp: bytes read per thread"},
    "--threads": {"default": "", "metavar": "LAYOUT", "help": "threads over the pieces of --access: 32 is down the "
                  "rows (the default), (1,32) along the columns, (8,4):(4,1) 8 rows of 4"},
    "--divide": {"default": "", "metavar": "TILER", "help": "draw tiles: (2,4), or a layout for each mode"},
    "--compose": {"default": "", "metavar": "LAYOUT", "help": "draw the composition with a layout or tiler"},
    "--mma": {"nargs": "+", "metavar": "WORD", "help": "an operand of a tensor-core instruction: sm80 16x8x16 f16 A, "
              "sm90 64x128x16 bf16 C; A and B of sm90 are in shared memory, A-registers is the other A"},
    "--major": {"default": "k", "choices": ["k", "mn"], "help": "contiguous dimension of A and B of sm90 (k)"},
    "--tma": {"nargs": "+", "metavar": "WORD", "help": "a box in shared memory: 64x64 bf16 128B"},
    "--copy": {"nargs": 2, "metavar": ("THREADS", "VALUES"), "help": "a tiled copy: (16,8):(8,1) (1,8)"},
    "--rows": {"default": "", "metavar": "A:B", "help": "draw these rows only"},
    "--columns": {"default": "", "metavar": "A:B", "help": "draw these columns only"},
    "--svg": {"default": "", "metavar": "FILE", "help": "write the picture to this file"},
}  # fmt: skip
"""Arguments of ``ArgumentParser.add_argument``, by name."""
EXAMPLES = (
    "((2,4),8):((1,16),2)",
    "(8,64):(64,1) --swizzle 128B --dtype f16 --banks",
    "(32,32):(32,1) --access 4B --threads 32",
    "(8,16):(16,1) --divide (2,4)",
    "--mma sm90 64x128x16 f16 C",
    "--tma 64x64 bf16 128B --access 16B",
)
VALUES: Mapping[str, Sequence[str]] = {
    "--swizzle": SWIZZLE_MODES, "--access": ("4B", "8B", "16B"), "--threads": ("32", "(1,32)", "(8,4):(4,1)"),
    "--dtype": tuple(kind.value for kind in DType), "--major": ("k", "mn"),
}  # fmt: skip
"""Values of options, or examples, for completion."""
