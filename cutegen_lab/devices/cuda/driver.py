"""CUDA driver calls other than launches."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.devices.cuda.launching import DriverError as DriverError
from cutegen_lab.devices.cuda.launching import Library, LoadedModule

_MEMORY_CLOCK_RATE = 36  # CUdevice_attribute, kHz
_GLOBAL_MEMORY_BUS_WIDTH = 37  # bits

# CUresult values that are the kernel's fault; others are the device's.
_VERDICTS: Mapping[int, Verdict] = {
    1: Verdict.INVALID_PLAN,  # INVALID_VALUE
    2: Verdict.OUT_OF_MEMORY,
    209: Verdict.UNSUPPORTED,  # NO_BINARY_FOR_GPU
    500: Verdict.INVALID_PLAN,  # NOT_FOUND: the plan names a kernel the cubin lacks
    700: Verdict.OUT_OF_BOUNDS,  # ILLEGAL_ADDRESS
    701: Verdict.LAUNCH_FAILURE,  # LAUNCH_OUT_OF_RESOURCES
    702: Verdict.HANG,  # LAUNCH_TIMEOUT
    715: Verdict.LAUNCH_FAILURE,  # ILLEGAL_INSTRUCTION
    716: Verdict.MISALIGNED,
    717: Verdict.OUT_OF_BOUNDS,  # INVALID_ADDRESS_SPACE
    719: Verdict.LAUNCH_FAILURE,
    912: Verdict.LAUNCH_FAILURE,  # INVALID_CLUSTER_SIZE
}


def verdict_of(error: DriverError) -> Verdict:
    """The candidate's verdict for a failed driver call."""
    return _VERDICTS.get(error.code, Verdict.DEVICE_ERROR)


class Driver(Library):
    """libcuda, loaded once. Raises OSError if it is not installed."""

    def device_count(self) -> int:
        """Number of devices this process may use (``CUDA_VISIBLE_DEVICES`` applies)."""
        self.call("cuInit", 0)
        return self._number("cuDeviceGetCount")

    @property
    def version(self) -> str:
        """Newest CUDA version the driver supports ("13.0")."""
        number = self._number("cuDriverGetVersion")
        return f"{number // 1000}.{number % 1000 // 10}"

    def dram_bytes_per_s(self, device: int) -> float:
        """Peak bandwidth from memory clock and bus width (two transfers per clock cycle); 0 if the driver does not
        report them."""
        try:
            kilohertz = self._number("cuDeviceGetAttribute", _MEMORY_CLOCK_RATE, device)
            bits = self._number("cuDeviceGetAttribute", _GLOBAL_MEMORY_BUS_WIDTH, device)
        except DriverError:
            return 0.0
        return 2e3 * kilohertz * bits / 8

    def pci_bus_id(self, device: int) -> bytes:
        text = ctypes.create_string_buffer(32)
        self.call("cuDeviceGetPCIBusId", text, len(text), device)
        return text.value

    def _number(self, name: str, *arguments: int) -> int:
        value = ctypes.c_int()
        self.call(name, ctypes.byref(value), *arguments)
        return value.value


class LoadedBuild(LoadedModule):
    """A build's cubin loaded into the current context once."""

    def __init__(self, driver: Driver, build: Build) -> None:
        super().__init__(driver, build.cubin, build.plan.one_call)
