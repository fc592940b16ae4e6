"""A search in the background: start, watch, cancel and continue it from any thread."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from cutegen_lab.core.errors import Cancelled, CutegenError, InputError
from cutegen_lab.core.problem import Problem
from cutegen_lab.loop.services import Services
from cutegen_lab.session.refactor import made_tunable
from cutegen_lab.session.simulate import Simulated, simulate
from cutegen_lab.session.tune import CACHE, TuneSettings, Tuning
from cutegen_lab.session.tuned import PlainKernel, Tunable, TuningResult
from cutegen_lab.tuning.refactor import Refactored
from cutegen_lab.tuning.trace import Trace

Status = Literal["running", "done", "cancelled", "failed"]
_KEPT = 200  # maximum number of progress lines that are kept
_END_SECONDS = 10.0


class Searching:
    """A search for ``tunable``'s fastest config on its own thread, started by :meth:`start`. A kernel without a TUNABLE
    is first made a template; ``refactored`` then says how.

    ``found``: the result, also of a cancelled search; ``error``: why it failed. Every evaluation is stored immediately,
    so the same search continues where it was cancelled or killed, in this process or another.
    """

    def __init__(
        self, services: Services, problem: Problem, tunable: Tunable | PlainKernel, settings: TuneSettings
    ) -> None:  # fmt: skip
        self.problem, self.tunable, self.settings = problem, tunable, settings
        self.refactored: Refactored | None = None
        self._services = services
        self.found: TuningResult | None = None
        self.error: CutegenError | None = None
        self.log: deque[str] = deque(maxlen=_KEPT)
        self._heard: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._tuning: Tuning | None = None
        # Cleared while the search runs. An interrupted join() would report the thread as ended.
        self._resting = threading.Event()
        self._resting.set()
        self._cancel = threading.Event()
        services.at_close(self.end)

    @property
    def status(self) -> Status:
        if not self._resting.is_set():
            return "running"
        if self.error is not None:
            return "failed"
        return "done" if self.found is not None and not self.found.interrupted else "cancelled"

    def start(self, evaluations: int | None = None) -> Searching:
        """Starts or continues the search, with at most ``evaluations`` configs in all. Raises InputError while it runs,
        SetupError if there is no such device."""
        with self._lock:
            if self.status == "running":
                raise InputError("the search is running", "Wait for it, or cancel it first.")
            budget = self.settings.limits.evaluations if evaluations is None else evaluations
            if budget < 1:
                raise InputError(f"a budget of {budget} allows no config", "Use 1 or more.")
            self.settings = replace(self.settings, limits=replace(self.settings.limits, evaluations=budget))
            self._cancel, self.found, self.error = threading.Event(), None, None
            self._services.device(self.settings.device)
            self._resting.clear()
            threading.Thread(target=self._work, name="cutegen-search", daemon=True).start()
        return self

    def cancel(self) -> None:
        """Asks the search to end with its results so far; returns immediately."""
        self._cancel.set()

    def end(self) -> None:
        """Cancels the search and waits for its end, at most a few seconds."""
        self.cancel()
        self.wait(_END_SECONDS)

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the search has ended or ``timeout`` seconds have passed. Returns whether it has ended."""
        return self._resting.wait(timeout)

    def trace(self) -> Trace:
        """Everything evaluated so far."""
        if self._tuning is None:
            return Trace(self.tunable.what, "predicted", "", {}, {}, ())
        return self._tuning.trace()

    def replayed(self) -> Simulated:
        """This search replayed on recorded evaluations, without running anything. Raises InputError without records."""
        if isinstance(self.tunable, PlainKernel):
            raise InputError(
                f"{self.tunable.what} has no TUNABLE", "Start the search first: it makes the kernel tunable."
            )
        return simulate(self._services.workdir / CACHE, self.problem, self.tunable, self.settings)

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Calls ``callback`` on the search's thread after each change; the callback must return immediately."""
        self._heard.append(callback)

    def _say(self, line: str) -> None:
        self.log.append(" ".join(line.split()))
        self._tell()

    def _tell(self) -> None:
        for callback in self._heard:
            callback()

    def _work(self) -> None:
        try:
            if isinstance(self.tunable, PlainKernel):
                self.refactored, self.tunable = made_tunable(
                    self._services, self.problem, self.tunable, self.settings, self._say, self._cancel
                )
            self._tuning = Tuning(self._services, self.problem, self.tunable, self.settings, self._say, self._cancel)
            self.found = self._tuning.run()
        except Cancelled:
            self.log.append("cancelled")
        except CutegenError as error:
            self.error = error
        except Exception as error:  # a thread's exception would be lost
            self.error = CutegenError(f"internal error: {type(error).__name__}: {error}", "Report it.")
        finally:
            self._resting.set()
            self._tell()
