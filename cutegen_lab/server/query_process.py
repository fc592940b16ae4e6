"""Answers a view's queries for further data of a run in a process that may import what the server must not (NumPy,
PyTorch, a compiler): :mod:`cutegen_lab.notebook.query_worker`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from cutegen_lab.core.errors import CutegenError, InputError, SetupError
from cutegen_lab.views.asking import Asked, Told
from cutegen_lab.views.model import Query

COMMAND = (sys.executable, "-P", "-m", "cutegen_lab.notebook.query_worker")  # -P: no modules of the folder it starts in
LIMIT_SECONDS, IDLE_SECONDS = 600.0, 600.0
_AGAIN = "Ask again: the process is then started again. The server's log may have more."
_END_SECONDS = 10.0
_MOST_BYTES = 256 << 20  # maximum size of an answer, in bytes


class QueryProcess:
    """Starts the process in ``root`` for a query if it is not running. The process ends after ``idle_seconds`` without
    a query, and with the server. To be used on the server's event loop."""

    def __init__(
        self, root: Path, command: Sequence[str] = COMMAND, limit_seconds: float = LIMIT_SECONDS,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:  # fmt: skip
        self._root, self._command = root, command
        self.limit_seconds, self._idle_seconds = limit_seconds, idle_seconds
        self._starting = asyncio.Lock()
        self._process: _Process | None = None
        self._count = 0

    async def ask(self, place: Path, run_id: str | None, folder: str, query: Query) -> bytes:
        """The answer as JSON; arguments as in :class:`~cutegen_lab.views.asking.Asked`. Raises the InputError or
        SetupError that the query raised, and SetupError if the process ended or took longer than ``limit_seconds``."""
        self._count += 1
        asked = Asked(number=self._count, place=place, run_id=run_id, folder=Path(folder), query=query)
        process = await self._at_work()
        return await process.ask(asked, self.limit_seconds)

    async def _at_work(self) -> _Process:
        async with self._starting:
            if self._process is None or self._process.ending:
                try:
                    started = await asyncio.create_subprocess_exec(
                        *self._command, cwd=self._root, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
                        limit=_MOST_BYTES, start_new_session=True,  # Ctrl-C reaches only the server
                    )  # fmt: skip
                except OSError as error:
                    raise SetupError(f"the process that answers queries did not start: {error.strerror}") from error
                self._process = _Process(started, self._idle_seconds)
            return self._process


class _Process:
    """A process that answers, and the queries that wait for it. ``ending``: it takes no further queries."""

    def __init__(self, process: asyncio.subprocess.Process, idle_seconds: float) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._process, self._stdin, self._stdout = process, process.stdin, process.stdout
        self._idle_seconds = idle_seconds
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.ending = False
        self._reading = asyncio.create_task(self._read())

    async def ask(self, asked: Asked, seconds: float) -> bytes:
        """The answer as JSON. Raises InputError, SetupError. After ``seconds`` the process takes no further queries,
        and ends when none is waiting: a single thread of it cannot be ended."""
        future = self._waiting[asked.number] = asyncio.get_running_loop().create_future()
        self._end_in(None)
        try:
            self._stdin.write(asked.model_dump_json().encode() + b"\n")
            return await asyncio.wait_for(future, seconds)
        except TimeoutError:
            self.ending = True
            raise SetupError(f"there was no answer within {seconds:.0f} seconds", "Ask in a notebook.") from None
        finally:
            del self._waiting[asked.number]
            if not self._waiting:
                self._end_in(0.0 if self.ending else self._idle_seconds)

    def _end_in(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else asyncio.get_running_loop().call_later(seconds, self._end)

    def _end(self) -> None:
        self.ending = True
        self._stdin.close()
        self._timer = asyncio.get_running_loop().call_later(_END_SECONDS, self._kill)

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    async def _read(self) -> None:
        """Passes answers to waiting queries; when the process ends, fails the others with the reason."""
        broken = ""
        try:
            while head := await self._stdout.readline():
                self._settle(Told.model_validate_json(head), await self._stdout.readline())
        except ValueError as error:  # an answer that is too long, or invalid
            broken = str(error)
        self.ending = True
        self._kill()
        status = await self._process.wait()
        reason = broken or (f"signal {-status}" if status < 0 else f"exit status {status}")
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(SetupError(f"the process that answers queries ended: {reason}", _AGAIN))

    def _settle(self, told: Told, found: bytes) -> None:
        future = self._waiting.get(told.number)
        if future is None or future.done():  # the query was cancelled
            return
        if told.error:
            kind: type[CutegenError] = InputError if told.wrong_input else SetupError
            future.set_exception(kind(told.error, told.action))
        else:
            future.set_result(found)
