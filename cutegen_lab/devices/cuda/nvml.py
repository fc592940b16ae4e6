"""GPU sensors: clocks, power, temperature, throttle reasons. Read only.

NVML through ctypes (NVIDIA Management Library API reference); without NVML there are no readings.
"""

from __future__ import annotations

import ctypes
from typing import Any

_SM_CLOCK, _MEMORY_CLOCK = 1, 2  # nvmlClockType_t
_GPU_TEMPERATURE = 0  # nvmlTemperatureSensors_t


def installed() -> bool:
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return False
    return True


def names() -> list[str]:
    """Names of the GPUs of this machine; none without NVML."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return []
    count, handle, text = ctypes.c_uint(), ctypes.c_void_p(), ctypes.create_string_buffer(96)
    if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)):
        return []
    found = []
    for index in range(count.value):
        if not nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)):
            nvml.nvmlDeviceGetName(handle, text, len(text))
            found.append(text.value.decode(errors="replace"))
    return found


class Card:
    """One GPU, by PCI address. Readings that fail are left out."""

    def __init__(self, pci_bus_id: bytes) -> None:
        self._nvml: Any = None
        self._handle = ctypes.c_void_p()
        try:
            library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return
        if library.nvmlInit_v2() == 0 and (
            library.nvmlDeviceGetHandleByPciBusId_v2(pci_bus_id, ctypes.byref(self._handle)) == 0
        ):
            self._nvml = library

    @property
    def driver_version(self) -> str:
        text = ctypes.create_string_buffer(96)
        known = self._nvml is not None and self._nvml.nvmlSystemGetDriverVersion(text, len(text)) == 0
        return text.value.decode() if known else ""

    def read(self) -> dict[str, float]:
        """Clocks in MHz, power in W, temperature in °C, ``throttle`` as NVML's bit mask."""
        if self._nvml is None:
            return {}
        readings = {
            "sm_clock_mhz": self._uint("nvmlDeviceGetClockInfo", _SM_CLOCK),
            "memory_clock_mhz": self._uint("nvmlDeviceGetClockInfo", _MEMORY_CLOCK),
            "power_w": self._uint("nvmlDeviceGetPowerUsage", scale=1e-3),
            "temperature_c": self._uint("nvmlDeviceGetTemperature", _GPU_TEMPERATURE),
            "throttle": self._mask(),
        }
        return {name: value for name, value in readings.items() if value is not None}

    def _uint(self, name: str, *arguments: int, scale: float = 1.0) -> float | None:
        value = ctypes.c_uint()
        if getattr(self._nvml, name)(self._handle, *arguments, ctypes.byref(value)):
            return None
        return value.value * scale

    def _mask(self) -> float | None:
        value = ctypes.c_ulonglong()
        # New name, old name.
        names = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
        ask = next((f for name in names if (f := getattr(self._nvml, name, None))), None)
        if ask is None or ask(self._handle, ctypes.byref(value)):
            return None
        return float(value.value)
