"""What an exported operator does when it is called: finds the workload, allocates the outputs, launches.

Exported files carry this text, and those of ``launching`` and ``carried_shapes``; it may import nothing else of
cutegen-lab.
"""

from __future__ import annotations

import base64
import json
import threading
import zlib
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch

from cutegen_lab.devices.cuda.launching import Library, LoadedModule
from cutegen_lab.exports.carried_shapes import Served

_ALIGNMENT_BYTES = 16  # alignment of inputs that the kernel's accesses assume


class Operator:
    """The builds of one kernel, each for the shapes it was compiled for."""

    def __init__(self, packed: str) -> None:
        """``packed``: JSON of the builds, compressed, in base 85."""
        self.builds: list[dict[str, Any]] = json.loads(zlib.decompress(base64.b85decode(packed)))
        self._served = Served(self.builds)
        self._loaded: dict[tuple[int, int], LoadedModule] = {}
        self._lock = threading.Lock()
        self._library: Library | None = None

    def empty(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        """Outputs for these inputs, not yet written. Raises ValueError for inputs that no build serves."""
        return self._served.outputs(self._served.find(tensors), tensors[0])

    def call(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        """Launches the kernel on the current stream. Raises ValueError for inputs that it does not serve."""
        number, device = self._served.find(tensors), tensors[0].device
        if any(tensor.device != device for tensor in tensors):
            raise ValueError("the inputs are on different devices")
        if any(tensor.data_ptr() % _ALIGNMENT_BYTES for tensor in tensors):
            raise ValueError(f"an input's address is not a multiple of {_ALIGNMENT_BYTES} bytes: pass a clone()")
        _check_gpu(self.builds[number]["arch"], torch.cuda.get_device_capability(device))
        with torch.cuda.device(device):
            outputs = self._served.outputs(number, tensors[0])
            scratch = self._served.workspace(number, tensors[0])
            addresses = [tensor.data_ptr() for tensor in (*tensors, *outputs, *scratch)]
            self.launch(number, device.index, addresses, torch.cuda.current_stream(device).cuda_stream)
        return outputs

    def launch(self, number: int, device: int, addresses: Sequence[int], stream: int) -> None:
        """Launches build ``number`` with inputs, outputs and workspace at ``addresses``. Its machine code is loaded
        into the current context once for each device."""
        with self._lock:
            self._library = self._library or Library()
            if (number, device) not in self._loaded:
                build = self.builds[number]
                launches = [_launch(data) for data in build["launches"]]
                cubin = base64.b64decode(build["cubin"])
                self._loaded[number, device] = LoadedModule(self._library, cubin, launches)
            loaded = self._loaded[number, device]
        loaded.bind(addresses).enqueue(stream)


def _check_gpu(arch: str, capability: tuple[int, int]) -> None:
    """Raises ValueError if machine code for ``arch`` does not run on a GPU of this compute capability."""
    number = arch.removeprefix("sm_").rstrip("af")
    major, minor = int(number[:-1]), int(number[-1])
    same = capability == (major, minor) if arch.endswith("a") else capability[0] == major and capability[1] >= minor
    if not same:
        raise ValueError(f"the kernel was compiled for {arch}; this GPU is sm_{capability[0]}{capability[1]}")


def _launch(data: dict[str, Any]) -> Any:
    return SimpleNamespace(
        kernel=data["kernel"], grid=tuple(data["grid"]), block=tuple(data["block"]), cluster=tuple(data["cluster"]),
        dynamic_smem_bytes=data["dynamic_smem_bytes"], params=[bytes.fromhex(each) for each in data["params"]],
        relocations=[SimpleNamespace(**each) for each in data["relocations"]],
        attributes={int(key): bytes.fromhex(value) for key, value in data["attributes"].items()},
    )  # fmt: skip
