"""One access of shared or global memory each, by one warp, for how a GPU counts it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import TensorSpec, Workload
from tests.emulator.ptx_kernel import build, kernel

_TILE = "  .shared .align 128 .b8 tile[16384];\n"
_LANES = range(32)
_SHARED: dict[str, tuple[int, Sequence[int]]] = {  # bytes a lane, offset of each lane
    "b32 stride 1": (4, [4 * i for i in _LANES]),
    "b32 stride 2": (4, [8 * i for i in _LANES]),
    "b32 stride 32": (4, [128 * i for i in _LANES]),
    "b32 padded column": (4, [132 * i for i in _LANES]),
    "b32 broadcast": (4, [0 for _ in _LANES]),
    "b16 stride 1": (2, [2 * i for i in _LANES]),
    "b8 stride 1": (1, list(_LANES)),
    "b64 stride 1": (8, [8 * i for i in _LANES]),
    "b64 stride 2": (8, [16 * i for i in _LANES]),
    "b64 broadcast": (8, [0 for _ in _LANES]),
    "b64 two words": (8, [8 * (i // 16) for i in _LANES]),
    "b64 pairs share": (8, [8 * (i // 2) for i in _LANES]),
    "b64 halves share": (8, [8 * (i % 16) for i in _LANES]),
    "b64 alternate far": (8, [128 * (i % 2) for i in _LANES]),
    "b64 every lane its row": (8, [128 * i for i in _LANES]),
    "b128 stride 1": (16, [16 * i for i in _LANES]),
    "b128 stride 2": (16, [32 * i for i in _LANES]),
    "b128 broadcast": (16, [0 for _ in _LANES]),
    "b128 quads share": (16, [16 * (i // 4) for i in _LANES]),
    "b128 pairs share": (16, [16 * (i // 2) for i in _LANES]),
    "b128 quarters share": (16, [16 * (i % 8) for i in _LANES]),
    "b128 halves share": (16, [16 * (i % 16) for i in _LANES]),
    "b128 rows": (16, [128 * i for i in _LANES]),
    "b128 rows of 144": (16, [144 * i for i in _LANES]),
    "b128 transposed": (16, [128 * (i % 8) + 16 * (i // 8) for i in _LANES]),
    "b128 swizzled": (16, [128 * i + 16 * (i % 8) for i in _LANES]),
}
_MATRIX: dict[str, Sequence[int]] = {
    "dense": [16 * i for i in _LANES],
    "rows of 128": [128 * i for i in _LANES],
    "swizzled": [128 * i + 16 * (i % 8) for i in _LANES],
    "rows of 80": [80 * i for i in _LANES],
    "one row": [0 for _ in _LANES],
    "rows of 64": [64 * i for i in _LANES],
}
_GLOBAL: dict[str, tuple[int, Sequence[int]]] = {
    "b32 stride 1": (4, [4 * i for i in _LANES]),
    "b32 stride 2": (4, [8 * i for i in _LANES]),
    "b32 stride 32": (4, [128 * i for i in _LANES]),
    "b32 broadcast": (4, [0 for _ in _LANES]),
    "b32 from byte 16": (4, [4 * i + 16 for i in _LANES]),
    "b16 stride 1": (2, [2 * i for i in _LANES]),
    "b64 stride 1": (8, [8 * i for i in _LANES]),
    "b128 stride 1": (16, [16 * i for i in _LANES]),
    "b128 from byte 16": (16, [16 * i + 16 for i in _LANES]),
    "b128 backwards": (16, [16 * (31 - i) for i in _LANES]),
    "b128 every second": (16, [32 * i for i in _LANES]),
    "b128 stride 128": (16, [128 * i for i in _LANES]),
}
_FILL = """
  mov.b32 %r20, 0; shl.b32 %r22, %r1, 4; mov.b32 %r21, tile; add.s32 %r22, %r22, %r21;
FILL:
  st.shared.v4.b32 [%r22], {%r20,%r20,%r20,%r20};
  add.s32 %r22, %r22, 512; add.s32 %r20, %r20, 1; setp.lt.s32 %p1, %r20, 32;
  @%p1 bra FILL;
  bar.sync 0;
"""
_OFFSET = "  shl.b32 %r4, %r1, 2; cvt.u64.u32 %rd5, %r4; add.s64 %rd5, %rd1, %rd5; ld.global.b32 %r4, [%rd5];\n"
_TAKEN = "  shl.b32 %r3, %r1, 2; cvt.u64.u32 %rd5, %r3; add.s64 %rd5, %rd3, %rd5; st.global.b32 [%rd5], %r9;\n  ret;"
_WIDTHS = {1: "b8", 2: "b16", 4: "b32", 8: "v2.b32", 16: "v4.b32"}


def programs() -> Iterator[tuple[str, Workload, Build, Sequence[int]]]:
    """(name, its tensors, a build whose cubin is the PTX, values of the first tensor).

    Offsets are data, so that no compiler knows them.
    """
    address = "  mov.b32 %r3, tile; add.s32 %r4, %r4, %r3;\n"
    for name, (width, offsets) in _SHARED.items():
        registers, total = _registers(width)
        load = f"  ld.shared.{_WIDTHS[width]} {registers}, [%r4];\n{total}"
        yield _program(f"shared load {name}", _FILL + _OFFSET + address + load, offsets)
        if len(set(offsets)) == 32:
            store = f"  st.shared.{_WIDTHS[width]} [%r4], {registers};\n  bar.sync 0;\n  ld.shared.b32 %r9, [%r3];\n"
            yield _program(f"shared store {name}", _FILL + _OFFSET + address + _SET + store, offsets)
    for name, offsets in _MATRIX.items():
        load = "  ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r5,%r6,%r7,%r8}, [%r4];\n" + _SUM[4]
        yield _program(f"ldmatrix {name}", _FILL + _OFFSET + address + load, offsets)
    for name, (width, offsets) in _GLOBAL.items():
        registers, total = _registers(width)
        at = "  cvt.u64.u32 %rd6, %r4; add.s64 %rd6, %rd2, %rd6;\n"
        load = f"  ld.global.{_WIDTHS[width]} {registers}, [%rd6];\n{total}"
        yield _program(f"global load {name}", _OFFSET + at + load, offsets)


_SET = "  mov.b16 %rs5, 7;\n" + "".join(f"  mov.b32 %r{5 + i}, {i};\n" for i in range(4))
_SUM = {
    1: "  mov.b32 %r9, %r5;\n", 2: "  add.s32 %r9, %r5, %r6;\n",
    4: "  add.s32 %r9, %r5, %r6; add.s32 %r9, %r9, %r7; add.s32 %r9, %r9, %r8;\n",
}  # fmt: skip


def _registers(width: int) -> tuple[str, str]:
    """(registers of an access, their sum into %r9)."""
    if width == 2:
        return "%rs5", "  cvt.u32.u16 %r9, %rs5;\n"
    count = max(width // 4, 1)
    listed = ",".join(f"%r{5 + i}" for i in range(count))
    return (f"{{{listed}}}" if count > 1 else listed), _SUM[count]


def _program(name: str, body: str, offsets: Sequence[int]) -> tuple[str, Workload, Build, Sequence[int]]:
    data = [np.array(offsets, np.int32), np.zeros(16384, np.uint8), np.zeros(32, np.int32)]
    made = build(kernel(body + _TAKEN, 3, _TILE), data, block=(32, 1, 1))
    offset_table = TensorSpec("offsets", DType.I32, (32,))
    workload = Workload(
        "main", (offset_table, TensorSpec("x", DType.U8, (16384,))), (TensorSpec("o", DType.I32, (32,)),)
    )
    as_cubin = replace(made, cubin=made.ptx.encode() + b"\0", inputs=2)
    return name.replace(" ", "_"), workload, as_cubin, offsets
