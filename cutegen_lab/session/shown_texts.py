"""Kernel texts specialised for their configs, made on a separate thread and stored by hash."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from cutegen_lab import __version__
from cutegen_lab.core.candidate import Candidate, Config
from cutegen_lab.core.errors import Cancelled, StoreError
from cutegen_lab.core.forks import ForkEnded, Forks
from cutegen_lab.core.hashing import canonical_json, sha256
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.protocols import Compiler, Say
from cutegen_lab.core.run import RunState
from cutegen_lab.session.kernels import write_atomically
from cutegen_lab.session.specialised import Written, specialised

if TYPE_CHECKING:
    from cutegen_lab.views.specialised import SpecialisedText

P = ParamSpec("P")
T = TypeVar("T")

_Task = tuple[Problem, str, Config, str]  # problem, text, config, arch
FROM_TEMPLATES = "templates"  # provider whose texts have parameters


class ShownTexts:
    """Thread-safe. ``folder`` stores proven texts, so that a text is specialised once, whether it is shown or written.
    Texts are folded in a separate process: folding takes seconds of Python, during which a notebook could not
    answer."""

    def __init__(self, folder: Path, compiler: Callable[[], Compiler]) -> None:
        self._folder, self._compiler = folder, compiler
        self._lock = threading.Lock()
        self._made: dict[str, Written] = {}
        self._begun = dict[str, Future[Written | None]]()
        self._thread: ThreadPoolExecutor | None = None
        self._forks: Forks | None = None
        self._stop = threading.Event()

    def known(self, state: RunState) -> dict[str, SpecialisedText]:
        """The texts that exist already, by candidate. Compiles nothing."""
        from cutegen_lab.views.specialised import SpecialisedText

        found = {c.id: self._kept(_key(state.problem, c.source, c.config, state.settings.arch)) for c in _served(state)}
        return {
            name: SpecialisedText(written.source, written.lines)
            for name, written in found.items()
            if written is not None and written.folded is not None
        }

    def begin(self, state: RunState, done: Callable[[], None] = lambda: None) -> list[Future[Written | None]]:
        """Makes the texts of ``state``'s candidates that do not exist yet, one after another on a thread; calls
        ``done`` after each. Returns the futures of these texts."""
        if not _can_fold():
            return []
        found = []
        for candidate in _served(state):
            task = state.problem, candidate.source, candidate.config, state.settings.arch
            if self._kept(_key(*task)) is None and not self._stop.is_set():
                found.append(self._begin(task, done))
        return found

    def written(
        self, problem: Problem, source: str, config: Config, arch: str, *, general: bool = False, say: Say
    ) -> Written:
        """``source`` specialised for ``config``; unchanged with ``general``, or if specialising fails, for which
        ``say`` receives the reason. Raises Cancelled if :meth:`close` is called meanwhile."""
        if general:
            return Written(source, config)
        task = problem, source, config, arch
        if self._stop.is_set():
            raise Cancelled
        if not _can_fold():
            written: Written | None = Written(source, config, note="libcst is not installed")
        else:
            written = self._kept(_key(*task)) or self._begin(task, lambda: None).result()
        if written is None:
            raise Cancelled
        if written.note:
            say(written.note_line)
        return written

    def close(self) -> None:
        """Cancels the texts that are being made."""
        self._stop.set()
        if self._thread is not None:
            self._thread.shutdown(wait=True, cancel_futures=True)
        if self._forks is not None:
            self._forks.close()

    def _begin(self, task: _Task, done: Callable[[], None]) -> Future[Written | None]:
        key = _key(*task)
        with self._lock:
            if key not in self._begun:
                self._thread = self._thread or ThreadPoolExecutor(1, thread_name_prefix="specialise")
                self._begun[key] = self._thread.submit(self._make, key, task, done)
            return self._begun[key]

    def _make(self, key: str, task: _Task, done: Callable[[], None]) -> Written | None:
        """The text; None if making it was cancelled. Another attempt may succeed."""
        written = None
        with suppress(Cancelled, ForkEnded):
            if not self._stop.is_set():
                written = specialised(self._compiler(), *task, self._stop, self._call)
        if written is None or self._stop.is_set():
            with self._lock:
                self._begun.pop(key, None)
            return None
        if written.folded is not None:
            with suppress(OSError, StoreError):  # without a stored text it is made again later
                self._folder.mkdir(parents=True, exist_ok=True)
                write_atomically(self._folder / f"{key}.json", json.dumps(_to_json(written)))
        with self._lock:
            self._made[key] = written
        done()
        return written

    def _call(self, function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Calls ``function`` in another process. Raises Cancelled after :meth:`close`, ForkEnded, and whatever the
        function raised."""
        self._forks = self._forks or Forks(["cutegen_lab.templates.emit.folding"])
        forked = self._forks.fork(partial(function, **named))
        try:
            return forked(*arguments, cancelled=self._stop.is_set)
        finally:
            forked.close()

    def _kept(self, key: str) -> Written | None:
        with self._lock:
            if key in self._made:
                return self._made[key]
        try:
            found = _from_json(json.loads((self._folder / f"{key}.json").read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        with self._lock:
            return self._made.setdefault(key, found)


def wait_for(futures: Iterable[Future[Written | None]]) -> None:
    for future in futures:
        future.result()


def _can_fold() -> bool:
    return find_spec("libcst") is not None


def _served(state: RunState) -> list[Candidate]:
    """Candidates from templates that compile."""
    return [c for c in state.candidates.values() if c.provider == FROM_TEMPLATES and c.id in state.compiled]


def _key(problem: Problem, source: str, config: Config, arch: str) -> str:
    """Hash of what the text depends on."""
    return sha256(canonical_json([sha256(source), dict(config), problem.key, arch, __version__]))


def _to_json(written: Written) -> dict[str, Any]:
    lines = [[before, now] for before, now in written.lines.items()]
    return {"source": written.source, "folded": dict(written.folded or {}), "lines": lines}


def _from_json(data: dict[str, Any]) -> Written:
    lines = {int(before): int(now) for before, now in data["lines"]}
    return Written(str(data["source"]), {}, dict(data["folded"]), lines)
