"""Runs a compiled host launcher on the stand-in runtime, with tensors that have addresses but no memory.

Runs in the cage. Each tensor is a reserved, unreadable address range: the launcher may compute with its address, shape
and strides; touching its contents ends the process and names the tensor. The launcher is recorded several times, with
the tensors at different addresses and in different orders, to tell bytes that depend on an address (even only on a
remainder of it) from those that do not.
"""

from __future__ import annotations

import ctypes
import mmap
import secrets
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from cutegen_lab.compile import dsl, ptx
from cutegen_lab.compile.wire import RECORDINGS
from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.core.roofline import GpuSpec

MAP_NORESERVE = 0x4000
MAP_FIXED_NOREPLACE = 0x100000
_PAGE = mmap.PAGESIZE
_SLOT_UNIT = 1 << 30
_BELOW_DRIVER = (0x1000_0000_0000, 0x5000_0000_0000)
_DRIVER_RANGE = (0x7F00_0000_0000, 0x7FF0_0000_0000)
_TRIES = 64


class StandIn:
    """The stand-in runtime library, loaded into this process."""

    def __init__(self, path: str, gpu: GpuSpec) -> None:
        self._library = ctypes.CDLL(path)
        self._library.cutegen_log.restype = ctypes.c_void_p
        self._library.cutegen_stream.restype = ctypes.c_void_p
        self.stream = int(self._library.cutegen_stream())
        self._library.cutegen_declare_kernel.argtypes = [
            ctypes.c_char_p,
            ctypes.c_int,
            ctypes.POINTER(ctypes.c_uint32),
        ]
        self._library.cutegen_guard.argtypes = [ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64]
        for attribute, value in device_figures(gpu).items():
            self._library.cutegen_set_figure(attribute, value)
        self._library.cutegen_forget()

    def declare(self, entry: ptx.Entry) -> None:
        """Declares a kernel and its parameter sizes. Raises RuntimeError if there are too many."""
        sizes = (ctypes.c_uint32 * len(entry.params))(*(p.size for p in entry.params))
        if self._library.cutegen_declare_kernel(entry.name.encode(), len(entry.params), sizes):
            raise RuntimeError(f"the recorder takes at most 64 kernels of 256 parameters; {entry.name} exceeds this")

    def guard(self, index: int, first: int, last: int) -> None:
        """Declares addresses [first, last) of tensor ``index``: an access there is reported."""
        if self._library.cutegen_guard(index, first, last):
            raise RuntimeError("the recorder takes at most 128 tensors")

    def install_guard(self, fd: int) -> None:
        """Reports accesses to tensors on the descriptor ``fd`` and ends the process."""
        self._library.cutegen_install_guard(fd)

    def reset(self) -> None:
        """Clears the log."""
        self._library.cutegen_reset()

    def log(self) -> str:
        """Recorded runtime calls, one per line. Raises RuntimeError if there are too many."""
        size = ctypes.c_int64()
        address = self._library.cutegen_log(ctypes.byref(size))
        if size.value < 0:
            raise RuntimeError("the launcher recorded over 32 MB of launches")
        return ctypes.string_at(address, size.value).decode()


def device_figures(gpu: GpuSpec) -> dict[int, int]:
    """The target GPU's values of CUDA device attributes, by cudaDeviceAttr id (driver_types.h)."""
    major, minor = divmod(int("".join(c for c in gpu.arch.removeprefix("sm_") if c.isdigit())), 10)
    return {
        1: gpu.max_threads_per_block, 2: 1024, 3: 1024, 4: 64, 5: 2**31 - 1, 6: 65535, 7: 65535,
        8: 49_152, 10: 32, 12: gpu.registers_per_sm, 13: int(gpu.clock_hz / 1e3), 16: gpu.sm_count,
        38: gpu.l2_bytes, 39: gpu.max_threads_per_sm, 75: major, 76: minor, 81: gpu.smem_per_sm,
        82: gpu.registers_per_sm, 95: 1, 97: gpu.max_smem_per_block, 106: gpu.max_blocks_per_sm, 120: 1,
    }  # fmt: skip


Layout = tuple[list[int], tuple[int, int]]  # offset of each tensor from a base, and the region where the base lies


def layouts(tensors: Sequence[TensorSpec]) -> tuple[int, list[Layout]]:
    """(bytes of the address range that holds all tensors, ``RECORDINGS`` positions of them).

    In the first position, tensors are page-aligned, below the driver's address range; in the others they are in that
    range, 16-byte aligned and in another order, which exposes a launcher that compares addresses or assumes more
    alignment.
    """
    slot = _SLOT_UNIT * (2 + max((t.storage_bytes for t in tensors), default=0) // _SLOT_UNIT)
    count = len(tensors)
    first = [i * slot + (slot >> 2) // _PAGE * _PAGE for i in range(count)]
    second = [(count - 1 - i) * slot + (slot >> 3) // _PAGE * _PAGE + 16 * (2 * i + 3) for i in range(count)]
    found: list[Layout] = [(first, _BELOW_DRIVER), (second, _DRIVER_RANGE)]
    while len(found) < RECORDINGS:
        order = secrets.SystemRandom().sample(range(count), count)
        found.append(
            ([i * slot + (slot >> 3) // 16 * 16 + 16 * secrets.randbelow(1 << 16) for i in order], _DRIVER_RANGE)
        )
    return count * slot, found


@contextmanager
def _placed(
    tensors: Sequence[TensorSpec], offsets: Sequence[int], region: tuple[int, int], size: int
) -> Iterator[list[int]]:
    """Addresses at ``offsets`` from an unpredictable place in ``region``. Raises RuntimeError."""
    for _ in range(_TRIES):
        low, high = region
        base = low + secrets.randbelow(max((high - low - size) // _SLOT_UNIT, 1)) * _SLOT_UNIT
        bases = [base + offset for offset in offsets]
        with ExitStack() as held:
            if all(held.enter_context(_range(at, tensor)) for at, tensor in zip(bases, tensors, strict=True)):
                yield bases
                return
    raise RuntimeError(f"cannot reserve addresses for {len(tensors)} tensors of {size} bytes together")


@contextmanager
def _range(base: int, tensor: TensorSpec) -> Iterator[bool]:
    """Reserves the pages of ``tensor`` at ``base``; False if something else is there."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    start = base // _PAGE * _PAGE
    size = (base - start + max(tensor.storage_bytes, 1) + _PAGE - 1) // _PAGE * _PAGE
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE
    held = libc.mmap(start, size, 0, flags, -1, 0) == start
    try:
        yield held
    finally:
        if held:
            libc.munmap(start, size)


def record(
    compiled: Any, listing: str, tensors: Sequence[TensorSpec], gpu: GpuSpec, standin_path: str, guard_fd: int
) -> list[dict[str, Any]]:
    """``RECORDINGS`` recordings: tensor addresses, the launcher's error code, and the stand-in's log."""
    standin = StandIn(standin_path, gpu)
    for entry in ptx.entries(listing):
        standin.declare(entry)
    dsl.load(compiled)
    standin.install_guard(guard_fd)
    size, places = layouts(tensors)
    recordings = []
    for offsets, region in places:
        with _placed(tensors, offsets, region, size) as bases:
            for index, (base, tensor) in enumerate(zip(bases, tensors, strict=True)):
                standin.guard(index, base, base + max(tensor.storage_bytes, 1))
            standin.reset()
            error = dsl.call(compiled, bases, standin.stream)
            recordings.append({"bases": list(bases), "error": error, "log": standin.log()})
    return recordings
