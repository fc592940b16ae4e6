"""Which candidates the analyst can approve, derived from the run's state alone."""

from __future__ import annotations

from cutegen_lab.core.run import RunState, Step
from cutegen_lab.core.trial import Trial


def proven(trial: Trial | None) -> bool:
    """Whether the candidate was compiled and checked, and every check passed."""
    return trial is not None and trial.verdict.passed and trial.check is not None and trial.resources is not None


def approvable(state: RunState) -> list[str]:
    """Candidates that can be approved at review: those that passed, except the current kernel."""
    if state.step is not Step.REVIEW:
        return []
    return [each for each, trial in state.trials.items() if proven(trial) and each != state.incumbent_id]


def approvable_unproven(state: RunState) -> bool:
    """Whether the candidate under review can be accepted without proof: it has none, but it compiled, or the compile
    step itself failed."""
    trial = state.trials.get(state.current_id or "")
    return trial is None or (not trial.verdict.passed and trial.candidate_id in state.compiled)
