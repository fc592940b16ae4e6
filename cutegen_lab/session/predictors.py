"""Processes that predict, forked from one that has imported what all of them need: that takes seconds, a fork none.

(``concurrent.futures`` and its kin import everything once a process, and ask every script for a ``__main__`` guard.)
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from multiprocessing.connection import Connection

from cutegen_lab.core.artifact import Artifact
from cutegen_lab.core.errors import Cancelled
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.protocols import Cancel, Judge
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.core.trial import Timing
from cutegen_lab.core.verdict import Fault, Verdict

_POLL_SECONDS = 0.1
_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from cutegen_lab.session.predictors import serve; serve(int(sys.argv[2]))"
)
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # each has a core


class Predictors:
    """The first process starts at once and without waiting for it, the others when they are first needed: one for
    each thread that calls :meth:`predict`. All end with :meth:`close`, or with this process."""

    def __init__(self) -> None:
        self._channel, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [sys.executable, "-c", _BOOT, json.dumps(sys.path), str(theirs.fileno())],
                env={**os.environ, **_ONE_THREAD}, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                start_new_session=True,  # it is the search that hears Ctrl-C
            )  # fmt: skip
        self._mine = threading.local()
        self._lock = threading.Lock()

    def predict(
        self, judge: Judge, gpu: GpuSpec, problem: Problem, artifact: Artifact, cancel: Cancel
    ) -> tuple[Timing | Fault, float]:
        """By the emulator, and the seconds that it took. ``judge`` and ``gpu`` are those of the thread's first call.

        Raises Cancelled, and what the judge raised; a process that ends, for want of memory most often, is a Fault, and
        the next call has another.
        """
        try:
            if not hasattr(self._mine, "connection"):
                self._mine.connection = self._forked()
                self._mine.connection.send((judge, gpu))
            self._mine.connection.send((problem, artifact))
            while not self._mine.connection.poll(_POLL_SECONDS):
                if cancel.is_set():
                    raise Cancelled()
            answer: tuple[Timing | Fault, float] | Exception = self._mine.connection.recv()
        except (EOFError, OSError) as error:
            self._mine.__dict__.pop("connection", None)
            why = f"the process that predicted it ended{f': {error}' if str(error) else ''}"
            return Fault(Verdict.DEVICE_ERROR, why), 0.0
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        self._channel.close()
        self._process.kill()  # and with it those it forked
        self._process.wait()

    def _forked(self) -> Connection:
        ours, theirs = socket.socketpair()
        with theirs, self._lock:
            socket.send_fds(self._channel, [b"+"], [theirs.fileno()])
        return Connection(ours.detach())


def serve(fd: int) -> None:
    """Forks a process that predicts for every connection that arrives, until nobody is there to send one."""
    import cutegen_lab.devices.emulator
    import cutegen_lab.judge  # noqa: F401 - what takes so long, and every one of them needs

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(fileno=fd) as channel:
        while (received := socket.recv_fds(channel, 1, 1))[0]:
            (theirs,) = received[1]
            if os.fork() == 0:
                channel.close()
                _predict_for(Connection(theirs))
            os.close(theirs)


def _predict_for(connection: Connection) -> None:
    """Never returns."""
    from cutegen_lab.compile.isolate import die_with_parent
    from cutegen_lab.devices.emulator import EmulatorDevice

    try:
        die_with_parent()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        judge, gpu = connection.recv()
        never = threading.Event()
        while True:
            problem, artifact = connection.recv()
            started = time.monotonic()
            try:
                timing, _ = judge.time(problem, artifact, EmulatorDevice(), gpu, lambda _: None, never)
                connection.send((timing, time.monotonic() - started))
            except Exception as error:
                connection.send(error)
    except EOFError:
        pass  # nobody asks any more
    finally:
        os._exit(0)
