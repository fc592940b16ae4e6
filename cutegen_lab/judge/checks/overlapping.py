"""Draws that overlap: while a GPU runs one, this process draws the next one's inputs and compares the previous one's
outputs. A second thread waits for the GPU and does nothing else: references run on the main thread, one at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import count

from cutegen_lab.core.protocols import Execution
from cutegen_lab.core.trial import WorkloadCheck
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.judge.checks.case import Case, DrawCheck, Run

AT_ONCE = 3  # number of draws in progress: one on the GPU, one that waits for it, one that is compared
_NOT_RUN = Execution(Fault(Verdict.INCONCLUSIVE, "not run: an earlier draw failed"), 0.0)


def overlapping(case: Case, draws: Iterable[tuple[str, int]]) -> Iterator[WorkloadCheck | None]:
    """Checks of ``draws`` (distribution and seed), in their order, as :meth:`Case.run` makes them. Raises
    Cancelled."""
    coming, queue, under_way = iter(draws), _Queue(), deque[_UnderWay]()
    try:
        while True:
            if under_way and under_way[0].future is None:
                yield under_way.popleft().check.result
            elif ready := next((draw for draw in under_way if draw.future and draw.future.done()), None):
                ready.go_on()
            elif len(under_way) < AT_ONCE and (drawn := next(coming, None)):
                under_way.append(_UnderWay(case.begin(*drawn, first=False), queue))
            elif under_way:
                wait([draw.future for draw in under_way if draw.future], return_when=FIRST_COMPLETED)
            else:
                return
    finally:
        queue.close()


class _UnderWay:
    """A check and its run on the GPU: ``future`` is None when the check has ended."""

    def __init__(self, check: DrawCheck, queue: _Queue) -> None:
        self.check, self._queue = check, queue
        self._number = queue.number()
        self.future = queue.put(self._number, check.next_run)

    def go_on(self) -> None:
        if self.future is not None:
            self.check.resume(self.future.result)
            self.future = self._queue.put(self._number, self.check.next_run)


class _Queue:
    """Runs of the candidate, one after another on a thread. After a fault, runs of later draws are skipped: a GPU
    worker that failed takes seconds to restart."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._draws = count()
        self._failed: int | None = None  # number of the first draw with a fault

    def number(self) -> int:
        """Number of a new draw."""
        return next(self._draws)

    def put(self, number: int, run: Run | None) -> Future[Execution] | None:
        return None if run is None else self._thread.submit(self._run, number, run)

    def _run(self, number: int, run: Run) -> Execution:
        if self._failed is not None and number > self._failed:
            return _NOT_RUN
        done = run()
        if done.fault and (self._failed is None or number < self._failed):
            self._failed = number
        return done

    def close(self) -> None:
        self._thread.shutdown(cancel_futures=True)
