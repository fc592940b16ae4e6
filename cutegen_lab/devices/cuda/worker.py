"""The process that owns a GPU: reads requests on stdin, runs plans, answers on stdout. ``worker.py INDEX [ahead]``.

Needs torch, the driver and the standard library. Buffers arrive through the parent's memory file, not the pipe. An
answer says whether the error was ``sticky``: then the worker is unusable, and the parent starts another.
"""

from __future__ import annotations

import base64
import ctypes
import gc
import json
import mmap
import os
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.devices.cuda import cupti_activity
from cutegen_lab.devices.cuda.bench import Bench
from cutegen_lab.devices.cuda.driver import Driver, DriverError, LoadedBuild, verdict_of
from cutegen_lab.devices.cuda.ipc_memory import Handle
from cutegen_lab.devices.cuda.launching import BoundPlan, LoadedModule
from cutegen_lab.devices.cuda.nvml import Card
from cutegen_lab.devices.cuda.subjects import import_compiler
from cutegen_lab.devices.cuda.worker_protocol import (
    GUARD_BYTES,
    GUARD_VALUE,
    aligned,
    guard_changed,
    problem_from_request,
)

Answer = dict[str, Any]
_SWITCH_SECONDS = 2e-4  # thread switch interval while compiling in the background: checks wait less for the GIL
_FLUSHED_BYTES = 1 << 28  # bytes, several times the largest L2
_TIMED_ROUNDS, _TIMED_SECONDS = 30, 2.0  # maximum number of timed rounds, and seconds; the GPU's clocks rise meanwhile
_USUAL_SWITCH_SECONDS = sys.getswitchinterval()


def host_tensors(request: Answer) -> list[torch.Tensor]:
    """The parent's memory file as byte tensors of the given ``sizes``; the mapping lives as long as they do."""
    with Path(request["memory"]).open("r+b") as file:
        memory = mmap.mmap(file.fileno(), 0)
    tensors, offset = [], 0
    for size in request["sizes"]:
        empty = torch.empty(0, dtype=torch.uint8)
        tensors.append(torch.frombuffer(memory, dtype=torch.uint8, count=size, offset=offset) if size else empty)
        offset += aligned(size)
    return tensors


class Guarded:
    """The workload's tensors on the device, each between two guards."""

    def __init__(self, hosts: Sequence[torch.Tensor], guard: int) -> None:
        self._device: list[torch.Tensor] = []
        self._guard = guard
        for host in hosts:
            size = host.numel()
            whole = torch.full((size + 2 * guard,), GUARD_VALUE, dtype=torch.uint8, device="cuda")
            whole[guard : guard + size].copy_(host)
            self._device.append(whole)

    @property
    def addresses(self) -> list[int]:
        return [t.data_ptr() + self._guard for t in self._device]

    def download(self, hosts: Sequence[torch.Tensor]) -> None:
        for host, whole in zip(hosts, self._device, strict=True):
            host.copy_(whole[self._guard : self._guard + host.numel()])

    def broken_guard(self) -> int | None:
        """Index of the first tensor with a changed guard."""
        edges = [
            part for whole in self._device for part in (whole[: self._guard], whole[whole.numel() - self._guard :])
        ]
        changed = torch.cat(edges).view(len(self._device), 2 * self._guard).ne(GUARD_VALUE).any(1)
        return int(changed.nonzero()[0]) if bool(changed.any()) else None


class Worker:
    """Answers one request at a time. Candidates arrive as builds; the only Python it runs is the analyst's
    reference."""

    def __init__(self, index: int) -> None:
        self.preparing: threading.Thread | None = None  # thread that prepares torch.compile in the background
        self._driver = Driver()
        self._benches: dict[int, Bench] = {}  # by the number that the parent gave each bench
        self._mapped: dict[str, int] = {}  # handle of the parent's memory -> its address in this process
        torch.cuda.set_device(index)
        torch.zeros(1, device="cuda")
        self.index = index
        self._arch = "sm_{}{}".format(*torch.cuda.get_device_capability())

    def hello(self) -> Answer:
        return {
            "ok": True, "name": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda,
            "arch": self._arch, "records": cupti_activity.available(), "cuda_driver": self._driver.version,
            "driver": Card(self._driver.pci_bus_id(self.index)).driver_version,
        }  # fmt: skip

    def answer(self, request: Answer) -> Answer:
        """The answer to a request. A DriverError, out of memory included, becomes the candidate's verdict."""
        try:
            answer: Answer = getattr(self, f"on_{request['verb']}")(request)
            return {"ok": True, **answer}
        except DriverError as error:
            return self._fault(verdict_of(error), str(error))
        except torch.cuda.OutOfMemoryError as error:
            return self._fault(Verdict.OUT_OF_MEMORY, _out_of_memory_text(error))
        except _Refused as error:
            return self._fault(Verdict.UNSUPPORTED, str(error))
        except Exception as error:  # reported to the parent, which decides
            line = (str(error).strip().splitlines() or [""])[0]
            return self._fault(Verdict.DEVICE_ERROR, f"{type(error).__name__}: {line}")

    def on_execute(self, request: Answer) -> Answer:
        build = self._build(request)
        hosts = host_tensors(request)
        guarded = Guarded(hosts, request.get("guard", GUARD_BYTES))
        seconds = self._seconds(build, guarded.addresses)
        if (index := guarded.broken_guard()) is not None:
            return self._fault(Verdict.OUT_OF_BOUNDS, guard_changed(index))
        guarded.download(hosts)
        return {"seconds": seconds}

    def on_map(self, request: Answer) -> Answer:
        """Maps GPU memory of the parent."""
        handle = request["handle"]
        if handle not in self._mapped:
            address, flags = ctypes.c_uint64(), ctypes.c_uint(1)  # CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, the only flag
            where = Handle.from_buffer_copy(bytes.fromhex(handle))
            self._driver.call("cuIpcOpenMemHandle_v2", ctypes.byref(address), where, flags)
            self._mapped[handle] = address.value
        return {}

    def on_unmap(self, request: Answer) -> Answer:
        if (address := self._mapped.pop(request["handle"], None)) is not None:
            self._driver.call("cuIpcCloseMemHandle", ctypes.c_uint64(address))
        return {}

    def on_execute_lent(self, request: Answer) -> Answer:
        """Runs a plan in lent memory; the parent checks outputs and guards itself."""
        build = self._build(request)
        self.on_map(request)
        base = self._mapped[request["handle"]]
        return {"seconds": self._seconds(build, [base + offset for offset in request["offsets"]])}

    def on_stamps(self, request: Answer) -> Answer:
        """Clock stamps of each launch with cold caches, from the fastest of several stamped texts; milliseconds of a
        call without and with stamps."""
        build, nbytes = self._build(request), request["nbytes"]
        guarded = Guarded(host_tensors(request), GUARD_BYTES)
        flush = torch.empty(_FLUSHED_BYTES, dtype=torch.uint8, device="cuda")
        texts = (text.encode() + b"\0" for text in request["ptx"])
        modules = [LoadedModule(self._driver, code, build.plan.one_call) for code in (build.cubin, *texts)]
        plans = [module.bind(guarded.addresses) for module in modules]
        rounds, end = list[list[float]](), time.monotonic() + _TIMED_SECONDS
        while not rounds or (len(rounds) < _TIMED_ROUNDS and time.monotonic() < end):
            rounds.append([_milliseconds(plan, flush) for plan in plans])
        clock = Card(self._driver.pci_bus_id(self.index)).read().get("sm_clock_mhz", 0.0)
        plain, *slowed = map(min, zip(*rounds, strict=True))
        chosen = slowed.index(min(slowed)) + 1
        stamps = ctypes.c_uint64(modules[chosen].address(request["symbol"]))
        found = []
        for launch in plans[chosen].each:
            self._driver.call("cuMemsetD8_v2", stamps, 0, ctypes.c_size_t(nbytes))
            _milliseconds(launch, flush)
            host = ctypes.create_string_buffer(nbytes)
            self._driver.call("cuMemcpyDtoH_v2", host, stamps, ctypes.c_size_t(nbytes))
            found.append(base64.b64encode(host.raw).decode())
        for module in modules:
            module.close()
        return {"stamps": found, "milliseconds": (plain, min(slowed)), "sm_clock_mhz": clock}

    def on_open(self, request: Answer) -> Answer:
        """Allocates a workload's tensor sets: the first request of a stopwatch."""
        if self.preparing:
            self.preparing.join()  # no other thread may use the GPU while a graph is captured
        self.on_close(request)
        inputs, outputs = ([TensorSpec.from_dict(s) for s in request[kind]] for kind in ("inputs", "outputs"))
        bench = self._benches[request["bench"]] = Bench(self._driver, inputs, outputs)
        bench.load(host_tensors(request))
        return {"dram_bytes_per_s": self._driver.dram_bytes_per_s(self.index), "l2_bytes": bench.l2_bytes}

    def on_add(self, request: Answer) -> Answer:
        bench, name = self._opened(request), request["name"]
        if "build" in request:
            notes = bench.add_build(name, self._build(request))
        elif "problem" in request:
            notes = bench.add_reference(name, problem_from_request(request["problem"]), request["kind"])
        else:
            notes = bench.add_copy(name)
        return {"calls": len(bench.sets), "notes": notes}

    def on_sample(self, request: Answer) -> Answer:
        bench = self._opened(request)
        times = bench.sample(request["name"], request["mode"], request["count"], request["seed"])
        return {"times_us": times, "readings": bench.readings()}

    def on_outputs(self, request: Answer) -> Answer:
        for host, output in zip(host_tensors(request), self._opened(request).outputs(request["call"]), strict=True):
            host.copy_(output)
        return {}

    def on_close(self, request: Answer) -> Answer:
        if (bench := self._benches.pop(request["bench"], None)) is not None:
            bench.close()
            del bench
            gc.collect()
            torch.cuda.empty_cache()
        return {}

    def _seconds(self, build: Build, addresses: Sequence[int]) -> float:
        """Host seconds of one run of the plan."""
        loaded = LoadedBuild(self._driver, build)
        plan = loaded.bind(addresses)
        started = time.perf_counter()
        plan.enqueue(torch.cuda.current_stream().cuda_stream)
        self._driver.call("cuCtxSynchronize")
        seconds = time.perf_counter() - started
        loaded.close()
        return seconds

    def _opened(self, request: Answer) -> Bench:
        if (bench := self._benches.get(request["bench"])) is None:
            raise _Refused("no stopwatch is open")
        return bench

    def _build(self, request: Answer) -> Build:
        build, own = Build.from_dict(request["build"]), self._arch
        if build.arch.rstrip("af") != own:
            raise _Refused(f"the artifact is for {build.arch}, this GPU is {own}: compile it for that")
        return build

    def _fault(self, verdict: Verdict, message: str) -> Answer:
        """Verdict of an error: synchronising the context names its cause better than the call that failed."""
        try:
            self._driver.call("cuCtxSynchronize")
        except DriverError as error:
            return _failure(verdict_of(error), str(error), sticky=True)
        return _failure(verdict, message, sticky=False)


class _Refused(Exception):
    """A request that this worker cannot serve."""


def _milliseconds(plan: BoundPlan, flush: torch.Tensor) -> float:
    """Milliseconds of one call, after ``flush`` has cleared L2."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    flush.zero_()
    start.record()
    plan.enqueue(torch.cuda.current_stream().cuda_stream)
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end))


def _failure(verdict: Verdict, message: str, sticky: bool) -> Answer:
    return {"ok": False, "verdict": verdict.value, "message": message, "sticky": sticky}


def _out_of_memory_text(error: Exception) -> str:
    free, total = torch.cuda.mem_get_info()
    wanted = str(error).partition("Tried to allocate ")[2].partition(". ")[0] or "more"
    return f"no room for {wanted} on this GPU: {free / 2**30:.1f} of {total / 2**30:.1f} GiB are free"


def _prepare_compiler(index: int) -> None:
    """Imports what torch.compile needs and compiles a trivial function for GPU ``index``, since the first use takes
    seconds."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    torch.cuda.set_device(index)  # the current device is per thread
    with suppress(Exception):  # the baseline that needs it reports the error
        import_compiler()
        torch.compile(_trifle, dynamic=False)(torch.ones(64, 64, device="cuda"))
    sys.setswitchinterval(_USUAL_SWITCH_SECONDS)


def _trifle(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1) + 1.0


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # other output must not look like an answer
    worker = Worker(int(sys.argv[1]))
    print(json.dumps(worker.hello()), file=answers, flush=True)
    if sys.argv[2:] == ["ahead"]:
        worker.preparing = threading.Thread(target=_prepare_compiler, args=(worker.index,), daemon=True)
        worker.preparing.start()
    for line in sys.stdin:
        print(json.dumps(worker.answer(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
