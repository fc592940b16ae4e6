"""What tensor copies to memory do at the edges of a tensor, on a real GPU.

    python -m benchmarks.emulator.bulk_stores_on_gpu OUT.json   (needs a GPU and its driver)

One thread stores a box of 32 bytes by 2 rows, numbered byte by byte, to a tensor of two rows in the middle of other
memory. The emulator's tests hold themselves to what was recorded (tests/emulator/tma/test_stores_at_tensor_edges.py).
"""

from __future__ import annotations

import ctypes
import multiprocessing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import command_line, conditions, write_json

MEMORY, FIRST, PITCH, BOX_BYTES, ROWS = 256, 64, 64, 32, 2  # bytes, but the last
ILLEGAL_INSTRUCTION = 715
_DTYPES = {"u8": (0, 1), "u16": (1, 2), "u32": (2, 4), "f16": (6, 2), "f32": (7, 4), "f64": (8, 8), "bf16": (9, 2)}
_PTX = """.version 8.3
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .b64 memory)
{
  .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p;
  .shared .align 128 .b8 tile[128];
  mov.u32 %r0, %tid.x; mov.u32 %r1, tile; add.u32 %r2, %r1, %r0; add.u32 %r3, %r0, 1; st.shared.u8 [%r2], %r3;
  fence.proxy.async.shared::cta; bar.sync 0;
  setp.ne.u32 %p, %r0, 0; @%p ret;
  mov.b64 %rd0, map; cvta.param.u64 %rd1, %rd0;
  COPY [%rd1, {COLUMN, ROW}], [%r1];
  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; ret;
}
"""


@dataclass(frozen=True)
class Case:
    """``operation`` is "store", or what a reduction does; the tensor's rows are ``row_bytes`` long; the box begins at
    byte ``begins`` of them, and in row ``row``."""

    operation: str
    dtype: str
    row_bytes: int
    begins: int
    row: int = 0

    @property
    def element_bytes(self) -> int:
        return _DTYPES[self.dtype][1]

    @property
    def fill(self) -> int:
        """The byte that memory is full of before."""
        return 0xEE if self.operation == "store" else 0

    @property
    def ptx(self) -> str:
        reduce, name = ("", "") if self.operation == "store" else ("reduce.", f".{self.operation}")
        copy = f"cp.{reduce}async.bulk.tensor.2d.global.shared::cta{name}.tile.bulk_group"
        column = str(self.begins // self.element_bytes)
        return _PTX.replace("COPY", copy).replace("COLUMN", column).replace("ROW", str(self.row))


CASES = (
    *(Case("store", "u16", row, at) for row in (4, 16, 20, 28, 36) for at in (0, -4, -16, 4, 8, 16, 20)),
    *(Case("store", dtype, row, at) for dtype in ("u8", "f32") for row in (4, 20, 36) for at in (0, 4, 16)),
    *(Case("store", "u16", 20, 0, row) for row in (-1, 1, 2)),
    Case("store", "f64", 64, 8), Case("store", "u8", 64, 1),
    *(Case("add", dtype, row, at) for dtype in ("u32", "f16", "f32", "bf16") for row in (4, 20) for at in (0, 4, 16)),
    Case("max", "u32", 20, 0), Case("add", "u32", 20, 0, -1),
)  # fmt: skip


def main(out: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(4, maxtasksperchild=1) as pool:
        found = pool.map(_done, CASES, chunksize=1)  # an illegal instruction ends a process's use of the GPU
    rows = [
        asdict(case) | {"error": error, "memory": memory} for case, (error, memory, _) in zip(CASES, found, strict=True)
    ]
    write_json(out, conditions(found[0][2]), rows=rows)
    print(f"{len(rows)} cases, {sum(error != 0 for error, _, _ in found)} of them refused")


def _done(case: Case) -> tuple[int, str, str]:
    """(error of the driver, what the memory holds afterwards in hexadecimal, the GPU's name)."""
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name: str, *arguments: Any) -> None:
        if error := getattr(cuda, name)(*arguments):
            raise RuntimeError(f"{case}: {name} gives {error}")

    device, context, module, kernel = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    memory, name = ctypes.c_uint64(), ctypes.create_string_buffer(64)
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDeviceGetName", name, len(name), device)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    call("cuModuleLoadData", ctypes.byref(module), case.ptx.encode() + b"\0")
    call("cuModuleGetFunction", ctypes.byref(kernel), module, b"k")
    call("cuMemAlloc_v2", ctypes.byref(memory), MEMORY)
    call("cuMemsetD8_v2", memory, case.fill, MEMORY)
    code, element = _DTYPES[case.dtype]
    room = ctypes.create_string_buffer(192)
    at = -(-ctypes.addressof(room) // 64) * 64
    call("cuTensorMapEncodeTiled", ctypes.c_void_p(at), code, 2, ctypes.c_void_p(memory.value + FIRST),
         (ctypes.c_uint64 * 2)(case.row_bytes // element, ROWS), (ctypes.c_uint64 * 1)(PITCH),
         (ctypes.c_uint32 * 2)(BOX_BYTES // element, ROWS), (ctypes.c_uint32 * 2)(1, 1), 0, 0, 0, 0)  # fmt: skip
    parameters = (ctypes.c_void_p * 2)(at, ctypes.addressof(memory))
    call("cuLaunchKernel", kernel, 1, 1, 1, ROWS * BOX_BYTES, 1, 1, 0, None, parameters, None)
    error, after = cuda.cuCtxSynchronize(), ctypes.create_string_buffer(MEMORY)
    if not error:
        call("cuMemcpyDtoH_v2", after, memory, MEMORY)
    return error, "" if error else after.raw.hex(), name.value.decode()


if __name__ == "__main__":
    command_line(main)
