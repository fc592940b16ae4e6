"""Starts PyTorch on a GPU, while workloads that are judged on the CPU are checked.

Creating a CUDA context, starting cuBLAS and loading each kernel take seconds. Otherwise the first draws of a large
workload would wait for them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import torch

from cutegen_lab.core.problem import Tolerances, Workload
from cutegen_lab.core.protocols import Device
from cutegen_lab.judge.compare.allowance import Allowance
from cutegen_lab.judge.compare.correctness import compare
from cutegen_lab.judge.draws.inputs import draw
from cutegen_lab.judge.draws.schedule import draws
from cutegen_lab.judge.reference_device import ReferenceDevice

_SIDE = 64  # rows and columns of the matrices that are multiplied
_DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)


@contextmanager
def gpu_started(device: Device, workloads: Sequence[Workload]) -> Iterator[None]:
    """Starts PyTorch on the GPU in another thread, if one of ``workloads`` is judged there."""
    places = [ReferenceDevice(device, workload) for workload in workloads]
    if torch.cuda.is_initialized() or all(place.on_cpu for place in places):
        yield
        return
    smallest, ended = min(workloads, key=lambda workload: workload.nbytes), threading.Event()
    arguments = (device.torch_device, smallest, ended)
    starting = threading.Thread(target=_first_operations, args=arguments, daemon=True)
    starting.start()
    try:
        yield
    finally:
        ended.set()
        starting.join()


def _first_operations(where: str, small: Workload, ended: threading.Event) -> None:
    """Draws and compares as a check of ``small`` does, and multiplies matrices; the numbers are not used."""
    # Errors are ignored: the reference raises them again, and they are reported then.
    with suppress(Exception), torch.device(where):
        numbers = torch.randn(_SIDE, _SIDE)
        for dtype in _DTYPES:
            (numbers.to(dtype) @ numbers.to(dtype)).double().sum().item()
        for spec in small.outputs:
            exact = torch.rand(spec.shape, dtype=torch.float64)
            compare(spec, exact.float(), exact, exact.float(), Tolerances(), 1, Allowance(by_slice=0.0, small=True))
        for name in draws(small, 0, 1, 0.5):
            if ended.is_set():
                return
            with suppress(Exception):
                draw(small, name, 0, None, where)
