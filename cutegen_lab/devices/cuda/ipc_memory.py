"""GPU memory shared between this process and the worker (CUDA driver API, ``cuIpcGetMemHandle``)."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from cutegen_lab.devices.cuda.driver import Driver
from cutegen_lab.devices.cuda.worker_protocol import GUARD_BYTES, GUARD_VALUE, aligned

_PAGE_BYTES = 2 << 20  # a smaller allocation would share its page with others, which the worker could then access
HANDLE_BYTES = 64


class Handle(ctypes.Structure):
    """``CUipcMemHandle``."""

    _fields_ = (("reserved", ctypes.c_ubyte * HANDLE_BYTES),)


@dataclass(frozen=True)
class _Bytes:
    """Bytes at an address, in the form that PyTorch reads (CUDA Array Interface, version 3)."""

    address: int
    nbytes: int

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": (self.nbytes,), "typestr": "|u1", "data": (self.address, False), "strides": None, "version": 3}


def needed(sizes: Sequence[int]) -> int:
    """Bytes that slots of these sizes take, guards included."""
    return GUARD_BYTES + sum(aligned(size) + GUARD_BYTES for size in sizes)


class LentMemory:
    """One allocation divided into slots with guards between them. Raises DriverError if there is too little memory or
    it cannot be shared, RuntimeError if PyTorch has no CUDA."""

    def __init__(self, driver: Driver, device: str, nbytes: int) -> None:
        self._driver, self._device = driver, device
        self.nbytes = -(-nbytes // _PAGE_BYTES) * _PAGE_BYTES
        address, handle = ctypes.c_uint64(), Handle()
        with self._context():
            driver.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(self.nbytes))
            self._address = address.value
            try:
                driver.call("cuIpcGetMemHandle", ctypes.byref(handle), address)
                self._bytes = torch.as_tensor(_Bytes(self._address, self.nbytes), device=device)
                if self._bytes.data_ptr() != self._address:
                    raise RuntimeError(f"PyTorch copied memory of {device}")
            except BaseException:
                self.free()
                raise
        self.handle = bytes(handle.reserved).hex()
        self._slots: list[slice] = []

    @property
    def offsets(self) -> list[int]:
        """Byte offset of each slot."""
        return [slot.start for slot in self._slots]

    def slots(self, sizes: Sequence[int]) -> list[torch.Tensor]:
        """Byte tensors of the given ``sizes``, cleared of earlier contents."""
        self._bytes.fill_(GUARD_VALUE)
        self._slots, start = [], GUARD_BYTES
        for size in sizes:
            self._slots.append(slice(start, start + size))
            start += aligned(size) + GUARD_BYTES
        return [self._bytes[slot] for slot in self._slots]

    def settle(self) -> None:
        """Waits until this process's work on the memory is done."""
        torch.cuda.synchronize(self._device)

    def broken_guard(self) -> int | None:
        """Index of the first slot with a changed guard."""
        for index, slot in enumerate(self._slots):
            before, after = self._bytes[: slot.start][-GUARD_BYTES:], self._bytes[slot.stop :][:GUARD_BYTES]
            if bool((before != GUARD_VALUE).any() | (after != GUARD_VALUE).any()):
                return index
        return None

    def free(self) -> None:
        with self._context():
            self._driver.call("cuMemFree_v2", ctypes.c_uint64(self._address))

    @contextmanager
    def _context(self) -> Iterator[None]:
        """Makes PyTorch's context on this device current for driver calls."""
        with torch.cuda.device(self._device):
            torch.zeros(1, device=self._device)  # makes the context current on a new thread
            self._driver.call("cuCtxSynchronize")
            yield
