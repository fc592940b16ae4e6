"""Mounts the catalogue's attacks on an honest kernel for the analyst's own problem, and says what caught each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

from cutegen_lab.attacks import Attack, NotApplicable, catalogue, mount
from cutegen_lab.core.artifact import Artifact, CompileFailure
from cutegen_lab.core.candidate import Config
from cutegen_lab.core.errors import Cancelled
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.core.protocols import Cancel, Compiler, Device, Judge
from cutegen_lab.core.verdict import Verdict

Status = Literal["caught", "rejected", "NOT CAUGHT", "not judged", "not mounted", "not applicable"]
COMPILING_AHEAD = 2  # builds that run while one is judged
_OURS = (Verdict.CANCELLED, Verdict.DEVICE_ERROR)
_NEVER_RAN = (Verdict.COMPILE_ERROR, Verdict.CONTRACT, Verdict.UNSUPPORTED)


@dataclass(frozen=True)
class Outcome:
    """One attack and what became of it. ``verdict`` is None where there was nothing to judge.

    ``caught``: with a verdict that fits it; ``rejected``: with another. ``not mounted``: the text does not compile
    around this kernel, or the device does not know its instructions, which says nothing about the judge.
    """

    attack: Attack
    status: Status
    verdict: Verdict | None
    reason: str

    @property
    def holds(self) -> bool:
        """Whether the defence stands as far as this attack can tell."""
        return self.status not in ("NOT CAUGHT", "not judged")


@dataclass(frozen=True)
class AttackHarness:
    """Where attacks are tried: on one problem, with one way of compiling and judging."""

    problem: Problem
    workloads: Sequence[Workload]
    config: Config
    arch: str
    compiler: Compiler
    judge: Judge
    device: Device
    cancel: Cancel

    def try_honest(self, source: str) -> tuple[Verdict, str]:
        """The honest kernel itself: an attack on one that does not pass would prove nothing."""
        return self._judged(self._compiled(source))

    def try_all(self, honest: str) -> Iterator[Outcome]:
        """Every attack's outcome, in the catalogue's order. Raises what compiler, judge and device raise."""
        attacks = catalogue()
        threads = ThreadPoolExecutor(COMPILING_AHEAD, thread_name_prefix="attack")
        try:
            texts = [self._mounted(attack, honest) for attack in attacks]
            coming = [threads.submit(self._compiled, t) if isinstance(t, str) else t for t in texts]
            for attack, found in zip(attacks, coming, strict=True):
                if isinstance(found, NotApplicable):
                    yield Outcome(attack, "not applicable", None, str(found))
                    continue
                verdict, reason = self._judged(found.result())
                yield Outcome(attack, _status(attack, verdict), verdict, reason)
        finally:
            threads.shutdown(cancel_futures=True)

    def _mounted(self, attack: Attack, honest: str) -> str | NotApplicable:
        try:
            return mount(attack, self.problem, honest)
        except NotApplicable as reason:
            return reason

    def _compiled(self, source: str) -> Artifact | CompileFailure:
        if self.cancel.is_set():
            raise Cancelled
        return self.compiler.compile(source, self.config, self.workloads, self.arch, _quietly, self.cancel)

    def _judged(self, compiled: Artifact | CompileFailure) -> tuple[Verdict, str]:
        if isinstance(compiled, CompileFailure):
            return compiled.verdict, compiled.reason
        result = self.judge.check(self.problem, compiled, self.device, _quietly, self.cancel)
        return result.verdict, result.reason


def _status(attack: Attack, verdict: Verdict) -> Status:
    if verdict.passed:
        return "NOT CAUGHT"
    if verdict in attack.verdicts:
        return "caught"
    if verdict in _OURS:
        return "not judged"
    return "not mounted" if attack.is_kernel and verdict in _NEVER_RAN else "rejected"


def _quietly(line: str) -> None:
    """Eighty compilations' progress is nobody's news."""
