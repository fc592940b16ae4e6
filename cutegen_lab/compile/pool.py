"""The parent's side of the cage: keeps a warm compile server, gives it builds, watches each one, ends what must end."""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from cutegen_lab.compile import dsl
from cutegen_lab.compile.limits import Limits
from cutegen_lab.compile.wire import SEPARATOR, FrameReader, encode
from cutegen_lab.core.errors import CageError, Cancelled
from cutegen_lab.core.protocols import Cancel

START_SECONDS = 60.0
POLL_SECONDS = 0.03
OUTPUT_TAIL = 256 << 10
_ROOT = str(Path(__file__).resolve().parents[2])
_BOOT = (
    "import sys; sys.path.insert(0, sys.argv[1]); from cutegen_lab.compile.zygote import main; main(int(sys.argv[2]))"
)


@dataclass
class Ending:
    """How a build ended. ``stopped`` is the limit it was killed for ("" where it ended by itself)."""

    reply: dict[str, Any] | None = None
    phase: str = "start"
    stopped: str = ""
    malformed: str = ""
    touched: tuple[int, int] | None = None
    wait_status: int | None = None
    output: str = ""
    isolation: list[str] = field(default_factory=list)


class Endings(list[Ending]):
    """How the builds of one process ended, those that it came to; never empty."""

    def of(self, number: int) -> Ending:
        """Of one build. Those that the process did not come to ended as its last did, without an answer."""
        return self[number] if number < len(self) else replace(self[-1], reply=None)


class Pool:
    """Builds run in parallel, at most ``workers`` at a time; safe to use from any thread."""

    def __init__(self, workers: int, limits: Limits, scratch_dir: Path) -> None:
        self._limits, self._scratch_dir = limits, scratch_dir
        self._slots = threading.Semaphore(workers)
        self._lock = threading.Lock()
        self._servers: dict[tuple[str, str], _Server] = {}
        self._closed = False

    def run(
        self,
        job: dict[str, Any],
        arch: str,
        standin: Path,
        cancel: Cancel,
        begun: Callable[[int], None] = lambda _: None,
    ) -> Endings:
        """The builds of one process, one after another; ``begun`` is told the number of each. Raises Cancelled,
        CageError."""
        while not self._slots.acquire(timeout=0.1):
            if cancel.is_set():
                raise Cancelled("stopped while waiting for a compile worker")
        try:
            self._scratch_dir.mkdir(parents=True, exist_ok=True)
            scratch = tempfile.mkdtemp(dir=self._scratch_dir, prefix="build-")
            try:
                whole = {**job, "scratch": scratch, "standin": str(standin), "arch": arch,
                         "limits": asdict(self._limits)}  # fmt: skip
                count = len(job.get("workloads", ())) or 1
                watch = _Watch(self._limits, cancel, count, begun)
                return watch.run(lambda fds: self._send(arch, standin, whole, fds))
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
        finally:
            self._slots.release()

    def missing_names(self, names: list[str], arch: str, standin: Path) -> dict[str, list[str]]:
        """Which dotted cutlass names do not exist, with the names that do."""
        with self._lock:
            return self._server(arch, standin).ask(names)

    def archs(self, arch: str, standin: Path) -> list[str]:
        with self._lock:
            return self._server(arch, standin).archs

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for server in self._servers.values():
                server.close()
            self._servers.clear()

    def _send(self, arch: str, standin: Path, job: dict[str, Any], fds: list[int]) -> None:
        with self._lock:
            try:
                self._server(arch, standin).send(job, fds)
            except OSError:  # it died since its last build: once more with a fresh one
                self._server(arch, standin).send(job, fds)

    def _server(self, arch: str, standin: Path) -> _Server:
        if self._closed:
            raise CageError("the compiler is closed")
        key = (arch, str(standin))
        server = self._servers.get(key)
        if server is None or not server.alive():
            if server is not None:
                server.close()
            server = self._servers[key] = _Server(arch, standin)
        return server


class _Server:
    """A running :mod:`cutegen_lab.compile.zygote`."""

    def __init__(self, arch: str, standin: Path) -> None:
        self._home = tempfile.mkdtemp(prefix="cutegen-cage-")
        self._channel, theirs = socket.socketpair()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the server
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [sys.executable, "-I", "-c", _BOOT, _ROOT, str(theirs.fileno())],
                env=clean_environment(arch, standin, self._home),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=self._errors,
                stderr=self._errors,
                cwd=self._home,
                start_new_session=True,
            )
        finally:
            theirs.close()
        hello = self._receive(START_SECONDS)
        self.archs: list[str] = [str(a) for a in hello["archs"]]

    def send(self, job: dict[str, Any], fds: list[int]) -> None:
        data = encode(job)
        socket.send_fds(self._channel, [data[:4]], fds)
        self._channel.sendall(data[4:])

    def ask(self, names: list[str]) -> dict[str, list[str]]:
        self._channel.sendall(encode({"resolve": names}))
        missing = self._receive(10.0)["missing"]
        return {str(k): [str(n) for n in v] for k, v in missing.items()}

    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        self._channel.close()
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        self._errors.close()
        shutil.rmtree(self._home, ignore_errors=True)

    def _receive(self, timeout: float) -> dict[str, Any]:
        self._channel.settimeout(timeout)
        reader = FrameReader(16 << 20)
        try:
            while True:
                data = self._channel.recv(1 << 16)
                if not data:
                    raise OSError("it ended")
                frames = reader.feed(data)
                if frames:
                    return frames[0]
        except (OSError, ValueError) as error:
            self._errors.seek(0)
            said = self._errors.read()[-400:].decode(errors="replace").strip().splitlines()
            self.close()
            reason = said[-1] if said else str(error)
            raise CageError(
                f"the compile server did not start: {reason}", f"Check that {dsl.DISTRIBUTION} imports: cutegen doctor."
            ) from None
        finally:
            with contextlib.suppress(OSError):
                self._channel.settimeout(None)


def clean_environment(arch: str, standin: Path, home: str) -> dict[str, str]:
    """All the cage's environment: nothing is inherited, so no key can be."""
    return {
        "PATH": "/usr/bin:/bin", "HOME": home, "TMPDIR": home, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TZ": "UTC",
        "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0", "CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
        dsl.ARCH_VARIABLE: arch, dsl.RUNTIME_VARIABLE: str(standin), **dsl.ENVIRONMENT,
    }  # fmt: skip


class _Watch:
    """Follows the builds of one process from its three pipes, and ends it when one is over a limit or unwanted."""

    def __init__(self, limits: Limits, cancel: Cancel, count: int, begun: Callable[[int], None]) -> None:
        self._limits, self._cancel, self._count, self._begun = limits, cancel, count, begun
        self._ending = Ending()
        self._endings = Endings([self._ending])
        self._number = -1  # of the build at work
        self._started = time.monotonic()
        self._pidfd: int | None = None
        self._supervisor = 0
        self._status_text = b""
        self._output_bytes = 0
        self._tail = b""
        self._frames = FrameReader(limits.reply_bytes)

    def run(self, send: Any) -> Endings:
        pipes = [os.pipe() for _ in range(3)]
        try:
            try:
                send([w for _, w in pipes])
            finally:
                for _, w in pipes:
                    os.close(w)
            self._follow([r for r, _ in pipes])
        finally:
            for r, _ in pipes:
                os.close(r)
            if self._pidfd is not None:
                os.close(self._pidfd)
        outputs = self._tail.rsplit(SEPARATOR, len(self._endings))[-len(self._endings) :]
        for ending, output in zip(reversed(self._endings), reversed(outputs), strict=False):  # the tail may lack some
            ending.output, ending.isolation = output.decode(errors="replace"), self._ending.isolation
        return self._endings

    def _follow(self, ends: list[int]) -> None:
        handlers = dict(zip(ends, (self._on_reply, self._on_output, self._on_status), strict=True))
        with selectors.DefaultSelector() as selector:
            for fd in ends:
                selector.register(fd, selectors.EVENT_READ)
            open_ends = set(ends)
            while open_ends:
                for key, _ in selector.select(POLL_SECONDS):
                    data = os.read(key.fd, 1 << 18)
                    if data:
                        handlers[key.fd](data)
                    else:
                        selector.unregister(key.fd)
                        open_ends.discard(key.fd)
                if self._cancel.is_set():
                    self._kill()
                    raise Cancelled("stopped while compiling")
                if not self._ending.stopped:
                    self._check(time.monotonic() - self._started)
                elif time.monotonic() - self._started > self._limits.wall_seconds + 5:
                    raise CageError("a build did not end when it was killed", "Report this with the kernel's source.")

    def _check(self, seconds: float) -> None:
        over = ""
        if seconds > self._limits.wall_seconds:
            over = f"time: over {self._limits.wall_seconds:g} s while in the step {self._ending.phase!r}"
        elif self._output_bytes > self._limits.output_bytes:
            over = f"output: printed over {self._limits.output_bytes >> 20} MiB"
        elif self._ending.malformed:
            over = self._ending.malformed
        if over:
            self._ending.stopped = over
            self._kill()

    def _on_reply(self, data: bytes) -> None:
        if self._ending.malformed:
            return
        try:
            for frame in self._frames.feed(data):
                if "phase" in frame:
                    self._ending.phase = str(frame["phase"])[:20]
                elif "isolation" in frame and self._number < 0 and self._ending.phase == "start":
                    self._ending.isolation += [str(name)[:20] for name in frame["isolation"]][:10]
                elif "workload" in frame:
                    self._begin(frame["workload"])
                elif "touched" in frame:
                    tensor, offset = frame["touched"]
                    self._ending.touched = (int(tensor), int(offset))
                else:
                    self._ending.reply = frame
        except (ValueError, TypeError) as error:
            self._ending.malformed = f"reply: {error}"

    def _begin(self, number: Any) -> None:
        """The build before has answered, and this one has as much time. Raises ValueError where it has not."""
        if number != self._number + 1 or number >= self._count or (number > 0 and self._ending.reply is None):
            raise ValueError(f"it begins build {str(number)[:20]} of {self._count} after build {self._number}")
        if number > 0:
            self._ending = replace(self._ending, reply=None)
            self._endings.append(self._ending)
        self._number, self._started = number, time.monotonic()
        self._begun(number)

    def _on_output(self, data: bytes) -> None:
        self._output_bytes += len(data)
        self._tail = (self._tail + data)[-OUTPUT_TAIL:]

    def _on_status(self, data: bytes) -> None:
        self._status_text += data
        *lines, self._status_text = self._status_text.split(b"\n")
        for line in lines:
            word, *rest = line.decode(errors="replace").split(" ")
            if word == "supervisor":
                self._supervisor = int(rest[0])
                with contextlib.suppress(OSError):
                    self._pidfd = os.pidfd_open(self._supervisor)
            elif word == "isolation":
                self._ending.isolation = [name for name in rest[0].split(",") if name]
            elif word == "stopped":
                self._ending.stopped = f"memory: over {self._limits.memory_bytes >> 20} MiB resident"
            elif word == "ended":
                self._ending.wait_status = int(rest[0])

    def _kill(self) -> None:
        """The supervisor dies, and with it (its namespace, or its death signal) all it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self._pidfd is not None:
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            elif self._supervisor:
                os.kill(self._supervisor, signal.SIGKILL)
