"""Requests as the loop makes them, on a real problem."""

from __future__ import annotations

from dataclasses import replace

from cutegen_lab.core.candidate import Candidate, Proposal
from cutegen_lab.core.problem import Problem, TensorSpec, Workload
from cutegen_lab.core.protocols import Attempt, GenerateKind, GenerateRequest
from cutegen_lab.core.roofline import GPUS
from cutegen_lab.core.trial import CheckResult, OutputError, Profile, Provenance, Timing, Trial, WorkloadCheck
from cutegen_lab.core.verdict import Diagnostic, Verdict

SOURCE = "import cutegen_nothing\n\n\ndef launch(x, y, stream):\n    pass\n"
PROVENANCE = Provenance("k", "s", {}, "sm_90a", "emulator", (1,), {}, {}, ())


def problem(source: str = "def reference(x):\n    return torch.cumsum(x, dim=-1)\n") -> Problem:
    def workload(name: str, rows: int, columns: int, why: str = "") -> Workload:
        shape = (rows, columns)
        from cutegen_lab.core.dtypes import DType

        return Workload(name, (TensorSpec("x", DType.F32, shape),), (TensorSpec("out", DType.F32, shape),), why)

    checks = (workload("prime", 5, 257, "prime columns"),)
    return Problem(
        "scan", source, "reference", (workload("main", 1024, 4096),), checks, inputs_text="x: f32[1024,4096]"
    )


def attempt(verdict: Verdict = Verdict.PASSED, source: str = SOURCE, reason: str = "13 checks") -> Attempt:
    candidate = Candidate("c1", None, "manual", Proposal(source, "first version"))
    error = OutputError("out", 2e-2, 0.5, 1e-7, 1e-6, 3e-7, 1e-5, (3, 17), 1.25, 2.5)
    check = None
    if verdict is Verdict.WRONG_RESULT:
        failed = WorkloadCheck("prime", "uniform", 7, verdict, "error 2e-2", (error,))
        check = CheckResult(verdict, reason, (failed,))
    diagnostics = ()
    if verdict is Verdict.COMPILE_ERROR:
        diagnostics = (Diagnostic("error", "UNSUP_X", "no such thing", 4, "4 def launch", "", "use cute.where"),)
    timing = Timing("predicted", 12.5, "model", "emulator") if verdict.passed else None
    trial = Trial("c1", verdict, reason, "emulator", PROVENANCE, diagnostics, check, timing=timing)
    return Attempt(candidate, trial)


def profiled() -> Attempt:
    """A candidate with a profile: what limits it, what each term takes, and its hot lines."""
    start = attempt()
    assert start.trial is not None
    counters = {"predicted_memory_us": 6.08, "predicted_waits_us": 0.5, "predicted_launch_us": 2.0}
    counters["predicted_copy_us"] = 6.08
    counters |= {"warp_instructions": 1000.0, "warp_instructions_float": 480.0, "warp_instructions_integer": 300.0}
    counters |= {"shared_wavefronts": 200.0, "shared_conflicts": 50.0}
    profile = Profile("emulator", "memory bandwidth", counters)
    return replace(start, trial=replace(start.trial, profile=profile))


def request(
    kind: GenerateKind = "generate", parent: Attempt | None = None, task: Problem | None = None, feedback: str = ""
) -> GenerateRequest:
    history = (parent,) if parent else ()
    return GenerateRequest(kind, task or problem(), GPUS["H200"], "sm_90a", parent, feedback, history)
