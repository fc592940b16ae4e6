"""Worker processes forked from one that has imported the modules they need: importing takes seconds, a fork almost
nothing.

(``concurrent.futures`` and ``multiprocessing`` import in each process, and require scripts to have a ``__main__``
guard.)
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar

from cutegen_lab.core.background import yield_cores
from cutegen_lab.core.errors import Cancelled
from cutegen_lab.core.protocols import Cancel

T = TypeVar("T")

_POLL_SECONDS = 0.05
_PR_SET_PDEATHSIG = 1
_BOOT = (
    "import json, sys; sys.path[:], names, fd = json.loads(sys.argv[1]); "
    "from cutegen_lab.core.forks import serve; serve(fd, names)"
)
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # each worker has one core


class ForkEnded(Exception):
    """The process ended during a call, most often for lack of memory."""


class Forks:
    """A server process that imports ``modules`` and forks workers. It starts immediately, in the background. All
    of them end when :meth:`close` is called or this process ends."""

    def __init__(self, modules: Sequence[str]) -> None:
        self._channel, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [sys.executable, "-c", _BOOT, json.dumps([sys.path, list(modules), theirs.fileno()])],
                env={**os.environ, **_ONE_THREAD}, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                start_new_session=True,  # so that Ctrl-C reaches only this process
            )  # fmt: skip
        self._lock = threading.Lock()

    def fork(self, function: Callable[..., T]) -> Forked[T]:
        """Starts a process that calls ``function``, which is pickled once. Raises ForkEnded if the process cannot be
        started."""
        ours, theirs = socket.socketpair()
        forked = Forked[T](Connection(ours.detach()))
        try:
            with theirs, self._lock:
                socket.send_fds(self._channel, [b"+"], [theirs.fileno()])
            forked.send(function)
        except OSError as error:
            forked.close()
            raise ForkEnded(str(error)) from None
        return forked

    def close(self) -> None:
        self._channel.close()
        self._process.kill()  # this also ends the processes that it forked
        self._process.wait()


class Forked(Generic[T]):
    """One worker process, used by one thread at a time. :meth:`close` ends it, even during a call."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __call__(self, *arguments: object, cancelled: Callable[[], bool]) -> T:
        """Calls the function with ``arguments``. Raises Cancelled once ``cancelled`` returns True (after closing this
        worker), ForkEnded, and whatever the function raised."""
        try:
            self.send(arguments)
            while not self._connection.poll(_POLL_SECONDS):
                if cancelled():
                    self.close()
                    raise Cancelled()
            answer: T | Exception = self._connection.recv()
        except (EOFError, OSError) as error:
            raise ForkEnded(str(error)) from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def send(self, what: object) -> None:
        self._connection.send(what)

    def close(self) -> None:
        self._connection.close()


class Tasks:
    """Runs calls in the background, ``workers`` at a time: in processes of ``forks`` (one for each worker and
    function), or on threads if ``forks`` is None. :meth:`close` and ``cancel`` end the calls.

    Functions must be module-level. On threads they receive a :class:`~cutegen_lab.core.protocols.Cancel` as ``cancel``.
    """

    def __init__(self, forks: Forks | None, cancel: Cancel, workers: int = 1) -> None:
        self._forks, self._cancel, self._closed = forks, cancel, threading.Event()
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="tasks")
        self._mine, self._every = threading.local(), list[Forked[Any]]()

    def begin(self, function: Callable[..., T], *arguments: object) -> Future[T]:
        """Future of the call. Its result raises Cancelled, ForkEnded, and whatever the function raised."""
        return self._pool.submit(self._called, function, *arguments)

    def close(self) -> None:
        self._closed.set()
        self._pool.shutdown(cancel_futures=True)
        for forked in self._every:
            forked.close()

    def is_set(self) -> bool:
        """Whether calls should end. With :meth:`wait`, makes this object a
        :class:`~cutegen_lab.core.protocols.Cancel`."""
        return self._closed.is_set() or self._cancel.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        return self._closed.wait(timeout) or self._cancel.is_set()

    def _called(self, function: Callable[..., T], *arguments: object) -> T:
        if self._forks is None:
            return function(*arguments, cancel=self)
        kept: dict[Callable[..., Any], Forked[Any]] = self._mine.__dict__.setdefault("kept", {})
        if function not in kept:
            kept[function] = self._forks.fork(function)
            self._every.append(kept[function])
        try:
            found: T = kept[function](*arguments, cancelled=self.is_set)
        except (Cancelled, ForkEnded):
            kept.pop(function).close()
            raise
        return found


def serve(fd: int, modules: Sequence[str]) -> None:
    """Server loop: forks a process for each connection received on ``fd``, until the other end closes."""
    for module in modules:
        importlib.import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(fileno=fd) as channel:
        while (received := socket.recv_fds(channel, 1, 1))[0]:
            (theirs,) = received[1]
            if os.fork() == 0:
                channel.close()
                _answer(Connection(theirs))
            os.close(theirs)


def die_with_parent() -> None:
    """Makes Linux kill this process when its parent ends (``prctl(2)``, PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _end_with(fd: int) -> None:
    """Ends this process when the other end of the socket ``fd`` closes."""
    poll = select.poll()
    poll.register(fd, select.POLLRDHUP)
    poll.poll()
    os._exit(0)


def _answer(connection: Connection) -> None:
    """Worker loop: receives the function, then arguments, and sends results. Never returns."""
    try:
        die_with_parent()
        yield_cores()
        threading.Thread(target=_end_with, args=(connection.fileno(),), daemon=True).start()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        function = connection.recv()
        while True:
            arguments = connection.recv()
            try:
                answer = function(*arguments)
            except Exception as error:
                answer = error
            connection.send(answer)
    except (EOFError, OSError):
        pass  # the parent closed the connection
    finally:
        os._exit(0)
