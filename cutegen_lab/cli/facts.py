"""A trial and a run as plain data for ``--json``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from cutegen_lab.core.candidate import Candidate
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.roofline import SpeedOfLight
from cutegen_lab.core.run import RunState
from cutegen_lab.core.trial import Trial
from cutegen_lab.views.hints import COMMAND_LINE, note_of


def trial_facts(trial: Trial) -> dict[str, Any]:
    """Verdict, reason and all evidence; times have their kind."""
    worst = trial.check.worst() if trial.check else None
    return {
        "verdict": trial.verdict.value,
        "reason": trial.reason,
        "device": trial.device,
        "error": None if worst is None else {**asdict(worst), "worst_index": list(worst.worst_index)},
        "timing": asdict(trial.timing) if trial.timing else None,
        "sol_gap": trial.sol_gap,
        "sol": sol_facts(trial.sol) if trial.sol else None,
        "resources": asdict(trial.resources) if trial.resources else None,
        "profile": asdict(trial.profile) if trial.profile else None,
        "checks": [_check(c) for c in trial.check.checks] if trial.check else [],
        "diagnostics": [asdict(d) for d in trial.diagnostics],
        "provenance": asdict(trial.provenance),
    }


def run_facts(state: RunState) -> dict[str, Any]:
    """Facts of the accepted candidate's trial, else the last one's, and the status of the run."""
    chosen = state.incumbent_id or (list(state.trials)[-1] if state.trials else None)
    trial = state.trials.get(chosen) if chosen else None
    note = note_of(state, COMMAND_LINE)
    facts = trial_facts(trial) if trial else {"verdict": None, "reason": ""}
    return {
        **facts,
        **label_facts(state.problem),
        "reason": facts["reason"] or note,
        "run_id": state.run_id,
        "step": state.step.value,
        "outcome": state.outcome,
        "note": note,
        "candidate": chosen,
        "accepted": list(state.accepted),
        "candidates": [_candidate(state, c) for c in state.candidates.values()],
    }


def _candidate(state: RunState, candidate: Candidate) -> dict[str, Any]:
    trial, answer = state.trials.get(candidate.id), state.answers.get(candidate.id)
    return {
        "id": candidate.id,
        "parent": candidate.parent_id,
        "title": candidate.proposal.title,
        "config": dict(candidate.config),
        "verdict": trial.verdict.value if trial else None,
        "time_us": trial.timing.time_us if trial and trial.timing else None,
        "answer": answer.kind if answer else None,
    }


def label_facts(problem: Problem) -> dict[str, Any]:
    """The inputs on which the answer hardly depends (``insensitive``), and the note about them (``label``); empty if
    there are none."""
    return {"insensitive": list(problem.insensitive), "label": problem.label}


def sol_facts(sol: SpeedOfLight) -> dict[str, Any]:
    return asdict(sol)


def proven(state: RunState) -> bool:
    """Whether the run has an accepted kernel that passed."""
    trial = state.trials.get(state.incumbent_id) if state.incumbent_id else None
    return trial is not None and trial.verdict.passed


def _check(check: Any) -> dict[str, Any]:
    return {
        "workload": check.workload,
        "distribution": check.distribution,
        "seed": check.seed,
        "verdict": check.verdict.value,
        "reason": check.reason,
        "seconds": check.seconds,
        "fault": str(check.fault) if check.fault else None,
    }
