"""A worker process and the memory it shares with its parent."""

from __future__ import annotations

import json
import mmap
import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import IO, Any

from cutegen_lab.core.errors import Cancelled, SetupError
from cutegen_lab.core.hints import Advice, Hint
from cutegen_lab.core.protocols import Cancel
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.devices.cuda.worker_protocol import aligned

WORKER = "cutegen_lab.devices.cuda.worker"
START_SECONDS = 120.0
END_SECONDS = 30.0
_POLL_SECONDS = 0.05
_TRANSFER_BYTES_PER_S = 200e6  # a lower bound


class WorkerProcess:
    """A worker in a session of its own, so that killing it ends its process group. Raises SetupError if it cannot
    start."""

    def __init__(
        self, index: int = 0, module: str = WORKER, wrapper: Sequence[str] = (),
        environment: Mapping[str, str] = MappingProxyType({}), ahead: bool = False,
    ) -> None:  # fmt: skip
        """``wrapper``: command under which the worker is started. ``environment``: variables added to this process's.
        ``ahead``: prepare torch.compile immediately, which delays checks that are already waiting."""
        command = [*wrapper, sys.executable, "-m", module, str(index), *(["ahead"] if ahead else [])]
        self._process = subprocess.Popen(  # noqa: S603 - this package's own module
            command, env={**os.environ, **environment},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        self._stderr: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._drained = threading.Thread(target=self._drain, daemon=True)
        self._drained.start()
        answer = self._receive(START_SECONDS, threading.Event())
        if not answer["ok"]:
            self.kill()
            raise SetupError(f"the CUDA worker did not start: {answer['message']}", Hint(Advice.DOCTOR))
        self.hello = answer

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, request: dict[str, Any], seconds: float, cancel: Cancel) -> dict[str, Any]:
        """Sends a request and returns the answer. If the worker hangs or ends, the answer is a verdict; an unusable
        worker is killed. Raises Cancelled."""
        stdin = _pipe(self._process.stdin)
        try:
            stdin.write(json.dumps(request) + "\n")
            stdin.flush()
        except BrokenPipeError:
            return self._death()
        answer = self._receive(seconds, cancel)
        if answer.get("sticky"):
            self.kill()
        return answer

    def end(self) -> None:
        """Lets the worker exit by itself, since a wrapping tool writes its report only then."""
        with suppress(BrokenPipeError):
            _pipe(self._process.stdin).close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS)

    def kill(self) -> None:
        if self.alive:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            try:
                _pipe(pipe).close()
            except BrokenPipeError:
                continue
        self._drained.join(1.0)

    def _receive(self, seconds: float, cancel: Cancel) -> dict[str, Any]:
        stdout, deadline = _pipe(self._process.stdout), time.monotonic() + seconds
        while not select.select([stdout], [], [], _POLL_SECONDS)[0]:
            if cancel.is_set():
                self.kill()
                raise Cancelled()
            if time.monotonic() > deadline:
                self.kill()
                message = f"no answer within the watchdog's {seconds:.0f} s; the worker was killed"
                return {"ok": False, "verdict": Verdict.HANG.value, "message": message}
        line = stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else self._death()
        return answer

    def _death(self) -> dict[str, Any]:
        status, tail = self._process.wait(), ""
        self._drained.join(1.0)
        while not self._stderr.empty():
            tail = self._stderr.get()
        message = f"the CUDA worker ended with status {status}: {tail or 'no output'}"
        return {"ok": False, "verdict": Verdict.DEVICE_ERROR.value, "message": message}

    def _drain(self) -> None:
        with _pipe(self._process.stderr) as stderr:
            for line in stderr:
                if line.strip():
                    self._stderr.put(line.strip())


class SharedMemory:
    """A memory file with one aligned range for each tensor size, which the worker opens by name.

    ``views`` stay valid while they are referenced; the name is removed when the context ends.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self._file = os.memfd_create("cutegen-buffers")
        whole = max(sum(aligned(size) for size in sizes), 1)
        os.ftruncate(self._file, whole)
        self.views, start, memory = list[memoryview](), 0, memoryview(mmap.mmap(self._file, whole))
        for size in sizes:
            self.views.append(memory[start : start + size])
            start += aligned(size)

    def __enter__(self) -> SharedMemory:
        return self

    def __exit__(self, *details: object) -> None:
        os.close(self._file)

    @property
    def request(self) -> dict[str, Any]:
        """Request fields with which the worker finds the file."""
        return {"memory": f"/proc/{os.getpid()}/fd/{self._file}", "sizes": [view.nbytes for view in self.views]}

    @property
    def seconds(self) -> float:
        """Maximum seconds for the transfer of the file."""
        return sum(view.nbytes for view in self.views) / _TRANSFER_BYTES_PER_S

    def write(self, buffers: Sequence[memoryview]) -> None:
        for view, buffer in zip(self.views, buffers, strict=True):
            view[:] = _bytes(buffer)

    def read(self, buffers: Sequence[memoryview]) -> None:
        for view, buffer in zip(self.views, buffers, strict=True):
            _bytes(buffer)[:] = view


def _bytes(buffer: memoryview) -> memoryview:
    return buffer.cast("B") if buffer.nbytes else memoryview(bytearray())


def fault_of(answer: dict[str, Any]) -> Fault:
    return Fault(Verdict(answer["verdict"]), answer["message"])


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None, "started with pipes"
    return pipe
