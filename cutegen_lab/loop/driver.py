"""Drives one run: performs the machine's next step and stores each event before the state changes.

Work happens on the thread that calls :meth:`Driver.work`; answers may come from any thread. :class:`ThreadedDriver` has
a worker thread of its own, for notebooks.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from cutegen_lab.core.errors import Cancelled, CutegenError, InputError, of_the_disk
from cutegen_lab.core.protocols import Provider
from cutegen_lab.core.run import (
    Answer,
    Answered,
    Event,
    IdeasGiven,
    Noted,
    NoteLifted,
    RunState,
    Step,
    StepFailed,
    StepStarted,
    Stopped,
)
from cutegen_lab.core.verbs import NoteVerb
from cutegen_lab.loop.answers import refuse_new
from cutegen_lab.loop.budget import working_seconds
from cutegen_lab.loop.effects import AskReview, Finish, Generate
from cutegen_lab.loop.history import History
from cutegen_lab.loop.interrupt import call
from cutegen_lab.loop.machine import advance, next_step
from cutegen_lab.loop.notes import note_event
from cutegen_lab.loop.notices import Notice, Subscriber, Subscribers
from cutegen_lab.loop.services import Services
from cutegen_lab.loop.steps import Steps

_log = logging.getLogger(__name__)


class Driver:
    """Drives the run with this history, which must be all that ``services.store`` has of the run. Any thread may call
    :meth:`answer`, :meth:`stop` and :meth:`subscribe`."""

    def __init__(self, history: History, services: Services, provider: Provider) -> None:
        """Raises SetupError, InputError if a service that the run needs is not available."""
        self.run_id = history.state.run_id
        self._store, self._spent = services.store, services.spent
        self._steps = Steps(services, provider, history.state.settings)
        self._lock = threading.RLock()
        self._wake = threading.Condition(self._lock)
        self._cancel = threading.Event()  # cancels the current step; each step has a new one
        self._subscribers = Subscribers(self.run_id)
        self._events = list(history.events)
        self._state = history.state

    @property
    def state(self) -> RunState:
        return self._state

    @property
    def history(self) -> History:
        """Events and state, from the same moment."""
        with self._lock:
            return History(list(self._events), self._state)

    @property
    def resting(self) -> bool:
        """Whether the run waits: at review for the analyst's answer, or done."""
        effect = next_step(self._state)
        return isinstance(effect, Finish) or (isinstance(effect, AskReview) and effect.answer is None)

    def subscribe(self, callback: Subscriber) -> Callable[[], None]:
        """Calls ``callback(notice)`` for each notice, on the thread that causes it. Returns a function that
        unsubscribes."""
        return self._subscribers.add(callback)

    def answer(self, answer: Answer) -> RunState:
        """Stores the analyst's answer; it is durable on return. Raises InputError if the state does not accept it."""
        with self._lock:
            refuse_new(self._state, answer)
            before, after = self._state, self._record(Answered(answer))
        if before.finished and after is before and answer.kind != "stop":
            raise InputError(f"cannot {answer.kind}: the run is done", "Edit a candidate, or branch from one.")
        return after

    def note(self, verb: NoteVerb, argument: str, words: str) -> RunState:
        """Stores a comment, a pin or the removal of one; it is durable on return, and the current step continues.
        Raises InputError for a place that does not exist."""
        with self._lock:
            return self._record(note_event(self._state, verb, argument, words))

    def stop(self, reason: str = "stopped by the analyst") -> RunState:
        """Ends the run at any step; work in progress is cancelled and its result dropped."""
        return self.record(Stopped(reason))

    def record(self, event: Event) -> RunState:
        """Stores an event, updates the state, notifies subscribers, in this order. A finished run ignores events."""
        with self._lock:
            return self._record(event)

    def work(self) -> RunState:
        """Performs steps until the run waits for the analyst or is done. Ctrl-C stops the run (it can be resumed) and
        is re-raised."""
        try:
            while not self.resting:
                self._step()
        except KeyboardInterrupt:
            self.stop("interrupted")
            raise
        return self._state

    def _record(self, event: Event) -> RunState:
        before = self._state
        after = advance(before, event)
        if before.finished and after is before:
            return after
        stored = self._store.append(self.run_id, event, after)
        self._events.append(stored)
        self._state = after
        if not isinstance(event, StepStarted | Noted | NoteLifted | IdeasGiven):
            self._cancel.set()  # the current step is over, even if its thread has not noticed yet
        self._wake.notify_all()
        self._subscribers.tell(Notice(after, stored))
        return after

    def _step(self) -> None:
        with self._lock:
            effect = next_step(self._state)
            if isinstance(effect, Finish):
                return
            if isinstance(effect, AskReview):
                if effect.answer is not None:
                    self._record(Answered(effect.answer))
                return
            if isinstance(effect, Generate) and (reason := self._out_of_time() or self._spent()):
                self._record(Stopped(reason))
                return
            state, cancel = self._state, threading.Event()
            self._record(StepStarted(state.step, None if state.step is Step.GENERATE else state.current_id))
            self._cancel = cancel

        def say(line: str) -> None:
            if not cancel.is_set():
                self._subscribers.tell(Notice(self._state, None, line))

        name = f"{self.run_id}-{state.step.value}"
        try:
            events = call(lambda: self._steps.perform(effect, state, say, cancel), cancel, name)
        except Cancelled:
            if cancel.is_set():
                return
            events = [Stopped(f"{state.step.value} was cancelled")]
        except CutegenError as error:
            events = [StepFailed(state.step, error.reason, error.hint)]
        except Exception as error:
            known = of_the_disk(error)
            if known is None:
                _log.exception("step %s of %s", state.step.value, self.run_id)
            failure = known or CutegenError(f"internal error: {type(error).__name__}: {error}")
            events = [StepFailed(state.step, failure.reason, failure.hint)]
        with self._lock:
            if not cancel.is_set():  # after a stop the result is dropped
                for event in events:
                    self._record(event)

    def _out_of_time(self) -> str:
        limit = self._state.settings.budget.max_seconds
        if limit is None:
            return ""
        spent = working_seconds(self._events)
        return f"budget: {spent:.0f} of {limit:.0f} s used" if spent >= limit else ""


class DriverReleased(Exception):
    """The driver was closed, or released its finished run, before it could accept a verb; another driver can."""


class ThreadedDriver(Driver):
    """A driver with its own daemon thread, which sleeps while the run waits for the analyst.

    With ``ended``, the driver releases a finished run: the thread ends, calling ``ended(self)`` last, and verbs raise
    :class:`DriverReleased`.
    """

    def __init__(
        self, history: History, services: Services, provider: Provider,
        ended: Callable[[ThreadedDriver], None] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(history, services, provider)
        self._closed = False
        self._broken: Exception | None = None
        self._ended = ended
        self._thread = threading.Thread(target=self._serve, name=self.run_id, daemon=True)

    @property
    def closed(self) -> bool:
        return self._closed

    def start(self) -> None:
        self._thread.start()

    def wait(self, timeout: float | None = None) -> RunState:
        """Waits until the run waits for the analyst or is done, at most ``timeout`` seconds; returns the state then. A
        finished run has been released on return.

        Raises StoreError if the run stopped because its events could not be written.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._wake:
            while not self.resting and not self._closed:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    break
                self._wake.wait(left)
            if self._broken is not None:
                raise self._broken
            state = self._state
        if state.finished and self._ended is not None:
            self._join()
        return state

    def close(self) -> None:
        """Ends the thread and abandons the current step. Stores nothing: the run can be resumed."""
        with self._wake:
            self._closed = True
            self._cancel.set()
            self._wake.notify_all()
        self._join()

    def _join(self) -> None:
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(2.0)

    def _record(self, event: Event) -> RunState:
        if self._closed:  # this driver no longer has the lease
            raise DriverReleased
        return super()._record(event)

    def _serve(self) -> None:
        while self._awaited():
            try:
                self._step()
            except DriverReleased:
                break
            except Exception as error:  # an event could not be stored: the run must not continue unrecorded
                self._broken = error
                self.close()
                return
        if self._ended is not None:
            self._ended(self)

    def _awaited(self) -> bool:
        """Waits for work; False if there will be none."""
        with self._wake:
            while self.resting and not self._closed:
                if self._state.finished and self._ended is not None:
                    self._closed = True
                    break
                self._wake.wait()
            return not self._closed
