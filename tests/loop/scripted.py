"""Deterministic services at the protocol seam: a run whose every outcome is written down in the candidate's source.

A candidate's text says what becomes of it, one word a line: ``compile_error``, ``wrong``, ``time 12.5``, ``fault``,
``cage_error``, ``device_error``, ``slow 0.2`` (seconds at every step, deaf to nothing), ``deaf`` (ignores cancel).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cutegen_lab.core.artifact import Artifact, Build, CompileFailure, KernelInfo, Launch, LaunchPlan
from cutegen_lab.core.candidate import Config, Proposal, TokenUsage
from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.errors import CageError, Cancelled, ProviderError, ProviderExhausted
from cutegen_lab.core.hashing import sha256
from cutegen_lab.core.predicted import AT_THE_FLOOR
from cutegen_lab.core.problem import Problem, TensorSpec, Workload
from cutegen_lab.core.protocols import Cancel, Device, Execution, GenerateRequest, Say
from cutegen_lab.core.roofline import GPUS, GpuSpec, speed_of_light
from cutegen_lab.core.run import RunSettings, RunStarted
from cutegen_lab.core.trial import CheckResult, OutputError, Profile, Timing, WorkloadCheck
from cutegen_lab.core.verdict import Diagnostic, Fault, Verdict
from cutegen_lab.loop.driver import Driver
from cutegen_lab.loop.history import History
from cutegen_lab.loop.services import Services

MAIN = Workload("main", (TensorSpec("x", DType.BF16, (64, 1024)),), (TensorSpec("out", DType.BF16, (64, 1024)),))
SMALL = Workload(
    "one_row", (TensorSpec("x", DType.BF16, (1, 7)),), (TensorSpec("out", DType.BF16, (1, 7)),), why="one row"
)
PROBLEM = Problem("Soft Max!", "def reference(x): ...", "reference", (MAIN,), (SMALL,))
GPU = GPUS["H200"]


def started(run_id: str = "r1", settings: RunSettings | None = None) -> RunStarted:
    return RunStarted(run_id, PROBLEM, settings or RunSettings(), speed_of_light(PROBLEM, GPU), {"python": "3"})


def script_of(source: str) -> dict[str, str]:
    return dict((*line.replace(":", "", 1).split(maxsplit=1), "")[:2] for line in source.splitlines() if line.strip())


def act(source: str, cancel: Cancel) -> None:
    """Takes the time the script asks for: cooperative (``slow``) or not at all (``deaf``)."""
    script = script_of(source)
    if "deaf" in script:
        time.sleep(float(script["deaf"]))
    if "slow" in script and cancel.wait(float(script["slow"])):
        raise Cancelled()


@dataclass
class ScriptedProvider:
    """Proposes ``sources`` by position in the run's history, so a resumed run is told the same; then is exhausted.

    An entry ``error: …`` raises ProviderError (once), ``deaf N`` and ``slow N`` lines act as everywhere.
    """

    sources: Sequence[str]
    name: str = "scripted"
    requests: list[GenerateRequest] = field(default_factory=list)
    delay: str = ""
    errors: list[str] = field(default_factory=list)

    def propose(self, request: GenerateRequest, say: Say, cancel: Cancel) -> Proposal:
        self.requests.append(request)
        act(self.delay, cancel)
        if self.errors:
            raise ProviderError(self.errors.pop(0), "Try again.")
        number = sum(a.candidate.provider != "analyst" for a in request.history)
        if number >= len(self.sources):
            raise ProviderExhausted("the script has ended")
        say(f"proposing {number + 1}")
        return Proposal(self.sources[number], f"step {number + 1}", usage=TokenUsage(10, 5), model="script")


@dataclass
class ScriptedCompiler:
    compiled: list[tuple[str, dict[str, object], tuple[str, ...]]] = field(default_factory=list)

    def compile(
        self, source: str, config: Config, workloads: Sequence[Workload], arch: str, say: Say, cancel: Cancel
    ) -> Artifact | CompileFailure:
        self.compiled.append((source, dict(config), tuple(w.name for w in workloads)))
        script = script_of(source)
        if "cage_error" in script:
            raise CageError("the cage broke", "Run cutegen doctor.")
        act(source, cancel)
        if "compile_error" in script:
            note = Diagnostic("error", "UNSUP", "no such thing", line=1)
            return CompileFailure(Verdict.COMPILE_ERROR, "UNSUP: no such thing", (note,), ("rlimits",))
        plan = LaunchPlan((Launch("k", (1, 1, 1), (32, 1, 1), (1, 1, 1), 128, (), ()),))
        kernel = KernelInfo("k", 40, 4, 8, 64, 0, ())
        builds = {w.name: Build(w.signature, arch, source.encode(), source, (kernel,), plan) for w in workloads}
        return Artifact(sha256(source), dict(config), arch, "4.8.1", builds, ("rlimits",))


@dataclass
class ScriptedDevice:
    name: str = "scripted"
    kind: str = "emulator"
    closed: bool = False

    def execute(
        self, build: Build, tensors: object, buffers: object, cancel: Cancel, counting: bool = True, flops: int = 0
    ) -> Execution:
        return Execution(None, 0.0)

    def time(
        self, build: Build, tensors: object, buffers: object, gpu: GpuSpec, cancel: Cancel
    ) -> tuple[Timing | Fault, Profile | None]:
        raise AssertionError("the scripted judge does not ask")

    def close(self) -> None:
        self.closed = True


@dataclass
class ScriptedJudge:
    calls: list[str] = field(default_factory=list)
    incumbents: list[str | None] = field(default_factory=list)  # what each timing was to compare with

    def check(self, problem: Problem, artifact: Artifact, device: Device, say: Say, cancel: Cancel) -> CheckResult:
        source = artifact.builds["main"].ptx
        self.calls.append("check")
        act(source, cancel)
        script = script_of(source)
        if "device_error" in script:
            return CheckResult(Verdict.DEVICE_ERROR, "the worker died", ())
        verdict = Verdict.WRONG_RESULT if "wrong" in script else Verdict.PASSED
        norm = float("inf") if "wrong" in script else 1e-3
        error = OutputError("out", norm, norm, 9e-4, 9e-4, 3e-3, 3e-3, (0, 1), 2.0, 1.0)
        checks = tuple(
            WorkloadCheck(w, "normal", seed, verdict, "", (error,)) for seed, w in enumerate(artifact.builds)
        )
        return CheckResult(verdict, "off by far" if "wrong" in script else "", checks)

    def time(
        self, problem: Problem, artifact: Artifact, device: Device, gpu: GpuSpec, say: Say, cancel: Cancel,
        incumbent: Artifact | None = None,
    ) -> tuple[Timing | Fault, Profile | None]:  # fmt: skip
        self.incumbents.append(incumbent.sha256 if incumbent else None)
        source = artifact.builds["main"].ptx
        self.calls.append("time")
        act(source, cancel)
        script = script_of(source)
        if "fault" in script:
            return Fault(Verdict.HANG, "it hangs"), None
        timing = Timing("predicted", float(script.get("time", "10")), "script", device.name)
        limiter = f"{AT_THE_FLOOR}: memory 8 µs + launch 2 µs" if "floor" in script else "memory"
        return timing, Profile("emulator", limiter, {"dram_bytes": 1.0})


def services(
    store: object, provider: ScriptedProvider | Sequence[str],
    compiler: ScriptedCompiler | None = None, device: ScriptedDevice | None = None,
) -> Services:  # fmt: skip
    chosen = provider if isinstance(provider, ScriptedProvider) else ScriptedProvider(provider)
    return Services(
        Path(),
        store,  # type: ignore[arg-type]
        compiler=lambda: compiler or ScriptedCompiler(),  # type: ignore[return-value]
        judge=ScriptedJudge,  # type: ignore[arg-type]
        device=lambda kind: device or ScriptedDevice(),  # type: ignore[return-value]
        provider=lambda settings: chosen,
        workloads=lambda problem, device: problem.check_workloads,
        versions={"python": "3"},
    )


def driving(chosen: Services, kind: type[Driver] = Driver) -> Driver:
    """Drives the stored run ``r1``."""
    history = History.of(chosen.store.events("r1"))
    return kind(history, chosen, chosen.provider(history.state.settings))


class Waiting:
    """A subscriber that lets a test wait for a moment of the run."""

    def __init__(self) -> None:
        self.notices: list[object] = []
        self.changed = threading.Condition()

    def __call__(self, notice: object) -> None:
        with self.changed:
            self.notices.append(notice)
            self.changed.notify_all()

    def until(self, condition, timeout: float = 5.0) -> None:  # type: ignore[no-untyped-def]
        with self.changed:
            assert self.changed.wait_for(lambda: any(condition(n) for n in self.notices), timeout), self.notices
