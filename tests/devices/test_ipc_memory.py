"""The bookkeeping of lent memory, on a host tensor in the place of a GPU's; ``test_cuda.py`` has the real thing."""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any

import pytest
import torch

from cutegen_lab.devices.cuda import ipc_memory
from cutegen_lab.devices.cuda.driver import DriverError
from cutegen_lab.devices.cuda.ipc_memory import LentMemory, needed
from cutegen_lab.devices.cuda.worker_protocol import GUARD_BYTES


class Driver:
    """Allocates ``host``, and fails in what ``refuses`` names."""

    def __init__(self, host: torch.Tensor, refuses: str = "") -> None:
        self.host, self.refuses, self.called = host, refuses, list[str]()

    def call(self, name: str, *arguments: Any) -> None:
        self.called.append(name)
        if name == self.refuses:
            raise DriverError(name, 801, "not supported")
        if name == "cuMemAlloc_v2":
            ctypes.cast(arguments[0], ctypes.POINTER(ctypes.c_uint64))[0] = self.host.data_ptr()


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> torch.Tensor:
    memory = torch.zeros(4 << 20, dtype=torch.uint8)
    monkeypatch.setattr(torch.cuda, "device", contextlib.nullcontext)
    monkeypatch.setattr(ipc_memory.torch, "zeros", lambda *size, device: None)
    monkeypatch.setattr(ipc_memory.torch, "as_tensor", lambda given, device: memory[: given.nbytes])
    return memory


def lending(driver: Driver, nbytes: int) -> LentMemory:
    return LentMemory(driver, "cuda:0", nbytes)  # type: ignore[arg-type]


def test_slots_lie_apart_and_hold_nothing_old(host: torch.Tensor) -> None:
    sizes = [5, 0, 300, 1 << 20]
    memory = lending(Driver(host), needed(sizes))
    assert memory.nbytes % (2 << 20) == 0, "whole pages: no other allocation is seen with it"
    for turn in range(2):
        slots = memory.slots(sizes)
        assert [slot.numel() for slot in slots] == sizes and all(offset % 256 == 0 for offset in memory.offsets)
        assert not any(bool((slot == 7).any()) for slot in slots), f"turn {turn}"
        for slot in slots:
            slot.fill_(7)
        assert memory.broken_guard() is None
    ends = [offset + size for offset, size in zip(memory.offsets, sizes, strict=True)]
    assert all(b - a >= GUARD_BYTES for a, b in zip(ends, memory.offsets[1:], strict=False))


@pytest.mark.parametrize(("index", "place"), [(0, -1), (2, 300), (2, -GUARD_BYTES), (3, GUARD_BYTES - 1 + 4096)])
def test_a_write_beside_a_slot_is_found(host: torch.Tensor, index: int, place: int) -> None:
    memory = lending(Driver(host), needed([5, 0, 300, 4096]))
    memory.slots([5, 0, 300, 4096])
    host[memory.offsets[index] + place] = 1
    assert memory.broken_guard() is not None


def test_what_cannot_be_shared_is_not_kept(host: torch.Tensor) -> None:
    driver = Driver(host, refuses="cuIpcGetMemHandle")
    with pytest.raises(DriverError):
        lending(driver, 100)
    assert driver.called[-1] == "cuMemFree_v2"


def test_a_copy_is_no_shared_memory(host: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    """As PyTorch makes one where the memory is another GPU's."""
    monkeypatch.setattr(ipc_memory.torch, "as_tensor", lambda given, device: host[: given.nbytes].clone())
    driver = Driver(host)
    with pytest.raises(RuntimeError, match="copied"):
        lending(driver, 100)
    assert driver.called[-1] == "cuMemFree_v2"
