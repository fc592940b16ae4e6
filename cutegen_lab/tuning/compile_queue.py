"""Configs on their way through the compiler, in the order they were asked for, ahead of whoever times them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from cutegen_lab.core.artifact import Artifact, CompileFailure
from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Workload
from cutegen_lab.core.protocols import Compiler, Say
from cutegen_lab.tuning.protocols import ConfigTimer
from cutegen_lab.tuning.space import key
from cutegen_lab.tuning.unpromising import unpromising

_POLL_SECONDS = 0.05
Compiled = Artifact | CompileFailure | str  # or why it is not worth timing


@dataclass
class CompileQueue:
    """``workers`` configs of ``source`` are compiled at a time, and the timer is told of each. ``default`` is worth
    timing whatever the compiler says of it."""

    source: str
    arch: str
    workloads: Sequence[Workload]
    compiler: Compiler
    timer: ConfigTimer
    default: Config
    cancel: threading.Event
    workers: int
    _asked: list[tuple[Config, Future[Compiled]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix="ahead")

    def __len__(self) -> int:
        """How many were asked for and not taken."""
        return len(self._asked)

    def ask(self, configs: Iterable[Config]) -> None:
        self._asked.extend((config, self._pool.submit(self._compile, config)) for config in configs)

    def take(self) -> list[tuple[Config, Compiled]]:
        """Those that are done. Raises what the compiler raised."""
        done = [one for one in self._asked if one[1].done()]
        self._asked = [one for one in self._asked if one not in done]
        return [(config, future.result()) for config, future in done]

    def now(self, configs: Sequence[Config]) -> list[Compiled]:
        """Compiles ``configs`` and waits for them."""
        return list(self._pool.map(self._compile, configs))

    def rest(self) -> None:
        """Until one more is done, or a moment has passed."""
        wait([future for _, future in self._asked], timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
        if not self._asked:
            self.cancel.wait(_POLL_SECONDS)

    def close(self) -> None:
        """Lets go of what was not begun, and waits for the rest."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _compile(self, config: Config) -> Compiled:
        quiet: Say = lambda _: None  # noqa: E731
        outcome = self.compiler.compile(self.source, config, self.workloads, self.arch, quiet, self.cancel)
        if isinstance(outcome, CompileFailure):
            return outcome
        why = next((w for b in outcome.builds.values() if (w := unpromising(b, self.arch))), "")
        if why and config != self.default:
            return why
        self.timer.prepare(self.workloads, key(config), outcome)
        return outcome
