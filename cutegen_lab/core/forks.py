"""Processes that call a function, forked from one that has imported what all of them need: that takes seconds, a fork
none.

(``concurrent.futures`` and its kin import everything once a process, and ask every script for a ``__main__`` guard.)
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

from cutegen_lab.core.errors import Cancelled
from cutegen_lab.core.protocols import Cancel

T = TypeVar("T")

_POLL_SECONDS = 0.05
_PR_SET_PDEATHSIG = 1
_BOOT = (
    "import json, sys; sys.path[:], names, fd = json.loads(sys.argv[1]); "
    "from cutegen_lab.core.forks import serve; serve(fd, names)"
)
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # each has a core


class ForkEnded(Exception):
    """The process ended in the middle of a call, most often for want of memory."""


class Forks:
    """A process that imports ``modules`` and forks others; it starts at once and is not waited for. All end with
    :meth:`close`, or with this process."""

    def __init__(self, modules: Sequence[str]) -> None:
        self._channel, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [sys.executable, "-c", _BOOT, json.dumps([sys.path, list(modules), theirs.fileno()])],
                env={**os.environ, **_ONE_THREAD}, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                start_new_session=True,  # it is this process that hears Ctrl-C
            )  # fmt: skip
        self._lock = threading.Lock()

    def fork(self, function: Callable[..., T]) -> Forked[T]:
        """A process for calls of ``function``, which is pickled once. Raises ForkEnded where none can be had."""
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
        self._process.kill()  # and with it those it forked
        self._process.wait()


class Forked(Generic[T]):
    """One process of :class:`Forks`, for one thread at a time. :meth:`close` ends it, whatever it is at."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __call__(self, *arguments: object, cancelled: Callable[[], bool]) -> T:
        """Raises Cancelled once ``cancelled`` (and closes this), ForkEnded, and what the function raised."""
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
    """Calls that are begun at once, ``workers`` at a time: in processes of ``forks``, one a worker and function, or on
    threads where there are none. :meth:`close` ends them, as ``cancel`` does.

    Functions are of modules; on a thread they are given a :class:`~cutegen_lab.core.protocols.Cancel` as ``cancel``.
    """

    def __init__(self, forks: Forks | None, cancel: Cancel, workers: int = 1) -> None:
        self._forks, self._cancel, self._closed = forks, cancel, threading.Event()
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="tasks")
        self._mine, self._every = threading.local(), list[Forked[Any]]()

    def begin(self, function: Callable[..., T], *arguments: object) -> Future[T]:
        """Its result raises Cancelled, ForkEnded, and what the function raised."""
        return self._pool.submit(self._called, function, *arguments)

    def close(self) -> None:
        self._closed.set()
        self._pool.shutdown(cancel_futures=True)
        for forked in self._every:
            forked.close()

    def is_set(self) -> bool:
        """Whether to end: this is a :class:`~cutegen_lab.core.protocols.Cancel` itself."""
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
    """Forks a process for every connection that arrives, until nobody is there to send one."""
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
    """This process is killed when the one that forked it ends (``prctl(2)``, PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _end_with(fd: int) -> None:
    """Ends this process when nobody is at the other end of the socket ``fd`` any more."""
    poll = select.poll()
    poll.register(fd, select.POLLRDHUP)
    poll.poll()
    os._exit(0)


def _answer(connection: Connection) -> None:
    """Never returns."""
    try:
        die_with_parent()
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
        pass  # nobody asks any more
    finally:
        os._exit(0)
