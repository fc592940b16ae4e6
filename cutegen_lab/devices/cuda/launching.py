"""Launches of a plan through the CUDA driver (CUDA Driver API, cuda.h 12/13).

Imports only the standard library: exported operators carry this file's text and run it where cutegen-lab is not
installed.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8  # CUfunction_attribute
_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14
_CLUSTER_DIMENSION = 4  # CUlaunchAttributeID
_PORTABLE_CLUSTER = 8


class Launch(Protocol):
    """One kernel launch, as in the artifact."""

    @property
    def kernel(self) -> str: ...
    @property
    def grid(self) -> tuple[int, int, int]: ...
    @property
    def block(self) -> tuple[int, int, int]: ...
    @property
    def cluster(self) -> tuple[int, int, int]: ...
    @property
    def dynamic_smem_bytes(self) -> int: ...
    @property
    def params(self) -> Sequence[bytes]: ...
    @property
    def relocations(self) -> Sequence[Any]: ...
    @property
    def attributes(self) -> Mapping[int, bytes]: ...


class DriverError(Exception):
    """A driver call failed."""

    def __init__(self, call: str, code: int, text: str) -> None:
        super().__init__(f"{call} failed: {text} (CUDA error {code})")
        self.call = call
        """Name of the function."""
        self.code = code
        """CUresult that it returned."""
        self.text = text
        """Name and description of the code."""


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


class Library:
    """libcuda, loaded once. Raises OSError if it is not installed."""

    def __init__(self) -> None:
        self._cuda = ctypes.CDLL("libcuda.so.1")

    def call(self, name: str, *arguments: object) -> None:
        """Raises DriverError."""
        code = getattr(self._cuda, name)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self._cuda.cuGetErrorString(code, ctypes.byref(text))
            raise DriverError(name, code, (text.value or b"unknown error").decode())


class LoadedModule:
    """A cubin loaded into the current context once, for any number of :meth:`bind` calls."""

    def __init__(self, library: Library, code: bytes, launches: Sequence[Launch]) -> None:
        """``code``: a cubin, or PTX that ends with a zero, which the driver assembles."""
        self._library, self._launches = library, launches
        self._module = ctypes.c_void_p()
        library.call("cuModuleLoadData", ctypes.byref(self._module), code)

    def bind(self, addresses: Sequence[int]) -> BoundPlan:
        """The launches with tensors at ``addresses`` (inputs, outputs, workspace, in the plan's order)."""
        return BoundPlan([_BoundLaunch(self._library, self._module, launch, addresses) for launch in self._launches])

    def address(self, symbol: str) -> int:
        """Address of a variable of the module."""
        found, size = ctypes.c_uint64(), ctypes.c_size_t()
        self._library.call(
            "cuModuleGetGlobal_v2", ctypes.byref(found), ctypes.byref(size), self._module, symbol.encode()
        )
        return found.value

    def close(self) -> None:
        self._library.call("cuModuleUnload", self._module)


class BoundPlan:
    """A plan's launches with parameters, ready to launch repeatedly."""

    def __init__(self, launches: Sequence[_BoundLaunch]) -> None:
        self._launches = launches

    @property
    def each(self) -> list[BoundPlan]:
        """Each launch alone."""
        return [BoundPlan([launch]) for launch in self._launches]

    def enqueue(self, stream: int) -> None:
        """Launches the whole plan in order on ``stream``; can be captured into a CUDA graph."""
        for launch in self._launches:
            launch.enqueue(stream)


class _BoundLaunch:
    """One launch with its parameter memory; owns every buffer passed to the driver."""

    def __init__(self, library: Library, module: ctypes.c_void_p, launch: Launch, addresses: Sequence[int]) -> None:
        self._library = library
        self._function = ctypes.c_void_p()
        library.call("cuModuleGetFunction", ctypes.byref(self._function), module, launch.kernel.encode())
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
            self._library.call("cuFuncSetAttribute", self._function, attribute, value)
        except DriverError as error:
            what = (
                f"asking for {value} bytes of dynamic shared memory"
                if attribute == _MAX_DYNAMIC_SHARED_SIZE_BYTES
                else ("asking for a cluster of more than 8 blocks")
            )
            raise DriverError(what, error.code, error.text) from None

    def enqueue(self, stream: int) -> None:
        self._config.stream = stream
        self._library.call("cuLaunchKernelEx", ctypes.byref(self._config), self._function, self._params, None)


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
