"""Runs the problems of a suite one after another, unattended, in a session's store."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from cutegen_lab.core.errors import CutegenError, ProblemError
from cutegen_lab.core.growth import by_templates
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.roofline import target_gpu
from cutegen_lab.core.run import RunSettings, RunState, Step
from cutegen_lab.loop.notices import Subscriber
from cutegen_lab.session import RunHandle, Session
from cutegen_lab.suite.files import ProblemFile
from cutegen_lab.suite.record import Row
from cutegen_lab.suite.rows import outcome_of, row_of, without_run


@dataclass(frozen=True)
class SuiteRun:
    """Runs of problems in ``session`` with the same ``settings``. ``subscriber`` gets the notices of the runs."""

    session: Session
    settings: RunSettings
    subscriber: Subscriber

    def check(self) -> None:
        """Raises InputError or SetupError for settings that no run can have."""
        target_gpu(self.settings.arch, self.settings.gpu)
        self.session.services.provider(self.settings)
        self.session.services.device(self.settings.device)

    def rows(self, files: Sequence[ProblemFile], begun: Callable[[ProblemFile], None]) -> Iterator[Row]:
        """A row for each file, as its run ends. ``begun`` is called before each. After KeyboardInterrupt the current
        run goes on until the session is closed, and can be resumed."""
        for file in files:
            begun(file)
            yield self._row(file)

    def _row(self, file: ProblemFile) -> Row:
        with torch_defaults():  # which a file may change
            return self._made(file)

    def _made(self, file: ProblemFile) -> Row:
        try:
            problem = _read(file)
        except Exception as error:  # a file may fail with any exception: the other problems are still run
            return without_run(file, "not read", error)
        try:
            handle = self._ended(problem)
        except CutegenError as error:  # another process drives the run, or its events cannot be written
            return without_run(file, "unfinished", error, problem.key)
        return row_of(file, problem, handle.history, self.settings)

    def _ended(self, problem: Problem) -> RunHandle:
        """The run of ``problem``, driven to its end. Raises StoreError, and InputError or SetupError if it cannot be
        started."""
        handle = self._earlier(problem)
        if handle is None:
            handle = self.session.start(problem, self.settings, subscriber=self.subscriber)
        elif not has_ended(handle.state):
            handle.subscribe(self.subscriber)
            handle.resume()
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
    if outcome_of(state) == "unfinished":
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


def _read(file: ProblemFile) -> Problem:
    """Raises ProblemError, and what the file raises."""
    from cutegen_lab.problems import read_file

    try:
        return read_file(file.path)
    except SystemExit as end:
        raise ProblemError(f"the file ends Python with status {end.code}", "Remove that.") from None
