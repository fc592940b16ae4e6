"""Evidence about earlier candidates for a model: the compiler's diagnostics, the worst element, the time compared with
the bound."""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_lab.core.hot_lines import hottest
from cutegen_lab.core.idea_results import change_between
from cutegen_lab.core.ideas import TIME
from cutegen_lab.core.plain_text import one_line
from cutegen_lab.core.predicted import AT_THE_FLOOR, attainable_us, savings_text, terms_text
from cutegen_lab.core.protocols import Attempt
from cutegen_lab.core.syntax import launch_defaults
from cutegen_lab.core.trial import OutputError, Profile, Trial, WorkloadCheck

_HOT_LINE = 200  # maximum number of characters of a quoted hot line
_CLASS = "warp_instructions_"  # begins the counter of a class of instructions
_CLASSES = 5  # classes of instructions that are named
_FINDINGS_OF_OTHERS = 2  # findings that are repeated of a candidate other than the one to be changed


def failure_text(attempt: Attempt) -> str:
    """Why a candidate failed, with the place in its source if known."""
    trial = attempt.trial
    if trial is None:
        return "It was not judged."
    parts = [trial.reason]
    for diagnostic in trial.diagnostics:
        parts.append(str(diagnostic))
        if diagnostic.excerpt:
            parts.append("\n".join(f"    {line}" for line in diagnostic.excerpt.splitlines()))
    failed = next((c for c in trial.check.checks if not c.verdict.passed), None) if trial.check else None
    if failed:
        parts.append(_failed_check(failed, attempt.candidate.source))
        passed: dict[str, list[str]] = {}
        for check in trial.check.checks if trial.check else ():
            if check.verdict.passed:
                passed.setdefault(check.workload, []).append(check.distribution)
        listed = ", ".join(f"{workload} ({', '.join(kinds)})" for workload, kinds in passed.items())
        parts.append(f"Passed before it: {listed or 'nothing'}.")
    return "\n\n".join(parts)


def evidence_text(attempt: Attempt) -> str:
    """A passing candidate's evidence, one fact per line; times say whether they were measured or predicted."""
    trial = attempt.trial
    if trial is None:
        return "It was not judged."
    lines = [f"- verdict: {trial.verdict.value} ({trial.reason})"]
    worst = trial.check.worst() if trial.check else None
    if worst:
        lines.append(
            f"- error against float64, of the output's norm: {worst.norm:.2e}, of {worst.limit_norm:.2e} allowed "
            f"(PyTorch at the same precision: {worst.torch_norm:.2e})"
        )
    if trial.resources:
        r = trial.resources
        lines.append(
            f"- registers {r.registers}, spilled bytes {r.spill_bytes}, shared memory {r.smem_bytes} bytes per block"
        )
    lines.extend(_timing_lines(trial))
    proposal = attempt.candidate.proposal
    if proposal.spec:
        used = ", ".join(f"{name}={value}" for name, value in proposal.config.items())
        lines.append(f"- settings in use, defaults included: {used or 'none'}")
    else:
        lines.extend(_values(proposal.source))
        lines.extend(_hot_lines(trial, proposal.source))
    for diagnostic in trial.diagnostics:
        lines.append(f"- note: {diagnostic}")
    return "\n".join(lines)


def history_line(attempt: Attempt, history: Sequence[Attempt]) -> str:
    """One earlier candidate: its title, what it promised, what came of it, and what limits it. ``history``: all
    candidates, its parent among them."""
    trial, proposal = attempt.trial, attempt.candidate.proposal
    parent = next((each for each in history if each.candidate.id == attempt.candidate.parent_id), None)
    said = [trial.verdict.value if trial else "not judged"]
    if trial and not trial.verdict.passed:
        said[0] += f" ({one_line(trial.reason)})"
    if trial and trial.timing:
        said.append(f"{trial.timing.time_us:.3g} µs {trial.timing.kind}{_against(parent, attempt)}")
    if trial and trial.resources:
        said.append(f"{trial.resources.registers} registers, {trial.resources.smem_bytes} bytes of shared memory")
    if trial and trial.profile:
        said.append(f"limited by {trial.profile.limiter}")
        said += [line for line in (terms_text(trial.profile, None).partition(";")[0], _mix(trial.profile)) if line]
        said += trial.profile.findings[:_FINDINGS_OF_OTHERS]
    promised = f" (promised: {one_line(proposal.predicted_effect)})" if proposal.predicted_effect else ""
    if proposal.expects:
        promised = f" (expected: {proposal.expects})"
    answer = [one_line(attempt.answer)] if attempt.answer else []
    return f"{attempt.candidate.id} “{proposal.title}”{promised}: {'; '.join([*said, *answer])}"


def _against(parent: Attempt | None, attempt: Attempt) -> str:
    """The change of the time from the parent's."""
    if parent is None or parent.trial is None or attempt.trial is None:
        return ""
    came = change_between(TIME, parent.trial, attempt.trial)
    return f", {100 * came.fraction:+.2g}% from {parent.candidate.id}" if came else ""


def _timing_lines(trial: Trial) -> list[str]:
    lines = []
    if trial.timing:
        gap = f", {trial.sol_gap:.2f} × speed of light" if trial.sol_gap else ""
        lines.append(f"- time ({trial.timing.kind}): {trial.timing.time_us:.3g} µs{gap}")
    if trial.profile:
        lines.append(f"- limited by: {trial.profile.limiter} (counts from the {trial.profile.source})")
        if terms := terms_text(trial.profile, trial.sol):
            lines.append(f"- {terms}")
            lines.extend(f"- {line}" for line in [savings_text(trial.profile)] if line)
        if least_us := attainable_us(trial.profile, trial.sol):
            lines.extend(_headroom(trial, least_us))
        lines.extend(f"- {finding}" for finding in trial.profile.findings)
        lines.extend(f"- {line}" for line in (_mix(trial.profile), _conflicts(trial.profile)) if line)
    return lines


def _headroom(trial: Trial, least_us: float) -> list[str]:
    """How much of a predicted time could be saved at most."""
    if trial.timing is None or trial.timing.kind != "predicted" or trial.profile is None:
        return []
    if AT_THE_FLOOR in trial.profile.limiter:
        return [
            "- what it takes beyond the attainable time is mostly the round trip of its own loads: little can be saved"
        ]
    most = max(1 - least_us / trial.timing.time_us, 0)
    return [f"- no change saves more than {most:.1%} of its time; what hides behind the longest term saves nothing"]


def _values(source: str) -> list[str]:
    """The defaults of launch's parameters, which the evidence is about."""
    given = {name: value for name, value in (launch_defaults(source) or {}).items() if value}
    return [f"- parameters shown and judged: {', '.join(f'{n}={v}' for n, v in given.items())}"] if given else []


def _hot_lines(trial: Trial, source: str) -> list[str]:
    hot = hottest(trial.profile) if trial.profile else ()
    return [f"- {each}: `{text}`" for each in hot if (text := each.text(source, _HOT_LINE))]


def _mix(profile: Profile) -> str:
    """The classes of most warp instructions, with their shares."""
    counted = {name: value for name, value in profile.counters.items() if name.startswith(_CLASS)}
    total = profile.counters.get("warp_instructions", 0.0)
    most = sorted(counted.items(), key=lambda each: -each[1])[:_CLASSES]
    shares = [f"{name[len(_CLASS) :].replace('_', ' ')} {value / total:.0%}" for name, value in most if total and value]
    return f"{total:,.0f} warp instructions: {', '.join(shares)}" if shares else ""


def _conflicts(profile: Profile) -> str:
    wavefronts, conflicts = (profile.counters.get(name, 0.0) for name in ("shared_wavefronts", "shared_conflicts"))
    return f"bank conflicts: {conflicts / wavefronts:.0%} of the shared-memory wavefronts" if conflicts else ""


def _failed_check(check: WorkloadCheck, source: str) -> str:
    text = f"On workload `{check.workload}` with {check.distribution} inputs: {check.reason}"
    if check.fault and check.fault.line:
        lines = source.splitlines()
        first, last = max(check.fault.line - 3, 0), min(check.fault.line + 2, len(lines))
        text += "\n\n" + "\n".join(f"    {n + 1:4} {lines[n]}" for n in range(first, last))
    wrong = next((e for e in check.errors if not e.ok), None)
    return text + (f"\n\n{_worst(wrong)}" if wrong else "")


def _worst(error: OutputError) -> str:
    return (
        f"Worst element {error.worst_place}: got {error.got:.6g}, expected {error.expected:.6g}. "
        f"Norm-wise error {error.norm:.2e}; allowed {error.limit_norm:.2e}; PyTorch's own {error.torch_norm:.2e}."
    )
