"""Events as a run has them, short to write in tests."""

from __future__ import annotations

from cutegen_lab.core.candidate import Candidate, Proposal, TokenUsage
from cutegen_lab.core.run import Checked, Compiled, CompileFailed, Event, Generated, Profiled, Timed
from cutegen_lab.core.trial import CheckResult, OutputError, Profile, Provenance, Resources, Timing, WorkloadCheck
from cutegen_lab.core.verdict import Diagnostic, Fault, Verdict

RECORD = Provenance(
    "key", "src", {"n": 4}, "sm_90a", "scripted", (), {"budget": 3.0}, {"python": "3"}, ("rlimits",), "a1"
)


def generated(candidate_id: str, parent: str | None = None, source: str = "", tokens: int = 15) -> Generated:
    proposal = Proposal(source or f"source of {candidate_id}", "a step", usage=TokenUsage(tokens, 0))
    return Generated(Candidate(candidate_id, parent, "scripted", proposal))


def compiled(candidate_id: str) -> Compiled:
    note = Diagnostic("warning", "L01", "slow", line=3)
    return Compiled(candidate_id, "a1", Resources(40, 0, 64, 128, 1), RECORD, (note,), 0.5)


def compile_failed(candidate_id: str) -> CompileFailed:
    return CompileFailed(
        candidate_id, Verdict.COMPILE_ERROR, "UNSUP: no", RECORD, (Diagnostic("error", "UNSUP", "no"),)
    )


def checked(candidate_id: str, verdict: Verdict = Verdict.PASSED, norm: float = 1e-3) -> Checked:
    error = OutputError("out", norm, norm, 9e-4, 9e-4, 3e-3, 3e-3, (0, 1), 2.0, 1.0)
    checks = tuple(WorkloadCheck("main", "normal", seed, verdict, "", (error,)) for seed in (11, 12))
    return Checked(candidate_id, "scripted", CheckResult(verdict, "", checks))


def timed(candidate_id: str, time_us: float = 10.0, kind: str = "predicted", fault: bool = False) -> Timed:
    if fault:
        return Timed(candidate_id, None, Fault(Verdict.HANG, "it hangs"))
    return Timed(candidate_id, Timing(kind, time_us, "script", "scripted"))  # type: ignore[arg-type]


def profiled(candidate_id: str) -> Profiled:
    return Profiled(candidate_id, Profile("emulator", "memory", {"dram_bytes": 1.0}))


def passing(
    candidate_id: str, parent: str | None = None, time_us: float = 10.0, kind: str = "predicted"
) -> list[Event]:
    return [
        generated(candidate_id, parent),
        compiled(candidate_id),
        checked(candidate_id),
        timed(candidate_id, time_us, kind),
        profiled(candidate_id),
    ]
