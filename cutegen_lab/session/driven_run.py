"""One run as this process drives or watches it: its state, and the verbs."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Self

from cutegen_lab.core.cost import tokens
from cutegen_lab.core.errors import CutegenError, InputError
from cutegen_lab.core.hints import Advice, Hint
from cutegen_lab.core.protocols import Lease, Provider
from cutegen_lab.core.run import Resumed, RunSettings, RunStarted, RunState, Step
from cutegen_lab.core.verbs import Verb, answer_of
from cutegen_lab.loop.driver import DriverReleased, ThreadedDriver
from cutegen_lab.loop.history import History
from cutegen_lab.loop.machine import fold
from cutegen_lab.loop.notices import Notice, Subscriber, Subscribers
from cutegen_lab.loop.services import Services
from cutegen_lab.session.kernels import keep_accepted
from cutegen_lab.session.verbs import with_verbs

LOG_LINES = 500


@with_verbs()
class DrivenRun:
    """A run, either driven by this process (``driving``) or only watched.

    A verb on a run that nobody drives first resumes it, so that a widget works right after a kernel restart. Verbs
    store the answer durably before they return; they raise :class:`InputError` if the run does not accept it now and
    :class:`StoreError` if another process drives the run.
    """

    def __init__(self, run_id: str, services: Services, provider: Provider | None = None) -> None:
        """``provider`` overrides the one that the run's settings name."""
        self.run_id = run_id
        self._services, self._provider = services, provider
        self.closed = False
        """Whether this process stopped driving the run, as at the end of its session."""
        self._lease: Lease | None = None  # held while there is a driver
        self._driver: ThreadedDriver | None = None
        self._lock = threading.RLock()
        self._log: deque[str] = deque(maxlen=LOG_LINES)
        self._subscribers = Subscribers(run_id)
        services.at_close(self.close)

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
        return driver.state if driver else self.history.state

    @property
    def history(self) -> History:
        """Events and state: live while driving, otherwise from the store."""
        driver = self._driver
        return driver.history if driver else self._stored()

    @property
    def log(self) -> list[str]:
        """Latest progress lines of this process's work on the run."""
        return list(self._log)

    def begin(self, event: RunStarted) -> None:
        """Stores a new run's first event and drives the run. Raises StoreError."""

        def begun() -> History:
            state = fold([event])
            return History([self._services.store.append(self.run_id, event, state)], state)

        self._drive(begun, None)

    def stop(self) -> RunState:
        """Ends the run at its current step; :meth:`resume` continues it from there."""
        if self.state.finished:
            return self.state
        return self._act(ThreadedDriver.stop)

    def resume(self) -> Self:
        """Drives the run in this process: unfinished work starts again, a stopped run continues. Returns self."""

        def go_on(driver: ThreadedDriver) -> RunState:
            return driver.record(Resumed()) if driver.state.stopped_at is not None else driver.state

        self._act(go_on)
        return self

    def perform(self, verb: Verb, argument: str = "", note: str = "", candidate_id: str = "") -> RunState:
        """Performs ``verb`` with its argument (:data:`~cutegen_lab.core.verbs.VERBS`); ``note`` is the feedback of a
        branch, or the words of a comment or pin. ``candidate_id``: the candidate that the analyst saw, if another may
        be under review by now. The other verbs of the table are methods too: ``approve()``,
        ``reject(reason)``, ``pin("c2", lines=(10, 14))``, …"""
        match verb:
            case "resume":
                return self.resume().state
            case "stop":
                return self.stop()
            case "comment" | "pin" | "lift" as noting:
                return self._act(lambda driver: driver.note(noting, argument, note))
        answer = answer_of(verb, argument, note)
        if candidate_id:
            answer = replace(answer, candidate_id=candidate_id)
        return self._act(lambda driver: driver.answer(answer))

    def wait(self, timeout: float | None = None) -> RunState:
        """Waits until the run waits for review or is done, or ``timeout`` seconds have passed; returns its state
        then."""
        driver = self._driver
        if driver is None:
            state = self.state
            if state.finished or state.step is Step.REVIEW:
                return state
            raise InputError(
                f"run {self.run_id} is at {state.step.value}, and this process does not drive it",
                "Call resume() first.",
            )
        return driver.wait(timeout)

    def subscribe(self, callback: Subscriber) -> Callable[[], None]:
        """Calls ``callback(notice)`` for each event (``notice.event``) and progress line (``notice.line``), on the
        thread it arises; the callback must not wait for the run. Returns a function that unsubscribes."""
        return self._subscribers.add(callback)

    def close(self) -> None:
        """Stops driving the run in this process without ending it: it can be resumed here or elsewhere."""
        with self._lock:
            self.closed = True
            driver, self._driver = self._driver, None
        if driver is not None:
            driver.close()
            self._release()

    def _act(self, act: Callable[[ThreadedDriver], RunState]) -> RunState:
        """Result of ``act`` on the driver, which is created if there is none."""
        while True:
            with self._lock:
                driver = self._driver
                if driver is None or driver.closed:
                    return self._drive(self._stored, lambda driver: act(_resumed(driver)))
            try:
                return act(driver)
            except DriverReleased:  # the driver has just released the finished run
                continue

    def _drive(self, history: Callable[[], History], act: Callable[[ThreadedDriver], RunState] | None) -> RunState:
        """Takes the lease, then reads the history, which nobody else can change now, performs ``act``, and
        starts the worker, which releases the run when it is finished. Raises StoreError if another process drives the
        run."""
        with self._lock:
            self._lease = self._lease or self._services.store.lease(self.run_id)
            try:
                known = history()
                refuse_imported(known.state)
                self._provider = self._provider or self._services.provider(_settings_left(known.state))
                driver = ThreadedDriver(known, self._services, self._provider, self._on_released)
            except CutegenError:
                self._release()
                raise
            keep_accepted(self._services.workdir, driver.state)  # a process may have died between approval and file
            driver.subscribe(self._on_notice)
            self._driver = driver
            try:
                return act(driver) if act else driver.state
            finally:
                driver.start()

    def _stored(self) -> History:
        return History.of(self._services.store.events(self.run_id))

    def _release(self) -> None:
        """Releases the lease, so that another process can drive the run."""
        lease, self._lease = self._lease, None
        if lease is not None:
            lease.release()

    def _on_released(self, driver: ThreadedDriver) -> None:
        with self._lock:
            if self._driver is driver:  # otherwise the run was closed, or a newer driver has the lease
                self._driver = None
                self._release()

    def _on_notice(self, notice: Notice) -> None:
        if notice.line:
            self._log.append(notice.line)
        if notice.event is not None:
            keep_accepted(self._services.workdir, notice.state)
        self._subscribers.tell(notice)


def _settings_left(state: RunState) -> RunSettings:
    """The run's settings for a new provider: its caps are what the answers so far leave."""
    settings, budget, used = state.settings, state.settings.budget, tokens(state)
    if budget.max_tokens is not None:
        budget = replace(budget, max_tokens=max(budget.max_tokens - used.total, 0))
    if budget.max_usd is not None and settings.price is not None:
        budget = replace(budget, max_usd=max(budget.max_usd - settings.price.usd(used), 0.0))
    return replace(settings, budget=budget)


def _resumed(driver: ThreadedDriver) -> ThreadedDriver:
    """``driver``, after recording that an unfinished run resumed."""
    if not driver.state.finished:
        driver.record(Resumed())
    return driver


def refuse_imported(state: RunState) -> None:
    """Raises InputError for a run read from a file, whose reference and kernels this process must not run."""
    if state.imported:
        raise InputError(f"run {state.run_id} was read from {state.imported}, to look at only", Hint(Advice.JUDGE_HERE))
