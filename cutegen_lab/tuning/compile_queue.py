"""Compiles configs in the background, in the order requested, before they are timed."""

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
Compiled = Artifact | CompileFailure | str  # an artifact, or the reason why there is none or why it is not worth timing


@dataclass
class CompileQueue:
    """Compiles configs of a kernel in the background and has the timer prepare each. The default is timed even if the
    compiler's figures rule it out."""

    source: str
    """Text of the kernel."""
    arch: str
    """Target architecture."""
    workloads: Sequence[Workload]
    """Workloads to compile for."""
    compiler: Compiler
    """Compiles the configs."""
    timer: ConfigTimer
    """Prepares each compiled config."""
    default: Config
    """The default config."""
    cancel: threading.Event
    """Ends the compilations."""
    workers: int
    """Configs compiled at a time."""
    _asked: list[tuple[Config, Future[Compiled]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix="ahead")

    def __len__(self) -> int:
        """Number of configs requested and not yet taken."""
        return len(self._asked)

    def ask(self, configs: Iterable[Config]) -> None:
        """Requests configs."""
        self._asked.extend((config, self._pool.submit(self._compile, config)) for config in configs)

    def take(self) -> list[tuple[Config, Compiled]]:
        """Finished configs, removed from the queue. Raises what the compiler raised."""
        done = [one for one in self._asked if one[1].done()]
        self._asked = [one for one in self._asked if one not in done]
        return [(config, future.result()) for config, future in done]

    def now(self, configs: Sequence[Config]) -> list[Compiled]:
        """Compiles ``configs`` and waits for them."""
        return list(self._pool.map(self._compile, configs))

    def rest(self) -> None:
        """Waits until another config is compiled, at most ``_POLL_SECONDS``."""
        wait([future for _, future in self._asked], timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
        if not self._asked:
            self.cancel.wait(_POLL_SECONDS)

    def close(self) -> None:
        """Cancels compilations that have not begun, and waits for the others."""
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
