"""The CUDA driver calls that a launch plan needs, through ctypes (CUDA Driver API, cuda.h 12/13)."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cutegen_lab.core.artifact import PROGRAMMATIC, Build, Launch
from cutegen_lab.core.verdict import Verdict

_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8  # CUfunction_attribute
_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14
_CLUSTER_DIMENSION = 4  # CUlaunchAttributeID
_PORTABLE_CLUSTER = 8
_MEMORY_CLOCK_RATE = 36  # CUdevice_attribute, kHz
_GLOBAL_MEMORY_BUS_WIDTH = 37  # bits

# CUresult values after which the verdict is the kernel's own doing; anything else is the device's.
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


@dataclass
class DriverError(Exception):
    """A driver call failed. ``verdict`` is what that means for a candidate."""

    call: str
    """Name of the function."""
    code: int
    """CUresult that it returned."""
    text: str
    """Name and description of the code."""

    @property
    def verdict(self) -> Verdict:
        return _VERDICTS.get(self.code, Verdict.DEVICE_ERROR)

    def __str__(self) -> str:
        return f"{self.call} failed: {self.text} (CUDA error {self.code})"


class _Attribute(ctypes.Structure):
    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_ubyte * 64))


class _Config(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("pad", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("attribute_count", ctypes.c_uint),
    )


class Driver:
    """libcuda, loaded once. Raises OSError if there is none."""

    def __init__(self) -> None:
        self._cuda = ctypes.CDLL("libcuda.so.1")

    def call(self, name: str, *arguments: object) -> None:
        code = getattr(self._cuda, name)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self._cuda.cuGetErrorString(code, ctypes.byref(text))
            raise DriverError(name, code, (text.value or b"unknown error").decode())

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
        """Peak bandwidth from memory clock and bus width (two transfers a clock); 0 if the driver does not report
        them."""
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


class LoadedBuild:
    """A build's cubin loaded into the current context once, for any number of :meth:`bind` calls."""

    def __init__(self, driver: Driver, build: Build) -> None:
        self._driver, self._build = driver, build
        self._module = ctypes.c_void_p()
        driver.call("cuModuleLoadData", ctypes.byref(self._module), build.cubin)

    def bind(self, addresses: Sequence[int]) -> BoundPlan:
        """The plan with tensors at ``addresses`` (inputs, outputs, workspace, in the plan's order)."""
        launches = _one_call(self._build.plan.launches)
        return BoundPlan([_BoundLaunch(self._driver, self._module, launch, addresses) for launch in launches])

    def close(self) -> None:
        self._driver.call("cuModuleUnload", self._module)


class BoundPlan:
    """A plan's launches with parameters, ready to launch repeatedly."""

    def __init__(self, launches: Sequence[_BoundLaunch]) -> None:
        self._launches = launches

    def enqueue(self, stream: int) -> None:
        """Launches the whole plan in order on ``stream``; can be captured into a CUDA graph."""
        for launch in self._launches:
            launch.enqueue(stream)


class _BoundLaunch:
    """One launch with its parameter memory; owns every buffer passed to the driver."""

    def __init__(self, driver: Driver, module: ctypes.c_void_p, launch: Launch, addresses: Sequence[int]) -> None:
        self._driver = driver
        self._function = ctypes.c_void_p()
        driver.call("cuModuleGetFunction", ctypes.byref(self._function), module, launch.kernel.encode())
        self._set(_MAX_DYNAMIC_SHARED_SIZE_BYTES, launch.dynamic_smem_bytes)
        cluster = launch.cluster[0] * launch.cluster[1] * launch.cluster[2]
        if cluster > _PORTABLE_CLUSTER:
            self._set(_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)
        self._buffers = [_aligned(params) for params in _relocate(launch, addresses)]
        self._params = (ctypes.c_void_p * max(len(self._buffers), 1))(*[address for _, address in self._buffers])
        raw = dict(launch.attributes)
        if cluster > 1:
            raw[_CLUSTER_DIMENSION] = struct.pack("<III", *launch.cluster)
        self._attributes = (_Attribute * max(len(raw), 1))()
        for slot, (key, value) in zip(self._attributes, raw.items(), strict=False):
            slot.id = key
            ctypes.memmove(slot.value, value, min(len(value), 64))
        self._config = _Config(
            grid=launch.grid, block=launch.block, shared_bytes=launch.dynamic_smem_bytes,
            attributes=self._attributes, attribute_count=len(raw),
        )  # fmt: skip

    def _set(self, attribute: int, value: int) -> None:
        try:
            self._driver.call("cuFuncSetAttribute", self._function, attribute, value)
        except DriverError as error:
            what = (
                f"asking for {value} bytes of dynamic shared memory"
                if attribute == _MAX_DYNAMIC_SHARED_SIZE_BYTES
                else ("asking for a cluster of more than 8 blocks")
            )
            raise DriverError(what, error.code, error.text) from None

    def enqueue(self, stream: int) -> None:
        self._config.stream = stream
        self._driver.call("cuLaunchKernelEx", ctypes.byref(self._config), self._function, self._params, None)


def _one_call(launches: Sequence[Launch]) -> list[Launch]:
    """Removes the first launch's programmatic attribute: a call must not overlap the one before, or it is timed too
    fast."""
    first = [replace(x, attributes={k: v for k, v in x.attributes.items() if k != PROGRAMMATIC}) for x in launches[:1]]
    return [*first, *launches[1:]]


def _relocate(launch: Launch, addresses: Sequence[int]) -> list[bytearray]:
    params = [bytearray(p) for p in launch.params]
    for r in launch.relocations:
        struct.pack_into("<Q", params[r.param], r.offset, addresses[r.tensor] + r.tensor_offset)
    return params


def _aligned(data: bytearray, alignment: int = 64) -> tuple[ctypes.Array[ctypes.c_ubyte], int]:
    """Copies bytes to 64-byte alignment, as TMA descriptors need; returns the owner and the address."""
    owner = (ctypes.c_ubyte * (len(data) + alignment))()
    address = -(-ctypes.addressof(owner) // alignment) * alignment
    ctypes.memmove(address, bytes(data), len(data))
    return owner, address
