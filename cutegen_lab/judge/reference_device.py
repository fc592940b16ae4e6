"""Where references run and outputs are compared: on the CPU, or, if they are large, on the GPU of the candidate.

A GPU is used from the judge's own process, after the candidate has run in the worker's process: the two do not share
GPU memory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TypeVar

import torch

from cutegen_lab.core.problem import Workload
from cutegen_lab.core.protocols import Device

# Smallest workload for a GPU: for smaller ones, starting PyTorch on the GPU takes longer than all draws.
LARGE_BYTES = 32 << 20
SMALL_BYTES = 256 << 10  # largest workload for which one CPU thread is as fast as all
CPU = "cpu"
T = TypeVar("T")


class ReferenceDevice:
    """Where ``workload`` is judged on ``device``. Integers may be indices, and one out of range destroys a CUDA
    context, so references with integer inputs run on the CPU. 8-bit floats also do: PyTorch may multiply them element
    by element."""

    def __init__(self, device: Device, workload: Workload) -> None:
        """Sets ``large``: whether to use a GPU, if there is one."""
        dtypes = [spec.dtype for spec in workload.inputs]
        slow = workload.nbytes >= LARGE_BYTES or any(dtype.is_float8 for dtype in dtypes)
        self.large = slow and all(dtype.is_float for dtype in dtypes)
        self._where = device.torch_device if self.large and torch.cuda.is_available() else CPU

    @property
    def on_cpu(self) -> bool:
        """Whether references run on the CPU."""
        return self._where == CPU

    def run(self, work: Callable[[str], T]) -> T:
        """Calls ``work`` with a torch device: the GPU; or the CPU, now and in later calls, if the GPU has too little
        memory or the reference keeps tensors elsewhere."""
        if self._where != CPU:
            try:
                with _own_precision(), torch.device(self._where):
                    return work(self._where)
            # An error that the GPU did not cause is raised again on the CPU.
            except (RuntimeError, NotImplementedError):
                self._where = CPU
                free_gpu_cache()
        return work(CPU)


@contextlib.contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Sets the number of PyTorch's CPU threads inside the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def torch_threads_for(workload: Workload, busy_cores: int) -> contextlib.AbstractContextManager[None]:
    """Sets the number of PyTorch's threads to the number of free cores, since one thread that waits for a core delays
    all others; to one for a small workload."""
    small = workload.nbytes <= SMALL_BYTES
    return torch_threads(1 if small else max(1, torch.get_num_threads() - busy_cores))


def free_gpu_cache() -> None:
    """Frees the GPU memory that PyTorch caches, which the worker needs."""
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()


@contextlib.contextmanager
def gpu_cache_freed() -> Iterator[None]:
    """Calls :func:`free_gpu_cache` at the end of the block."""
    try:
        yield
    finally:
        free_gpu_cache()


@contextlib.contextmanager
def _own_precision() -> Iterator[None]:
    """PyTorch on a GPU at the problem's own precision: no TF32, no half-precision partial sums."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    settings = (
        (matmul, "allow_tf32"), (cudnn, "allow_tf32"), (matmul, "allow_bf16_reduced_precision_reduction"),
        (matmul, "allow_fp16_reduced_precision_reduction"),
    )  # fmt: skip
    before = [getattr(owner, name) for owner, name in settings]
    try:
        for owner, name in settings:
            setattr(owner, name, False)
        yield
    finally:
        for (owner, name), value in zip(settings, before, strict=True):
            setattr(owner, name, value)
