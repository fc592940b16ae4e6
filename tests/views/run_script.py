"""A run told event by event, for tests of what is seen of it: real core values, folded by the real loop."""

from __future__ import annotations

from dataclasses import dataclass, field

from cutegen_lab.core.candidate import Candidate, PromptRef, Proposal, TokenUsage
from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import Problem, TensorSpec, Workload
from cutegen_lab.core.roofline import GPUS, speed_of_light
from cutegen_lab.core.run import (
    Answer,
    Answered,
    Checked,
    Compiled,
    CompileFailed,
    Event,
    Generated,
    Profiled,
    RunSettings,
    RunStarted,
    RunState,
    Step,
    StepStarted,
    StoredEvent,
    Timed,
)
from cutegen_lab.core.trial import CheckResult, OutputError, Profile, Provenance, Resources, Timing, WorkloadCheck
from cutegen_lab.core.verdict import Diagnostic, Fault, Verdict
from cutegen_lab.loop import fold
from cutegen_lab.views.model import RunView
from cutegen_lab.views.run_view import build_view

SOURCE = "import cutlass\n\nTHREADS = 256\n\n\ndef launch(x, y, stream):\n    pass\n"
HOSTILE = "<script>alert(1)</script> & \"quotes\" '</pre>'"


def problem(name: str = "softmax") -> Problem:
    def workload(label: str, rows: int, columns: int, why: str = "") -> Workload:
        x = TensorSpec("x", DType.BF16, (rows, columns))
        return Workload(label, (x,), (TensorSpec("out", DType.BF16, (rows, columns)),), why)

    return Problem(
        name=name,
        source="def reference(x):\n    return torch.softmax(x, dim=-1)\n",
        kind="reference",
        workloads=(workload("main", 4096, 8192),),
        check_workloads=(workload("one_row", 1, 64, "one row"), workload("prime", 7, 131, "prime sizes")),
    )


PROVENANCE = Provenance(
    problem_key=problem().key,
    source_sha256="0" * 64,
    config={"threads": 256},
    arch="sm_90a",
    device="emulator",
    seeds=(7,),
    tolerances={"budget": 3.0},
    versions={"torch": "2.13.0"},
    isolation=("net-ns", "rlimits"),
    artifact_sha256="a" * 64,
)
RESOURCES = Resources(registers=40, spill_bytes=0, static_smem_bytes=64, dynamic_smem_bytes=1024, kernels=1)
ERROR = OutputError("out", 1.6e-3, 3.1e-3, 1.7e-3, 3.9e-3, 5.1e-3, 0.125)
BAD_ERROR = OutputError("out", 0.8, 1.0, 1.7e-3, 3.9e-3, 5.1e-3, 0.125, (3, 5), 0.25, 0.5)
FAULT = Fault(Verdict.OUT_OF_BOUNDS, "read 2 bytes past x", "kernel", (0, 0, 0), (31, 0, 0), 4096, 9, "ld.global.b16")


def timing(time_us: float = 36.5, kind: str = "predicted") -> Timing:
    return Timing(kind, time_us, "counters and roofline", "emulator of H200")  # type: ignore[arg-type]


@dataclass
class Script:
    """Collects events one second apart; each method is one thing that happens."""

    name: str = "softmax"
    settings: RunSettings = field(default_factory=RunSettings)
    events: list[StoredEvent] = field(default_factory=list)
    candidates: int = 0

    def __post_init__(self) -> None:
        target = problem(self.name)
        sol = speed_of_light(target, GPUS["H200"])
        self.add(RunStarted("r-1", target, self.settings, sol, {"torch": "2.13.0", "cutegen-lab": "0.1.0"}))

    @property
    def current(self) -> str:
        return f"c{self.candidates}"

    def add(self, *events: Event) -> Script:
        for event in events:
            seq = len(self.events) + 1
            self.events.append(StoredEvent(seq, 1000.0 + seq, event))
        return self

    def start(self, step: Step) -> Script:
        return self.add(StepStarted(step, None if step is Step.GENERATE else self.current))

    def generate(self, source: str = SOURCE, title: str = "first kernel", parent: str | None = None) -> Script:
        self.start(Step.GENERATE)
        self.candidates += 1
        proposal = Proposal(
            source,
            title,
            "twice the bytes in flight",
            "-10% time",
            {"threads": 256},
            (PromptRef("refine", "3", "b" * 64),),
            TokenUsage(1000, 200),
        )
        return self.add(Generated(Candidate(self.current, parent, "templates", proposal)))

    def compile(self, notes: tuple[Diagnostic, ...] = ()) -> Script:
        return self.start(Step.COMPILE).add(Compiled(self.current, "a" * 64, RESOURCES, PROVENANCE, notes))

    def fail_compile(self, message: str = "no such attribute") -> Script:
        told = Diagnostic("error", "UNSUP_X", message, 3, "THREADS = 256", "", "use cute.arch")
        failed = CompileFailed(self.current, Verdict.COMPILE_ERROR, message, PROVENANCE, (told,))
        return self.start(Step.COMPILE).add(failed)

    def check(
        self, verdict: Verdict = Verdict.PASSED, error: OutputError = ERROR, fault: Fault | None = None
    ) -> Script:
        reason = "" if verdict.passed else "out[3, 5] is 0.25, expected 0.5"
        checks = (
            WorkloadCheck("one_row", "normal", 7, Verdict.PASSED, "", (ERROR,)),
            WorkloadCheck("prime", "normal", 7, verdict, reason, (error,), fault),
        )
        return self.start(Step.CHECK).add(Checked(self.current, "emulator", CheckResult(verdict, reason, checks)))

    def time(self, given: Timing | None = None) -> Script:
        return self.start(Step.TIME).add(Timed(self.current, given or timing()))

    def profile(self) -> Script:
        found = Profile("emulator", "DRAM bandwidth", {"dram_bytes": 134_217_728.0}, ("half the lanes idle",))
        return self.start(Step.PROFILE).add(Profiled(self.current, found))

    def proven(self, **generate: str) -> Script:
        """A candidate that went through every step and waits for an answer."""
        return self.generate(**generate).compile().check().time().profile()

    def answer(self, kind: str, text: str = "", target: str | None = None) -> Script:
        """As the widget, the magics and the command line answer: about the candidate under review, without its id."""
        self.add(Answered(Answer(kind, None, text, target)))  # type: ignore[arg-type]
        if kind == "edit":
            self.candidates += 1
        return self

    def state(self) -> RunState:
        return fold(stored.event for stored in self.events)

    def view(self, log: tuple[str, ...] = (), attached: bool = True) -> RunView:
        return build_view(self.state(), self.events, log, attached)
