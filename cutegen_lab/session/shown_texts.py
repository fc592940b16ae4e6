"""Texts of a run's candidates for their configs alone, made in the background and kept by hash."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from cutegen_lab import __version__
from cutegen_lab.core.candidate import Candidate
from cutegen_lab.core.errors import Cancelled, StoreError
from cutegen_lab.core.forks import ForkEnded, Forks
from cutegen_lab.core.hashing import canonical_json, sha256
from cutegen_lab.core.protocols import Compiler
from cutegen_lab.core.run import RunState
from cutegen_lab.session.kernels import write_atomically
from cutegen_lab.session.specialised import Written, specialised

if TYPE_CHECKING:
    from cutegen_lab.views.specialised import SpecialisedText

P = ParamSpec("P")
T = TypeVar("T")

FROM_TEMPLATES = "templates"  # the provider whose texts have parameters


class ShownTexts:
    """Thread-safe. ``folder`` keeps what was proven, so that a run is specialised once. Texts are folded in a process
    of their own: it takes seconds of Python, during which a notebook could not answer."""

    def __init__(self, folder: Path, compiler: Callable[[], Compiler]) -> None:
        self._folder, self._compiler = folder, compiler
        self._lock = threading.Lock()
        self._made: dict[str, SpecialisedText | None] = {}
        self._begun = dict[str, Future[None]]()
        self._thread: ThreadPoolExecutor | None = None
        self._forks: Forks | None = None
        self._stop = threading.Event()

    def known(self, state: RunState) -> dict[str, SpecialisedText]:
        """By candidate, the texts that are there already. Compiles nothing."""
        found = {candidate.id: self._kept(_key(state, candidate)) for candidate in _served(state)}
        return {name: text for name, text in found.items() if text is not None}

    def begin(self, state: RunState, done: Callable[[], None] = lambda: None) -> list[Future[None]]:
        """Makes the texts of ``state``'s candidates that are not there yet, one after another on a thread; calls
        ``done`` after each. Futures of those that are not made yet."""
        if find_spec("libcst") is None:
            return []
        found = []
        for candidate in _served(state):
            key = _key(state, candidate)
            if self._kept(key) is not None or self._stop.is_set():
                continue
            with self._lock:
                if key not in self._begun:
                    self._thread = self._thread or ThreadPoolExecutor(1, thread_name_prefix="specialise")
                    self._begun[key] = self._thread.submit(self._make, key, state, candidate, done)
                found.append(self._begun[key])
        return found

    def close(self) -> None:
        """Ends what is being made."""
        self._stop.set()
        if self._thread is not None:
            self._thread.shutdown(wait=True, cancel_futures=True)
        if self._forks is not None:
            self._forks.close()

    def _make(self, key: str, state: RunState, candidate: Candidate, done: Callable[[], None]) -> None:
        if self._stop.is_set():
            return
        compiler, arch = self._compiler(), state.settings.arch
        try:
            written = specialised(
                compiler, state.problem, candidate.source, candidate.config, arch, self._stop, self._call
            )
        except (Cancelled, ForkEnded):
            return
        if written.folded is None or self._stop.is_set():
            return
        data = _to_json(written)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self._folder / f"{key}.json", json.dumps(data))
        except (OSError, StoreError):
            pass  # it is made again another time
        with self._lock:
            self._made[key] = _text(data)
        done()

    def _call(self, function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Calls ``function`` in another process. Raises Cancelled once this is closed, ForkEnded, and whatever the
        function raised."""
        self._forks = self._forks or Forks(["cutegen_lab.templates.emit.folding"])
        forked = self._forks.fork(partial(function, **named))
        try:
            return forked(*arguments, cancelled=self._stop.is_set)
        finally:
            forked.close()

    def _kept(self, key: str) -> SpecialisedText | None:
        with self._lock:
            if key in self._made:
                return self._made[key]
        try:
            found = _text(json.loads((self._folder / f"{key}.json").read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        with self._lock:
            return self._made.setdefault(key, found)


def wait_for(futures: Iterable[Future[None]]) -> None:
    for future in futures:
        future.result()


def _served(state: RunState) -> list[Candidate]:
    """Candidates from templates that compile."""
    return [c for c in state.candidates.values() if c.provider == FROM_TEMPLATES and c.id in state.compiled]


def _key(state: RunState, candidate: Candidate) -> str:
    """What the text follows from."""
    of = (candidate.source_sha256, dict(candidate.config), state.problem.key, state.settings.arch, __version__)
    return sha256(canonical_json(list(of)))


def _to_json(written: Written) -> dict[str, Any]:
    return {"source": written.source, "lines": [[before, now] for before, now in written.lines.items()]}


def _text(data: dict[str, Any]) -> SpecialisedText:
    from cutegen_lab.views.specialised import SpecialisedText

    return SpecialisedText(str(data["source"]), {int(before): int(now) for before, now in data["lines"]})
