"""The process that owns the GPU: reads requests on stdin, runs plans, answers on stdout.

Needs torch, the driver and the standard library. Buffers arrive through the parent's memory file, not the pipe.
A sticky CUDA error ends the worker: the parent starts another for the next trial.
"""

from __future__ import annotations

import json
import mmap
import os
import sys
import time
from pathlib import Path
from typing import Any

import torch

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.devices.cuda.driver import Driver, DriverError, LoadedBuild
from cutegen_lab.devices.cuda.terms import aligned
from cutegen_lab.devices.cuda.timing import copy_time_us, measure_us

GUARD_BYTES = 1024  # canary on each side of every tensor
GUARD_VALUE = 0xA5


class Buffers:
    """The workload's tensors on the device, each between two guards, mirrored in the parent's memory file."""

    def __init__(self, memory: mmap.mmap, sizes: list[int]) -> None:
        self._host: list[torch.Tensor] = []
        self._device: list[torch.Tensor] = []
        offset = 0
        for size in sizes:
            host = torch.frombuffer(memory, dtype=torch.uint8, count=size, offset=offset) if size else torch.empty(0)
            whole = torch.full((size + 2 * GUARD_BYTES,), GUARD_VALUE, dtype=torch.uint8, device="cuda")
            if size:
                whole[GUARD_BYTES : GUARD_BYTES + size].copy_(host)
            self._host.append(host)
            self._device.append(whole)
            offset += aligned(size)

    @property
    def addresses(self) -> list[int]:
        return [t.data_ptr() + GUARD_BYTES for t in self._device]

    def release(self) -> None:
        """Drops torch's views of the mapping, which must go before the mapping does."""
        self._host.clear()

    def download(self) -> None:
        for host, whole in zip(self._host, self._device, strict=True):
            if host.numel():
                host.copy_(whole[GUARD_BYTES:-GUARD_BYTES])

    def broken_guard(self) -> int | None:
        """Index of the first tensor something was written next to."""
        for index, whole in enumerate(self._device):
            edges = torch.cat((whole[:GUARD_BYTES], whole[-GUARD_BYTES:]))
            if bool((edges != GUARD_VALUE).any()):
                return index
        return None


def execute(driver: Driver, build: Build, buffers: Buffers) -> dict[str, Any]:
    loaded = LoadedBuild(driver, build, buffers.addresses)
    started = time.perf_counter()
    loaded.enqueue(torch.cuda.current_stream().cuda_stream)
    driver.call("cuCtxSynchronize")
    seconds = time.perf_counter() - started
    loaded.close()
    if (index := buffers.broken_guard()) is not None:
        return fault(Verdict.OUT_OF_BOUNDS, f"bytes next to tensor {index} were overwritten (a guard changed)")
    buffers.download()
    return {"ok": True, "seconds": seconds}


def time_plan(driver: Driver, build: Build, buffers: Buffers, compulsory_bytes: int) -> dict[str, Any]:
    loaded = LoadedBuild(driver, build, buffers.addresses)
    samples = measure_us(loaded.enqueue)
    copy = copy_time_us(compulsory_bytes)
    loaded.close()
    return {"ok": True, "samples_us": samples, "copy_us": copy}


def fault(verdict: Verdict, message: str) -> dict[str, Any]:
    return {"ok": False, "verdict": verdict.value, "message": message}


def handle(driver: Driver, request: dict[str, Any]) -> dict[str, Any]:
    """One request; a DriverError is the candidate's verdict, out of memory too."""
    build = Build.from_dict(request["build"])
    capability = "sm_{}{}".format(*torch.cuda.get_device_capability())
    if build.arch.rstrip("af") != capability:
        return fault(Verdict.UNSUPPORTED, f"the artifact is for {build.arch}, this GPU is {capability}")
    try:
        with Path(request["memory"]).open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
            buffers = Buffers(memory, request["sizes"])
            try:
                if request["verb"] == "execute":
                    return execute(driver, build, buffers)
                return time_plan(driver, build, buffers, request["compulsory_bytes"])
            finally:
                buffers.release()
    except DriverError as error:
        return fault(error.verdict, str(error))
    except torch.cuda.OutOfMemoryError as error:
        return fault(Verdict.OUT_OF_MEMORY, f"not enough device memory for the workload: {error}".split(" GPU ")[0])


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else prints must not look like an answer
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    hello = {"ok": True, "name": torch.cuda.get_device_name(), "torch": torch.__version__}
    driver = Driver()
    print(json.dumps(hello), file=answers, flush=True)
    for line in sys.stdin:
        try:
            answer = handle(driver, json.loads(line))
        except Exception as error:  # the parent decides; a worker that cannot say why is worse
            answer = fault(Verdict.DEVICE_ERROR, f"{type(error).__name__}: {error}".splitlines()[0])
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
