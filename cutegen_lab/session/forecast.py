"""Predicted times of kernels that a provider may propose: compiled in the cage, run by the emulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from loky import cpu_count

from cutegen_lab.core.artifact import CompileFailure
from cutegen_lab.core.candidate import Config
from cutegen_lab.core.forks import Forks
from cutegen_lab.core.protocols import Cancel, Compiler, GenerateRequest, Judge, Say
from cutegen_lab.core.verdict import Fault
from cutegen_lab.session.config_timers import PredictedTimer


class Forecasts:
    """A :class:`~cutegen_lab.core.protocols.Forecast` on this machine's cores."""

    def __init__(
        self, compiler: Callable[[], Compiler], judge: Callable[[], Judge], forks: Callable[[], Forks]
    ) -> None:  # fmt: skip
        self._compiler, self._judge, self._forks = compiler, judge, forks

    def __call__(
        self, request: GenerateRequest, kernels: Sequence[tuple[str, Config]], say: Say, cancel: Cancel
    ) -> list[float | None]:
        """Predicted microseconds of each kernel for the main workload; None if it does not compile or has a fault.
        Raises Cancelled, and what the compiler raises."""
        workload = request.problem.workload
        say(f"predicting {len(kernels)} refinements")
        timer = PredictedTimer(request.problem, self._judge(), request.gpu, cancel, self._forks())

        def predicted(numbered: tuple[int, tuple[str, Config]]) -> float | None:
            number, (source, config) = numbered
            built = self._compiler().compile(source, config, [workload], request.arch, lambda _: None, cancel)
            if isinstance(built, CompileFailure):
                return None
            (_, times), *_ = timer.time(workload, {str(number): built}, 1)
            return None if isinstance(times, Fault) else times[0]

        with closing(timer), ThreadPoolExecutor(cpu_count(), thread_name_prefix="forecast") as pool:
            return list(pool.map(predicted, enumerate(kernels)))
