"""The handle of one run: its state, its view and the verbs, the same for scripts, notebooks and tests."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from cutegen_lab.core.errors import InputError, SetupError
from cutegen_lab.core.protocols import Say
from cutegen_lab.core.run import Answer, Resumed, RunState, Step, StoredEvent
from cutegen_lab.core.trial import Profile
from cutegen_lab.core.verbs import VERBS, Verb
from cutegen_lab.loop.driver import Over, ThreadedDriver
from cutegen_lab.loop.machine import fold
from cutegen_lab.loop.notices import Notice, Subscriber, Subscribers
from cutegen_lab.session.shown_texts import wait_for

if TYPE_CHECKING:
    from cutegen_lab.session.searching import Searching
    from cutegen_lab.session.session import Session
    from cutegen_lab.tuning.protocols import Limits
    from cutegen_lab.views.model import RunView

LOG_LINES = 500


class RunHandle:
    """A run of ``session``, either driven by this process (``driving``) or only watched.

    A verb on a run that nobody drives first resumes it, so that a widget works right after a kernel restart. Verbs
    store the answer durably before they return; they raise :class:`InputError` if the run does not accept it now and
    :class:`StoreError` if another process drives the run.
    """

    def __init__(self, session: Session, run_id: str) -> None:
        self.run_id = run_id
        self._session = session
        self._driver: ThreadedDriver | None = None
        self._lock = threading.RLock()
        self._log: deque[str] = deque(maxlen=LOG_LINES)
        self._subscribers = Subscribers(run_id)

    def __repr__(self) -> str:
        state = self.state
        return f"<run {self.run_id}: {state.step.value}, {len(state.candidates)} candidates, {state.outcome or 'open'}>"

    @property
    def driving(self) -> bool:
        return self._driver is not None

    @property
    def state(self) -> RunState:
        """Current state: live while driving, otherwise from the store."""
        driver = self._driver
        return driver.state if driver else fold(e.event for e in self._session.store.events(self.run_id))

    @property
    def events(self) -> list[StoredEvent]:
        driver = self._driver
        return driver.events if driver else self._session.store.events(self.run_id)

    @property
    def log(self) -> list[str]:
        """Latest progress lines of this process's work on the run."""
        return list(self._log)

    def view(self) -> RunView:
        """The run as shown by the widget, the report and the command line."""
        from cutegen_lab.views.build import build_view

        events, driving = self.events, self.driving
        state = fold(e.event for e in events)
        elsewhere = "" if driving or state.finished else self._session.store.driven_by(self.run_id)
        texts = self._session.texts.known(state)
        return build_view(state, events, self.log, attached=driving, elsewhere=elsewhere, specialised=texts)

    def specialise(self, wait: bool = True) -> None:
        """Makes the texts of template candidates for their configs alone, which :meth:`view` shows once they are
        there; without ``wait`` in the background."""
        futures = self._session.texts.begin(self.state, lambda: self._subscribers.tell(Notice(self.state, None)))
        if wait:
            wait_for(futures)

    def approve(self) -> RunState:
        """Accepts the candidate under review, from which the next refinement starts. It must have passed."""
        return self._answer(Answer("approve"))

    def approve_unproven(self) -> RunState:
        """Accepts the candidate under review without proof that it is correct. Recorded and shown as such."""
        return self._answer(Answer("approve_unproven"))

    def reject(self, reason: str = "") -> RunState:
        """Rejects the candidate; ``reason`` goes to the provider."""
        return self._answer(Answer("reject", text=reason))

    def edit(self, text: str) -> RunState:
        """Makes ``text``, unchanged, the next candidate."""
        return self._answer(Answer("edit", text=text))

    def retry(self) -> RunState:
        """Asks again from the same parent, or, after our own failure, repeats the failed step."""
        return self._answer(Answer("retry"))

    def branch(self, candidate_id: str, feedback: str = "") -> RunState:
        """Derives the next candidate from ``candidate_id``; also possible on a finished run."""
        return self._answer(Answer("branch", target_id=candidate_id, text=feedback))

    def stop(self) -> RunState:
        """Ends the run at its current step; :meth:`resume` continues it from there."""
        if self.state.finished:
            return self.state
        return self._act(ThreadedDriver.stop)

    def resume(self) -> RunHandle:
        """Drives the run in this process: unfinished work starts again, a stopped run continues. Returns self."""

        def go_on(driver: ThreadedDriver) -> RunState:
            return driver.record(Resumed()) if driver.state.stopped_at is not None else driver.state

        self._act(go_on)
        return self

    def perform(self, verb: Verb, argument: str = "", note: str = "") -> None:
        """Performs ``verb`` with its argument (:data:`~cutegen_lab.core.verbs.VERBS`); ``note`` is the feedback of a
        branch."""
        act = getattr(self, verb)
        match VERBS[verb].takes:
            case "nothing":
                act()
            case "candidate":
                act(argument, note)
            case _:
                act(argument)

    def wait(self, timeout: float | None = None) -> RunState:
        """Waits until the run rests at review or is done, or ``timeout`` seconds have passed; returns its state
        then."""
        driver = self._driver
        if driver is None:
            state = self.state
            if state.finished or state.step is Step.REVIEW:
                return state
            raise InputError(f"run {self.run_id} is at {state.step.value} and not driven here", "Call resume() first.")
        return driver.wait(timeout)

    def subscribe(self, callback: Subscriber) -> Callable[[], None]:
        """Calls ``callback(notice)`` for each event (``notice.event``) and progress line (``notice.line``), on the
        thread it arises; the callback must not wait for the run. Returns a function that unsubscribes."""
        return self._subscribers.add(callback)

    def export(
        self, path: Path | str, candidate_id: str | None = None, *, general: bool = False, say: Say = lambda _: None
    ) -> Path:
        """Writes a kernel as a ``.py`` file: ``candidate_id``, otherwise the accepted one the run ended with.

        The text is specialised for the kernel's config, or with ``general`` keeps its parameters, so that ``cutegen
        tune`` can search it. The general text is also written, and the reason passed to ``say``, if the specialised one
        is not proven to compile to the same PTX. Raises :class:`InputError` if there is no such kernel, it is a spec
        that could not be compiled, or ``path`` is a file that cutegen did not write.
        """
        from cutegen_lab.session.kernels import kernel_text
        from cutegen_lab.session.outputs import may_write, write_out
        from cutegen_lab.session.specialised import text_to_write

        state = self.state
        chosen = candidate_id or state.incumbent_id
        if chosen is None or chosen not in state.candidates:
            seen = f"no candidate {candidate_id!r}" if candidate_id else "no accepted kernel"
            raise InputError(f"run {self.run_id} has {seen}", f"Candidates: {', '.join(state.candidates) or 'none'}.")
        if state.candidates[chosen].proposal.refused:
            kernels = ", ".join(c.id for c in state.candidates.values() if not c.proposal.refused) or "none"
            raise InputError(f"{chosen} is a spec that no kernel could be made of", f"Kernels: {kernels}.")
        may_write(Path(path))
        candidate = state.candidates[chosen]
        written = text_to_write(
            self._session.compiler, state.problem, candidate.source, candidate.config, state.settings.arch,
            general=general, say=say,
        )  # fmt: skip
        write_out(Path(path), kernel_text(state, chosen, written))
        return Path(path)

    def export_page(self, path: Path | str, *, general: bool = False) -> Path:
        """Writes the run as one self-contained HTML page, ``general``: with the texts that have parameters. Raises
        InputError if ``path`` is a file cutegen did not write."""
        from cutegen_lab.session.outputs import write_out
        from cutegen_lab.views.html import report

        if not general:
            self.specialise()
        write_out(Path(path), report([self.view()], title=f"cutegen run {self.run_id}", general=general))
        return Path(path)

    def meant(self, candidate_id: str | None = None) -> str | None:
        """``candidate_id``, otherwise the current candidate, otherwise the accepted one; None without any."""
        state = self.state
        return candidate_id or (state.current.id if state.current else None) or state.incumbent_id

    def profile(self, candidate_id: str | None = None, device: str = "emulator") -> Profile:
        """Counters of a compiled candidate (default: the current one, otherwise the accepted one) from the emulator
        (``device="emulator"``) or a GPU's profiler (``"cuda"``), under the same names.

        Raises InputError if nothing is compiled, SetupError if there is no such device or it has no profiler.
        """
        state, chosen = self.state, self.meant(candidate_id)
        built = state.compiled.get(chosen) if chosen else None
        if built is None:
            seen = ", ".join(state.compiled) or "none"
            raise InputError(f"candidate {chosen or ''} of run {self.run_id} is not compiled", f"Compiled: {seen}.")
        artifact = self._session.store.get_artifact(built.artifact_sha256)
        found = self._session.judge().profile(
            state.problem, artifact, self._session.device(device), self._log.append, threading.Event()
        )
        if isinstance(found, str):
            raise SetupError(f"no profile from {device}: {found}", "`cutegen doctor` says what this machine has.")
        return found

    def search(
        self, candidate_id: str | None = None, limits: Limits | None = None, refactor: bool = False
    ) -> Searching:  # fmt: skip
        """A search, not yet started, for the fastest config of a candidate (default: the current one, otherwise the
        accepted one), for the run's arch and device. ``refactor``: first make a template of a candidate without
        TUNABLE. Raises InputError if there is no such candidate or nothing to search."""
        from cutegen_lab.session.searching import Searching
        from cutegen_lab.session.tune import TuneSettings, from_text
        from cutegen_lab.session.tuned import PlainKernel, Tunable
        from cutegen_lab.tuning.protocols import Limits

        state, chosen = self.state, self.meant(candidate_id)
        if chosen is None or chosen not in state.candidates:
            known = ", ".join(state.candidates) or "none"
            raise InputError(f"run {self.run_id} has no candidate {chosen or ''}", f"Candidates: {known}.")
        candidate, of = state.candidates[chosen], state.settings
        what = f"{self.run_id} {chosen}"
        tunable: Tunable | PlainKernel = (
            PlainKernel(what, candidate.source) if refactor else from_text(candidate.source, candidate.config, what)
        )
        settings = TuneSettings(limits or Limits(), of.arch, of.gpu, of.device)
        return Searching(self._session, state.problem, tunable, settings)

    def kernel_path(self, candidate_id: str) -> Path:
        """Path of an accepted kernel in the work directory."""
        return self._session.kernel_path(self.run_id, candidate_id)

    def close(self) -> None:
        """Stops driving the run in this process without ending it: it can be resumed here or elsewhere."""
        with self._lock:
            driver, self._driver = self._driver, None
        if driver is not None:
            driver.close()
            self._session.release(self.run_id)

    def _answer(self, answer: Answer) -> RunState:
        return self._act(lambda driver: driver.answer(answer))

    def _act(self, act: Callable[[ThreadedDriver], RunState]) -> RunState:
        """Result of ``act`` on the driver, which is created if there is none."""
        while True:
            with self._lock:
                driver = self._driver
                if driver is None or driver.closed:
                    return self.drive(None if self.state.finished else Resumed(), act)
            try:
                return act(driver)
            except Over:  # it has just let the finished run go
                continue

    def drive(
        self, first: Resumed | None = None, act: Callable[[ThreadedDriver], RunState] | None = None
    ) -> RunState:  # fmt: skip
        """Takes the lease, stores ``first``, performs ``act``, and starts the worker, which releases the run when it is
        finished. Raises StoreError if another process drives the run."""
        with self._lock:
            driver = self._session.driver(self.run_id, self._let_go)
            self._session.keep_accepted(driver.state)  # a process may have died between an approval and its file
            driver.subscribe(self._hear)
            self._driver = driver
            try:
                if first is not None:
                    driver.record(first)
                return act(driver) if act else driver.state
            finally:
                driver.start()

    def _let_go(self, driver: ThreadedDriver) -> None:
        with self._lock:
            if self._driver is driver:  # else it was closed, or another one has the lease now
                self._driver = None
                self._session.release(self.run_id)

    def _hear(self, notice: Notice) -> None:
        if notice.line:
            self._log.append(notice.line)
        if notice.event is not None:
            self._session.keep_accepted(notice.state)
        self._subscribers.tell(notice)
