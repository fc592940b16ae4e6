"""Subjects of a stopwatch: a launch plan, the reference in PyTorch, a copy. Each can be called on any tensor set."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable
from typing import Protocol

import torch

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.stopwatch import ReferenceKind
from cutegen_lab.devices.cuda.driver import Driver, LoadedBuild
from cutegen_lab.devices.cuda.rotating_buffers import Arena, RotatingBuffers, poison
from cutegen_lab.problems import Reference

# torch.compile's modes without CUDA graphs: the stopwatch captures these itself.
MODES = {"compile": "default", "max-autotune": "max-autotune-no-cudagraphs"}


class Runnable(Protocol):
    """``call`` enqueues one call on the current stream. Keep what it returns as long as the call may be replayed."""

    notes: tuple[str, ...]

    def call(self, index: int) -> object: ...

    def refresh(self, seed: int) -> None:
        """Poisons the subject's own memory."""
        ...

    def close(self) -> None: ...


class PlanSubject:
    """A build's plan, bound once to each set; each set has its own workspace."""

    notes: tuple[str, ...] = ()

    def __init__(self, driver: Driver, build: Build, sets: RotatingBuffers) -> None:
        self._scratch = [Arena(build.plan.workspace, "cuda") for _ in range(len(sets))]
        self._loaded = LoadedBuild(driver, build)
        self._plans = [
            self._loaded.bind(sets.addresses(index) + scratch.addresses) for index, scratch in enumerate(self._scratch)
        ]

    def call(self, index: int) -> object:
        self._plans[index].enqueue(torch.cuda.current_stream().cuda_stream)
        return None

    def refresh(self, seed: int) -> None:
        for arena in self._scratch:
            poison(arena.bytes, seed)

    def close(self) -> None:
        self._loaded.close()


class ReferenceSubject:
    """The analyst's reference (trusted code), eager or compiled, at the precision its text asks of PyTorch."""

    def __init__(self, problem: Problem, kind: ReferenceKind, sets: RotatingBuffers) -> None:
        self._sets, self._channels_last = sets, kind == "channels_last"
        reference = Reference(problem)
        torch.backends.cuda.matmul.allow_tf32 = problem.tf32  # the same for all references of a stopwatch
        torch.backends.cudnn.allow_tf32 = reference.cudnn_tf32
        self._run: Callable[[list[torch.Tensor]], tuple[torch.Tensor, ...]] = reference.run
        self._place: Callable[[], contextlib.AbstractContextManager[object]] = contextlib.nullcontext
        self.notes: tuple[str, ...] = ()
        try:
            self._run(self._inputs(0))
        except RuntimeError as error:  # the source makes tensors of its own without naming a device
            if "device" not in str(error):
                raise
            self._place = lambda: torch.device("cuda")
            self.notes += ("the reference ran with cuda as the default device",)
        if kind in MODES:
            self._compile(kind)

    def call(self, index: int) -> object:
        with self._place():
            return self._run(self._inputs(index))

    def _inputs(self, index: int) -> list[torch.Tensor]:
        tensors = self._sets.inputs(index)
        return [_channels_last(t) for t in tensors] if self._channels_last else tensors

    def refresh(self, seed: int) -> None:
        """Does nothing: its outputs are PyTorch's own allocations, which :func:`wipe` clears."""

    def close(self) -> None:
        """Does nothing: :func:`forget` clears torch.compile's code of all references."""

    def _compile(self, kind: ReferenceKind) -> None:
        from torch._dynamo.utils import counters  # seconds to import: only here

        before = counters["stats"]["unique_graphs"]
        self._run = torch.compile(self._run, dynamic=False, mode=MODES[kind])
        self.call(0)
        if counters["stats"]["unique_graphs"] == before:
            raise RuntimeError("torch.compile found nothing to compile")


def import_compiler() -> None:
    """Imports what torch.compile needs, which takes seconds."""
    for name in ("torch._dynamo", "torch._inductor.compile_fx", "triton"):
        importlib.import_module(name)


def _channels_last(tensor: torch.Tensor) -> torch.Tensor:
    """A contiguous 4-d floating-point tensor's memory read as channels_last, which puts its numbers in another order;
    any other tensor unchanged."""
    if tensor.dim() != 4 or not tensor.is_floating_point() or not tensor.is_contiguous():
        return tensor
    _, channels, height, width = tensor.shape
    return tensor.as_strided(tensor.shape, (channels * height * width, 1, width * channels, channels))


def wipe(result: object) -> None:
    """Overwrites the tensors that a reference returned, as a candidate that runs later could read them."""
    for tensor in result if isinstance(result, tuple) else ():
        poison([torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())], 0)


def forget() -> None:
    """Clears everything that torch.compile has compiled. All references compile ``Reference.run``, and beyond a limit
    of versions per function torch.compile silently runs it eagerly."""
    if "torch._dynamo" in sys.modules:
        torch._dynamo.reset()


class CopySubject:
    """Reads half and writes half of the compulsory bytes within each set's memory, by a PyTorch elementwise kernel: a
    copy node of a CUDA graph takes 1.5 times as long for the same bytes (on an H200)."""

    notes: tuple[str, ...] = ()

    def __init__(self, sets: RotatingBuffers) -> None:
        total = sum(spec.compulsory_bytes for spec in sets.specs)
        self._pairs = [tuple(_words(half) for half in sets.halves(index, total)) for index in range(len(sets))]

    def call(self, index: int) -> object:
        source, target = self._pairs[index]
        return torch.bitwise_not(source, out=target)

    def refresh(self, seed: int) -> None:
        """Does nothing: any values will do."""

    def close(self) -> None:
        self._pairs.clear()


def _words(data: torch.Tensor) -> torch.Tensor:
    """Bytes as 32-bit integers, if their number is a multiple of four."""
    return data.view(torch.int32) if data.numel() % 4 == 0 and data.data_ptr() % 4 == 0 else data
