"""Runs the problems of a suite unattended in a session's store, several at a time."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue

from loky import cpu_count

from cutegen_lab.core.errors import CutegenError, InputError, ProblemError
from cutegen_lab.core.growth import by_templates
from cutegen_lab.core.machine_memory import available_bytes
from cutegen_lab.core.plain_text import plain
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.roofline import target_gpu
from cutegen_lab.core.run import RunSettings, RunState, Step
from cutegen_lab.loop.interrupt import abandon
from cutegen_lab.loop.notices import Notice, Subscriber
from cutegen_lab.session import RunHandle, Session
from cutegen_lab.session.factories import on_gpu
from cutegen_lab.suite.files import ProblemFile
from cutegen_lab.suite.purse import Purse
from cutegen_lab.suite.record import Row
from cutegen_lab.suite.rows import outcome_of, reason_of, row_of, stopped_by_suite, without_run
from cutegen_lab.suite.traces import problem_text

_RUN_BYTES = 1 << 30  # memory that the check of a problem may take on the emulator
_MOST_JOBS = 8  # more wait for each other: parts of a run hold Python's lock


def usual_jobs(settings: RunSettings) -> int:
    """Number of problems to run at a time. With a model at an endpoint, which is mostly waited for, as many as there
    are usable cores, and room for in memory, unless :func:`_why_one` has a reason; else one, since an emulated run
    uses all cores."""
    if _why_one(settings) or settings.provider != "openai":
        return 1
    cores: int = cpu_count()
    return max(1, min(cores, available_bytes() // _RUN_BYTES, _MOST_JOBS))


def _why_one(settings: RunSettings) -> str:
    """Why only one problem may run at a time, or ""."""
    if on_gpu(settings.device):
        return "would disturb each other's times on the GPU"
    return "would number their requests alike in one folder" if settings.provider.startswith("manual") else ""


@dataclass(frozen=True)
class SuiteRun:
    """Runs of problems in ``session`` with the same ``settings``. ``subscriber`` makes the subscriber of the run of a
    file. ``purse``: the budget of all runs together."""

    session: Session
    settings: RunSettings
    subscriber: Callable[[ProblemFile], Subscriber]
    purse: Purse = field(default_factory=Purse)

    def check(self, jobs: int = 1) -> None:
        """Raises InputError or SetupError for settings that no run can have, and InputError if no ``jobs`` problems can
        run at a time."""
        target_gpu(self.settings.arch, self.settings.gpu)
        self.session.services.provider(self.settings)
        self.session.services.device(self.settings.device)
        if jobs > 1 and (reason := _why_one(self.settings)):
            raise InputError(f"{jobs} problems at a time {reason}", "Run one at a time.")

    def rows(
        self, files: Sequence[ProblemFile], begun: Callable[[ProblemFile], None], jobs: int = 1
    ) -> Iterator[tuple[ProblemFile, Row]]:
        """A row for each file, as its run ends; ``jobs`` run at a time. ``begun`` is called before each, on the thread
        of the run. After KeyboardInterrupt the current runs go on until the session is closed, and can be resumed."""
        import cutegen_lab.problems  # noqa: F401 - not imported for the first time by several threads

        self.session.services.spent = self.purse.spent
        alone = {file for file in files if file.alone}
        yield from _as_they_end([file for file in files if file not in alone], jobs, begun, self._row)
        yield from _as_they_end([file for file in files if file in alone], 1, begun, self._row_alone)

    def _row_alone(self, file: ProblemFile) -> Row:
        with torch_defaults():
            return self._row(file)

    def _row(self, file: ProblemFile) -> Row:
        try:
            problem = _read(file)
        except Exception as error:  # a file may fail with any exception: the other problems are still run
            return without_run(file, "not read", reason_of(error))
        try:
            handle = self._ended(file, problem)
        except CutegenError as error:  # another process drives the run, or its events cannot be written
            return without_run(file, "unfinished", reason_of(error), problem.key)
        if handle is None:
            return without_run(file, "not run", self.purse.spent(), problem.key)
        if handle.closed:  # Ctrl-C
            return without_run(file, "unfinished", "interrupted", problem.key)
        return row_of(file, problem, handle.history, self.settings)

    def _ended(self, file: ProblemFile, problem: Problem) -> RunHandle | None:
        """The run of ``problem``, driven to its end; None if it has none and the suite's budget is used up. Raises
        StoreError, and InputError or SetupError if it cannot be started."""
        told = self.subscriber(file)

        def subscriber(notice: Notice) -> None:
            self.purse.record(notice.state)
            told(notice)

        handle = self._earlier(problem)
        if handle is not None:
            self.purse.record(handle.state)
            if has_ended(handle.state) or self.purse.spent():
                return handle
            handle.subscribe(subscriber)
            handle.resume()
        elif self.purse.spent():
            return None
        else:
            handle = self.session.start(problem, self.settings, subscriber=subscriber)
        handle.wait()
        return handle

    def _earlier(self, problem: Problem) -> RunHandle | None:
        """The latest run of ``problem`` with these settings; None without one."""
        for run in self.session.runs():
            if run.problem_key == problem.key:
                handle = self.session.attach(run.run_id)
                if handle.state.settings == self.settings and not handle.state.imported:
                    return handle
        return None


def has_ended(state: RunState) -> bool:
    """Whether the same command need not continue a run. A step that failed, but not because of the candidate (a model's
    server, a device), is tried again; templates that do not cover a problem are not."""
    if outcome_of(state) == "unfinished" or stopped_by_suite(state):
        return False
    return state.outcome != "failed" or (by_templates(state) and state.failed_step is Step.GENERATE)


@contextlib.contextmanager
def torch_defaults() -> Iterator[None]:
    """Restores PyTorch's default dtype and device after the block."""
    import torch

    dtype, device = torch.get_default_dtype(), torch.get_default_device()
    try:
        yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_default_device(None if device == torch.device("cpu") else device)


def _as_they_end(
    files: Sequence[ProblemFile], jobs: int, begun: Callable[[ProblemFile], None], work: Callable[[ProblemFile], Row]
) -> Iterator[tuple[ProblemFile, Row]]:
    """Each file with the result of ``work``, on ``jobs`` threads. Raises what ``work`` raises. The threads are daemons:
    a file that never ends does not keep the process after Ctrl-C."""
    waiting = deque(files)
    ended = SimpleQueue[tuple[ProblemFile, Row | BaseException]]()

    def serve() -> None:
        while True:
            try:
                file = waiting.popleft()
            except IndexError:
                return
            try:
                begun(file)
                ended.put((file, work(file)))
            except BaseException as error:
                waiting.clear()
                ended.put((file, error))

    threads = [
        threading.Thread(target=serve, name=f"suite-{number}", daemon=True) for number in range(min(jobs, len(files)))
    ]
    for thread in threads:
        thread.start()
    try:
        for _ in files:
            file, found = ended.get()
            if isinstance(found, BaseException):
                raise found
            yield file, found
    finally:
        waiting.clear()
        for thread in threads:
            abandon(thread)


def _read(file: ProblemFile) -> Problem:
    """Raises ProblemError, and what the file raises."""
    from cutegen_lab.problems import read_file, read_text

    try:
        if file.path.suffix == ".json":
            name, text = problem_text(file.path)
            return read_text(text, name=plain(name))
        return read_file(file.path)
    except SystemExit as end:
        raise ProblemError(f"the file ends Python with status {end.code}", "Remove that.") from None
