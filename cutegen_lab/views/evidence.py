"""Evidence of one candidate, as rows of its evidence card."""

from __future__ import annotations

from cutegen_lab.core.candidate import Candidate
from cutegen_lab.core.cost import in_words
from cutegen_lab.core.hot_lines import HotLine, hottest
from cutegen_lab.core.plain_text import plain
from cutegen_lab.core.predicted import terms_text
from cutegen_lab.core.problem import SIZES_OF_THE_JUDGE, Problem
from cutegen_lab.core.roofline import SpeedOfLight
from cutegen_lab.core.run import RunState
from cutegen_lab.core.trial import CheckResult, OutputError, Profile, Provenance, Resources, Trial
from cutegen_lab.core.verdict import Diagnostic, Verdict
from cutegen_lab.views.expected import expected_rows
from cutegen_lab.views.model import DiagnosticView, EvidenceRow, Tone
from cutegen_lab.views.speed import speed_rows
from cutegen_lab.views.units import count, microseconds, plural, relative, size


def evidence_rows(
    candidate: Candidate, trial: Trial | None, resources: Resources | None, state: RunState
) -> list[EvidenceRow]:
    """Rows in reading order: correctness, resources, time, limiter, provenance of the figures. ``trial``: the
    candidate's trial, whose line numbers are those of the text that is shown."""
    problem, sol, parent = state.problem, state.sol, state.trials.get(candidate.parent_id or "")
    rows = []
    if trial is not None:
        tone: Tone = "good" if trial.verdict.passed else "bad"
        rows.append(_row("verdict", "Verdict", trial.verdict.value.replace("_", " "), trial.reason, tone))
        if trial.check is not None:
            rows += _check_rows(trial.check, problem)
    resources = (trial.resources if trial else None) or resources
    if resources is not None:
        rows += _resource_rows(resources)
    rows.append(_sol_row(sol))
    if problem.label:
        rows.append(_row("label", "Problem", problem.label, tone="warn"))
    if trial is not None:
        rows += speed_rows(trial.timing, trial.sol or sol)
        rows += expected_rows(candidate.proposal, trial, parent)
        rows += profile_rows(trial.profile, candidate.source, trial.sol or sol)
        rows.append(_row("device", "Device", trial.device or "none"))
        isolation = ", ".join(trial.provenance.isolation)
        rows.append(_row("isolation", "Compile isolation", isolation or "none recorded"))
    rows += _token_rows(candidate)
    return rows


def diagnostics(items: tuple[Diagnostic, ...]) -> list[DiagnosticView]:
    known = ("error", "warning", "note")
    return [
        DiagnosticView(
            severity=item.severity if item.severity in known else "note",  # type: ignore[arg-type]
            code=item.code,
            message=f"{item.message} ({item.note})" if item.note else item.message,
            line=item.line,
            excerpt=item.excerpt,
            suggestion=item.suggestion,
        )
        for item in items
    ]


def provenance(candidate: Candidate, record: Provenance | None) -> dict[str, str]:
    """What a candidate and its verdict depended on, in words; keys in a fixed order."""
    proposal = candidate.proposal
    out = {"source sha256": candidate.source_sha256}
    if candidate.config:
        out["config"] = ", ".join(f"{k}={v}" for k, v in sorted(candidate.config.items()))
    if proposal.prompts:
        out["prompts"] = ", ".join(f"{p.id} v{p.version} ({p.sha256[:12]})" for p in proposal.prompts)
    if record is not None:
        out["problem"] = record.problem_key
        out["arch"] = record.arch
        out["artifact sha256"] = record.artifact_sha256
        out["seeds"] = ", ".join(map(str, record.seeds))
        out["tolerances"] = ", ".join(f"{k}={v:g}" for k, v in sorted(record.tolerances.items()))
        out["versions"] = ", ".join(f"{k} {v}" for k, v in sorted(record.versions.items()))
    return {key: value for key, value in out.items() if value}


def _row(key: str, label: str, value: str, detail: str = "", tone: Tone = "neutral") -> EvidenceRow:
    return EvidenceRow(key=key, label=label, value=value, detail=detail, tone=tone)


def _check_rows(check: CheckResult, problem: Problem) -> list[EvidenceRow]:
    rows = []
    worst = check.worst()
    if worst is not None:
        rows += _error_rows(worst, problem)
    names = {c.workload for c in check.checks}
    failed = {c.workload for c in check.checks if not c.verdict.passed}
    tone: Tone = "bad" if failed else "good"
    detail = f"{plural(len(check.checks), 'check')}: " + ", ".join(sorted({c.kind for c in check.checks}))
    if failed:
        detail += f"; failed on {', '.join(sorted(failed))}"
    rows.append(_row("workloads", "Workloads passed", f"{len(names - failed)}/{len(names)}", detail, tone))
    for item in check.checks:
        if item.fault is not None:
            chosen = any(w.name == item.workload for w in problem.check_workloads)
            sizes = chosen and item.verdict in (Verdict.OUT_OF_BOUNDS, Verdict.INVALID_PLAN)
            where = f"workload {item.workload}{f', {SIZES_OF_THE_JUDGE}' if sizes else ''}"
            rows.append(_row("fault", "Fault", str(item.fault), where, "bad"))
            break
    return rows


def _error_rows(worst: OutputError, problem: Problem) -> list[EvidenceRow]:
    dtypes = {t.name: t.dtype.value for t in problem.workload.outputs}
    peer = f"PyTorch {dtypes.get(worst.output, '')}".strip()
    rows = [
        _row(
            "error",
            "Error vs fp64, norm",
            relative(worst.norm),
            f"{peer} {relative(worst.torch_norm)}, limit {relative(worst.limit_norm)}",
            "good" if worst.norm <= worst.limit_norm else "bad",
        ),
        _row(
            "error_worst",
            "Error vs fp64, worst element",
            relative(worst.worst),
            f"{peer} {relative(worst.torch_worst)}, limit {relative(worst.limit_worst)}",
            "good" if worst.worst <= worst.limit_worst else "bad",
        ),
    ]
    if not worst.ok:
        rows.append(
            _row(
                "worst_element",
                "Worst element",
                worst.worst_place,
                f"got {worst.got:g}, expected {worst.expected:g}",
            )
        )
    return rows


def _resource_rows(resources: Resources) -> list[EvidenceRow]:
    parts = f"{resources.static_smem_bytes:,} static + {resources.dynamic_smem_bytes:,} dynamic"
    return [
        _row("registers", "Registers per thread", str(resources.registers), plural(resources.kernels, "kernel")),
        _row(
            "spills", "Register spills", f"{resources.spill_bytes:,} B", "", "warn" if resources.spill_bytes else "good"
        ),
        _row("shared_memory", "Shared memory per block", f"{resources.smem_bytes:,} B", parts),
    ]


def _sol_row(sol: SpeedOfLight) -> EvidenceRow:
    cause = f"{size(sol.compulsory_bytes)} compulsory" if sol.limiter == "memory" else f"{sol.flops:.3g} FLOP"
    return EvidenceRow(
        key="speed_of_light",
        label="Speed of light",
        value=microseconds(sol.time_us),
        detail=f"{sol.gpu}, {sol.limiter} bound: {cause}",
        basis="bound",
    )


_COUNTS = (  # counters of a profile that are shown if they are not zero
    "warp_instructions", "tensor_instructions", "global_load_sectors", "global_store_sectors", "bulk_load_sectors",
    "bulk_store_sectors", "moved_bytes", "compulsory_bytes",
)  # fmt: skip


def profile_rows(profile: Profile | None, source: str, sol: SpeedOfLight | None = None) -> list[EvidenceRow]:
    """Limiters of the kernel, terms of a predicted time, recommended changes, and the most expensive lines of
    ``source``."""
    if profile is None:
        return []
    counts = ", ".join(
        f"{k.replace('_', ' ')} {count(profile.counters[k])}" for k in _COUNTS if profile.counters.get(k)
    )
    rows = [_row("limiter", "Limited by", profile.limiter, f"{profile.source} counts{': ' + counts if counts else ''}")]
    if terms := terms_text(profile, sol):
        rows.append(_row("terms", "Terms", terms))
    rows += [_row(f"finding_{i}", "Finding", text) for i, text in enumerate(profile.findings, 1)]
    rows += [_hot_row(i, hot, source) for i, hot in enumerate(hottest(profile), 1)]
    return rows


def _hot_row(number: int, hot: HotLine, source: str) -> EvidenceRow:
    """A line of the candidate with its cost and its text, with control characters escaped."""
    shown = plain(hot.text(source))
    return _row(f"hot_line_{number}", f"Line {hot.line}", hot.share, ": ".join(filter(None, (hot.cost, shown))))


def _token_rows(candidate: Candidate) -> list[EvidenceRow]:
    usage = candidate.proposal.usage
    if not usage.total:
        return []
    return [_row("tokens", "Tokens", f"{usage.total:,}", in_words(usage))]
