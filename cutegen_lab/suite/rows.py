"""A run as a row of the suite's table."""

from __future__ import annotations

from cutegen_lab.core.cost import tokens
from cutegen_lab.core.errors import CutegenError
from cutegen_lab.core.floors import Floors, floors
from cutegen_lab.core.plain_text import one_line
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.roofline import target_gpu
from cutegen_lab.core.run import RunSettings, RunState, Step
from cutegen_lab.core.stopwatch import EAGER
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.loop.budget import working_seconds
from cutegen_lab.loop.history import History
from cutegen_lab.suite.files import ProblemFile
from cutegen_lab.suite.integrity import integrity_of, too_fast
from cutegen_lab.suite.purse import USED_UP
from cutegen_lab.suite.record import Outcome, Row
from cutegen_lab.views.hints import COMMAND_LINE, advised, note_of

_ON_DEVICE = (Step.CHECK, Step.TIME, Step.PROFILE)
# The kernel may be correct.
_WITHOUT_ANSWER = (Verdict.INCONCLUSIVE, Verdict.UNSUPPORTED, Verdict.CANCELLED, Verdict.DEVICE_ERROR)


def without_run(file: ProblemFile, outcome: Outcome, reason: str, problem_key: str = "") -> Row:
    """The row of a problem that has no run."""
    return Row(
        name=file.name, path=one_line(str(file.path)), level=file.level, problem_key=problem_key, outcome=outcome,
        reason=reason,
    )  # fmt: skip


def reason_of(error: Exception) -> str:
    """One line: what happened and what to do."""
    if isinstance(error, CutegenError):
        return one_line(str(advised(error, COMMAND_LINE)))
    return one_line(f"{type(error).__name__}: {error}")


def row_of(file: ProblemFile, problem: Problem, history: History, settings: RunSettings) -> Row:
    """The row of a problem whose run has this history."""
    state = history.state
    outcome = outcome_of(state)
    trial = state.trials.get(state.incumbent_id or "")
    timing = trial.timing if trial else None
    found, used, price = _floors(problem, settings), tokens(state), state.settings.price
    bound_us, label = found.bound.time_us if found else state.sol.time_us, degenerate(problem, found)
    return Row(
        name=file.name,
        path=one_line(str(file.path)),
        level=file.level,
        problem_key=problem.key,
        family=family_of(problem, settings.arch),
        outcome=outcome,
        reason="" if outcome == "correct" else _reason(state),
        compiled=bool(state.compiled),
        candidates=len(state.candidates),
        time_us=timing.time_us if timing else None,
        kind=timing.kind if timing else "",
        device=timing.device if timing else "",
        bound_us=bound_us,
        floor_us=found.fused.floor_us if found else None,
        eager_us=timing.baselines.get(EAGER) if timing else None,
        best_us=timing.baselines.get(timing.baseline) if timing else None,
        best=timing.baseline if timing else "",
        tokens=used.total,
        usd=price.usd(used) if price else None,
        seconds=working_seconds(history.events),
        run_id=state.run_id,
        label=label,
        gpu_seconds=working_seconds(history.events, _ON_DEVICE) if settings.device.startswith("cuda") else None,
        integrity=integrity_of(state, bound_us, bool(label)),
        too_fast=too_fast(state),
    )


def outcome_of(state: RunState) -> Outcome:
    """What came of a run, in a word: of several failed candidates, the one that came furthest counts."""
    trial = state.trials.get(state.incumbent_id or "")
    if state.finished and trial is not None and trial.verdict.passed:
        return "correct"
    if stopped_by_suite(state) and not state.candidates:
        return "not run"
    stopped = state.stopped_at not in (None, Step.REVIEW) and not state.problem_note.startswith("budget:")
    if not state.finished or stopped:
        return "unfinished"
    verdicts = [each.verdict for each in state.trials.values()]
    if not verdicts or any(verdict.passed or verdict in _WITHOUT_ANSWER for verdict in verdicts):
        return "nothing accepted"
    return "wrong" if state.compiled else "not compiled"


def stopped_by_suite(state: RunState) -> bool:
    """Whether the run stopped because the suite's budget was used up."""
    return state.stopped_at is not None and state.problem_note.startswith(USED_UP)


def family_of(problem: Problem, arch: str) -> str:
    """Name of the template that serves ``problem``; "" if none does."""
    from cutegen_lab.templates.recognise import template_for

    try:
        return template_for(problem, arch).name
    except Exception:  # torch.export may fail with any exception
        return ""


def degenerate(problem: Problem, found: Floors | None) -> str:
    """Why a problem's times say little about kernels; "" for others."""
    if problem.insensitive:
        return f"the answer hardly depends on {', '.join(problem.insensitive)}"
    return "the floor is mostly the launch" if found and found.fused.limiter == "launches" else ""


def _floors(problem: Problem, settings: RunSettings) -> Floors | None:
    """Limits of the main workload; None if eager PyTorch's operators cannot be traced."""
    from cutegen_lab.problems.executed import execution

    try:
        executed = execution(problem, problem.workload)
    except Exception:  # PyTorch's dispatcher may fail with any exception
        return None
    return floors(problem, problem.workload, executed, target_gpu(settings.arch, settings.gpu))


def _reason(state: RunState) -> str:
    """Why a run has no correct kernel: the last verdict, otherwise the run's note."""
    trial = next(reversed([*state.trials.values()]), None)
    if trial is not None and not trial.verdict.passed:
        return one_line(f"{trial.verdict.value.replace('_', ' ')}: {trial.reason}")
    return one_line(note_of(state, COMMAND_LINE))
