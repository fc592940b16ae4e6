"""The CUDA device: what can be shown without a GPU, and the real thing where there is one."""

from __future__ import annotations

import struct

import pytest

from cutegen_lab.core.artifact import Launch, Relocation
from cutegen_lab.core.errors import SetupError
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.devices.cuda import CudaDevice, gpu_count
from cutegen_lab.devices.cuda.driver import DriverError, _aligned, _relocate


@pytest.mark.skipif(gpu_count() > 0, reason="this machine has a GPU: the refusal cannot be shown")
def test_without_a_gpu_the_error_says_what_to_do() -> None:
    with pytest.raises(SetupError, match=r"no CUDA device is visible.*--device emulator"):
        CudaDevice()


def test_relocations_put_device_addresses_into_parameters_and_leave_the_plan_alone() -> None:
    params = (bytes(16), bytes(8))
    relocations = (Relocation(0, 8, 1, 0x40), Relocation(1, 0, 0, 0))
    launch = Launch("k", (1, 1, 1), (32, 1, 1), (1, 1, 1), 0, params, relocations)
    first, second = _relocate(launch, [0x7000, 0x9000])
    assert bytes(first) == bytes(8) + struct.pack("<Q", 0x9040)
    assert bytes(second) == struct.pack("<Q", 0x7000)
    assert launch.params == (bytes(16), bytes(8))


def test_parameters_are_aligned_as_tma_descriptors_need() -> None:
    owner, address = _aligned(bytearray(b"\x01" * 128))
    assert address % 64 == 0
    assert bytes(owner).count(b"\x01") == 128


@pytest.mark.parametrize(
    ("code", "verdict"),
    [(700, Verdict.OUT_OF_BOUNDS), (716, Verdict.MISALIGNED), (2, Verdict.OUT_OF_MEMORY), (999, Verdict.DEVICE_ERROR)],
)
def test_driver_errors_become_verdicts(code: int, verdict: Verdict) -> None:
    error = DriverError("cuLaunchKernelEx", code, "some text")
    assert error.verdict is verdict
    assert str(code) in str(error)
