"""The parent's side of the cage: keeps a warm compile server, and gives it builds, each with a folder."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cutegen_lab.compile import dsl, isolate
from cutegen_lab.compile.limits import Limits
from cutegen_lab.compile.scratch import OwnedFolder, remove_tree
from cutegen_lab.compile.watch import Endings, Watch
from cutegen_lab.compile.wire import HEADER, JOB, RESPONSE, Bound, FrameReader, decode, encode
from cutegen_lab.core.errors import CageError, Cancelled, SetupError
from cutegen_lab.core.hints import Advice, Hint
from cutegen_lab.core.protocols import Cancel

START_SECONDS = 60.0
_ROOT = str(Path(__file__).resolve().parents[2])
_BOOT = (
    "import sys; sys.path[:] = dict.fromkeys([sys.argv[1], *sys.path, *sys.argv[3:]]); "
    "from cutegen_lab.compile.zygote import main; main(int(sys.argv[2]))"
)


class Pool:
    """Runs builds in parallel, at most ``workers`` at a time; thread-safe. ``allow_weak``: run them even if
    :func:`cutegen_lab.compile.isolate.missing_walls` finds missing isolation."""

    def __init__(self, workers: int, limits: Limits, scratch_dir: Path, allow_weak: bool = False) -> None:
        self._limits, self._scratch_dir, self._allow_weak = limits, scratch_dir, allow_weak
        self._scratch: OwnedFolder | None = None
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
        """Runs the builds of one process, one after another. ``begun`` is called with the index of each as it starts.
        Raises Cancelled, CageError, SetupError (too little isolation)."""
        while not self._slots.acquire(timeout=0.1):
            if cancel.is_set():
                raise Cancelled("stopped while waiting for a compile worker")
        try:
            scratch = Path(tempfile.mkdtemp(dir=self._scratch_root(), prefix="build-"))
            try:
                whole = {**job, "scratch": str(scratch), "standin": str(standin), "arch": arch,
                         "allow_weak": self._allow_weak, "limits": asdict(self._limits)}  # fmt: skip
                watch = Watch(self._limits, cancel, len(job.get("workloads", ())), len(job.get("ptx", ())), begun)
                endings = watch.run(lambda fds: self._send(arch, standin, whole, fds))
            finally:
                remove_tree(scratch)
        finally:
            self._slots.release()
        if endings.refused:
            missing = isolate.missing_walls(endings.of(0).isolation)
            raise SetupError(f"this machine cannot cage a candidate: {'; '.join(missing)}", Hint(Advice.WEAK_CAGE))
        return endings

    def _scratch_root(self) -> Path:
        with self._lock:
            if self._scratch is None:
                self._scratch = OwnedFolder(self._scratch_dir, "pool-")
            return self._scratch.path

    def missing_names(self, names: list[str], arch: str, standin: Path) -> dict[str, list[str]]:
        """Those of the dotted cutlass ``names`` that do not exist, each with the names that exist there."""
        with self._lock:
            return self._server(arch, standin).ask(names)

    def archs(self, arch: str, standin: Path) -> list[str]:
        """Architectures that the DSL can target; starts the server if necessary."""
        with self._lock:
            return self._server(arch, standin).archs

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for server in self._servers.values():
                server.close()
            self._servers.clear()
            if self._scratch is not None:
                self._scratch.close()
                self._scratch = None

    def _send(self, arch: str, standin: Path, job: dict[str, Any], fds: list[int]) -> None:
        with self._lock:
            try:
                self._server(arch, standin).send(job, fds)
            except OSError:  # the server died after its last build: try again with a fresh one
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
        self._home = OwnedFolder(Path(tempfile.gettempdir()), "cutegen-cage-")
        self._channel, theirs = socket.socketpair()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the server
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [sys.executable, "-P", "-s", "-c", _BOOT, _ROOT, str(theirs.fileno()), *installed_packages()],
                env=clean_environment(arch, standin, str(self._home.path)),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=self._errors,
                stderr=self._errors,
                cwd=self._home.path,
                start_new_session=True,
            )
        finally:
            theirs.close()
        hello = self._receive(START_SECONDS)
        self.archs: list[str] = [str(a) for a in hello["archs"]]

    def send(self, job: dict[str, Any], fds: list[int]) -> None:
        data = encode(JOB, job)
        socket.send_fds(self._channel, [data[:HEADER]], fds)
        self._channel.sendall(data[HEADER:])

    def ask(self, names: list[str]) -> dict[str, list[str]]:
        self._channel.sendall(encode(JOB, {"resolve": names}))
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
        self._home.close()

    def _receive(self, timeout: float) -> dict[str, Any]:
        self._channel.settimeout(timeout)
        reader = FrameReader({RESPONSE: Bound(16 << 20, 1)})
        try:
            while True:
                data = self._channel.recv(1 << 16)
                if not data:
                    raise OSError("it ended")
                frames = reader.feed(data)
                if frames:
                    return dict(decode(frames[0][1]))
        except (OSError, ValueError) as error:
            self._errors.seek(0)
            said = self._errors.read()[-400:].decode(errors="replace").strip().splitlines()
            self.close()
            reason = said[-1] if said else str(error)
            raise CageError(
                f"the compile server did not start: {reason} ({dsl.DISTRIBUTION} must import)", Hint(Advice.DOCTOR)
            ) from None
        finally:
            with contextlib.suppress(OSError):
                self._channel.settimeout(None)


def installed_packages() -> list[str]:
    """Folders of ``sys.path`` with installed packages, and those below them: also a user's own (``pip install --user``)
    and those of PYTHONPATH, which an isolated interpreter leaves out. Working folders are left out, since a candidate
    may read every folder in the list."""
    roots = [folder for folder in sys.path if folder and any(Path(folder).glob("*.dist-info"))]
    return [folder for folder in sys.path if any(Path(folder).is_relative_to(root) for root in roots)]


def clean_environment(arch: str, standin: Path, home: str) -> dict[str, str]:
    """The cage's whole environment: nothing is inherited, so it has no keys."""
    return {
        "PATH": "/usr/bin:/bin", "HOME": home, "TMPDIR": home, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TZ": "UTC",
        "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0", "CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
        dsl.ARCH_VARIABLE: arch, dsl.RUNTIME_VARIABLE: str(standin), **dsl.ENVIRONMENT,
    }  # fmt: skip
