"""Builds a candidate's trial from the events of its steps."""

from __future__ import annotations

from dataclasses import replace

from cutegen_lab.core.run import Checked, CompileFailed, Profiled, RunState, Timed
from cutegen_lab.core.trial import Trial


def compile_failed(state: RunState, event: CompileFailed) -> Trial:
    return Trial(
        candidate_id=event.candidate_id,
        verdict=event.verdict,
        reason=event.reason,
        device="",
        provenance=event.provenance,
        diagnostics=event.diagnostics,
        sol=state.sol,
    )


def checked(state: RunState, event: Checked) -> Trial:
    """The first trial of a candidate that compiled: build and check evidence together."""
    built = state.compiled[event.candidate_id]
    seeds = tuple(dict.fromkeys(c.seed for c in event.result.checks))
    return Trial(
        candidate_id=event.candidate_id,
        verdict=event.result.verdict,
        reason=event.result.reason,
        device=event.device,
        provenance=replace(built.provenance, device=event.device, seeds=seeds),
        diagnostics=built.notes,
        check=event.result,
        resources=built.resources,
        sol=state.sol,
    )


def timed(trial: Trial, event: Timed) -> Trial:
    """The trial with its time. A fault during timing is the candidate's failure: its verdict replaces "passed"."""
    if event.fault is not None:
        return replace(trial, verdict=event.fault.verdict, reason=f"while timing: {event.fault}", timing=None)
    return replace(trial, timing=event.timing)


def profiled(trial: Trial, event: Profiled) -> Trial:
    return replace(trial, profile=event.profile)
