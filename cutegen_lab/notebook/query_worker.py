"""The process that answers queries of views for Jupyter's server: ``python -m cutegen_lab.notebook.query_worker``. It
may import what the server must not, and drives no run.

A line of stdin is an :class:`~cutegen_lab.views.asking.Asked`. Its answer is two lines of stdout: a
:class:`~cutegen_lab.views.asking.Told`, and what was found as JSON. Several queries are answered at a time, so answers
come in any order. The process ends when stdin does.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from pydantic_core import to_json

from cutegen_lab.core.errors import CutegenError, InputError, SetupError
from cutegen_lab.core.plain_text import one_line
from cutegen_lab.core.protocols import Provider
from cutegen_lab.core.run import RunSettings
from cutegen_lab.notebook.queries import answer
from cutegen_lab.session import RunHandle, Session
from cutegen_lab.views.asking import Asked, Told
from cutegen_lab.views.hints import NOTEBOOK, advised

_AT_ONCE = 4
_NOTHING = b"null"
_log = logging.getLogger(__name__)


class OpenRuns:
    """Runs that were asked about; their sessions stay open until :meth:`close`. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends = ExitStack()
        self._sessions: dict[tuple[Path, _Identity], Session] = {}
        self._files: dict[tuple[Path, _Identity], RunHandle] = {}
        self._of_files: Session | None = None

    def of(self, place: Path, run_id: str | None) -> RunHandle:
        """The run ``run_id`` of the store in ``place``; without an id, the one in the ``.cutegen`` file ``place``, read
        into a store that ends with this process. Raises InputError for a place that is gone or a file that is no
        archived run, StoreError."""
        with self._lock:
            return self._of_file(place) if run_id is None else self._of_store(place).attach(run_id)

    def close(self) -> None:
        self._ends.close()

    def _of_store(self, place: Path) -> Session:
        key = place, _identity(place / "lab.db")
        if key not in self._sessions:
            self._sessions[key] = self._opened(place)
        return self._sessions[key]

    def _of_file(self, file: Path) -> RunHandle:
        key = file, _identity(file)
        if key not in self._files:
            if self._of_files is None:
                folder = self._ends.enter_context(TemporaryDirectory(prefix="cutegen-files-"))
                self._of_files = self._opened(Path(folder))
            self._files[key] = self._of_files.import_run(file)
        return self._files[key]

    def _opened(self, place: Path) -> Session:
        return self._ends.enter_context(Session.open(place, provider=_no_provider))


_Identity = tuple[int, int, int]
"""Device, inode and time of modification (0 for a database, which is modified in place)."""


def _identity(file: Path) -> _Identity:
    """Raises InputError if ``file`` does not exist."""
    try:
        found = file.stat()
    except OSError:
        raise InputError(f"{file} is gone", "Refresh the list of runs.") from None
    return found.st_dev, found.st_ino, 0 if file.suffix == ".db" else found.st_mtime_ns


def _no_provider(_: RunSettings) -> Provider:
    """Raises SetupError: a provider is only needed to drive a run, which this process does not."""
    raise SetupError("this process only shows runs", "Resume the run in a notebook.")


def answered(runs: OpenRuns, line: bytes) -> bytes:
    """Both lines of output that answer a line of input."""
    asked = Asked.model_validate_json(line)
    told, found = Told(number=asked.number), _NOTHING
    try:
        handle = runs.of(asked.place, asked.run_id)
        _refuse_paths(handle.run_id, asked.query.candidate_id)
        found = to_json(answer(handle, asked.query, asked.folder), inf_nan_mode="null")
    except CutegenError as error:
        advised(error, NOTEBOOK)
        told.error, told.action, told.wrong_input = error.message, error.action, isinstance(error, InputError)
    except Exception:
        _log.exception("%s of %s was not found", asked.query.query, asked.run_id or asked.place)
        told.error, told.action = "internal error", "The log of Jupyter's server has more."
    return told.model_dump_json().encode() + b"\n" + found + b"\n"


def _refuse_paths(*names: str) -> None:
    """Raises InputError for a name that contains a slash or a NUL: exported files are named after it, and the store may
    come from an untrusted source."""
    for name in names:
        if "/" in name or "\0" in name:
            raise InputError(f"{one_line(name)[:80]!r} is not a name of a run or candidate", "Do not trust this store.")


def _own_channel() -> tuple[BinaryIO, BinaryIO]:
    """stdin and stdout for this module alone: what libraries print goes to stderr, and child processes have neither."""
    asked, told = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    return asked, told


def main() -> None:
    """Answers until stdin ends, then exits immediately and ends the processes that its queries started."""
    lines, told = _own_channel()
    runs, writing = OpenRuns(), threading.Lock()

    def reply(line: bytes) -> None:
        both = answered(runs, line)
        with writing:
            told.write(both)
            told.flush()

    pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="cutegen-query")
    for line in lines:
        pool.submit(reply, line)
    pool.shutdown(wait=False, cancel_futures=True)
    runs.close()
    if os.getpgrp() == os.getpid():  # ends child processes, such as one that judges a kernel again for an export
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.killpg(0, signal.SIGTERM)
    os._exit(0)  # threads may still be running


if __name__ == "__main__":
    main()
