"""Mounts the catalogue's attacks on an honest kernel for the analyst's own problem, and reports what caught each."""

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
COMPILING_AHEAD = 2  # number of builds at a time, while attacks are judged
_OURS = (Verdict.CANCELLED, Verdict.DEVICE_ERROR)
_NEVER_RAN = (Verdict.COMPILE_ERROR, Verdict.CONTRACT, Verdict.UNSUPPORTED)


@dataclass(frozen=True)
class Outcome:
    """Result of one attack.

    ``caught``: by a verdict that fits the attack; ``rejected``: by another. ``not mounted``: the attack's text does not
    compile around this kernel, or the device does not know its instructions, which says nothing about the judge.
    """

    attack: Attack
    """The attack."""
    status: Status
    """How it ended."""
    verdict: Verdict | None
    """The judge's verdict; None if there was nothing to judge."""
    reason: str
    """Why, in one line."""

    @property
    def holds(self) -> bool:
        """Whether the defence held against this attack."""
        return self.status not in ("NOT CAUGHT", "not judged")


@dataclass(frozen=True)
class AttackHarness:
    """Tries attacks on one problem, with one compiler, judge and device."""

    problem: Problem
    """Problem of the honest kernel."""
    workloads: Sequence[Workload]
    """Workloads to compile for."""
    config: Config
    """Config of the honest kernel."""
    arch: str
    """Target architecture."""
    compiler: Compiler
    """Compiles the attacked kernels."""
    judge: Judge
    """Judges them."""
    device: Device
    """Runs them."""
    cancel: Cancel
    """Ends the work."""

    def try_honest(self, source: str) -> tuple[Verdict, str]:
        """Verdict and reason of the honest kernel: if it does not pass, an attack on it proves nothing."""
        return self._judged(self._compiled(source))

    def try_all(self, honest: str) -> Iterator[Outcome]:
        """Outcome of every attack, in the catalogue's order. Raises what compiler, judge and device raise."""
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
        return self.compiler.compile(source, self.config, self.workloads, self.arch, _discard, self.cancel)

    def _judged(self, compiled: Artifact | CompileFailure) -> tuple[Verdict, str]:
        if isinstance(compiled, CompileFailure):
            return compiled.verdict, compiled.reason
        result = self.judge.check(self.problem, compiled, self.device, _discard, self.cancel)
        return result.verdict, result.reason


def _status(attack: Attack, verdict: Verdict) -> Status:
    if verdict.passed:
        return "NOT CAUGHT"
    if verdict in attack.verdicts:
        return "caught"
    if verdict in _OURS:
        return "not judged"
    return "not mounted" if attack.is_kernel and verdict in _NEVER_RAN else "rejected"


def _discard(line: str) -> None:
    """Discards progress messages."""
