"""``cutegen judge PROBLEM.py KERNEL.py --attack``: tests whether the judge catches attacks on this problem.

Exit status 0: the kernel passes and every attack on it is caught; 3: otherwise; 2: bad input.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cutegen_lab.attacks import defence_of
from cutegen_lab.cli.output import Output, note
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.problem import Problem
from cutegen_lab.session import Session, factories

if TYPE_CHECKING:
    from cutegen_lab.cli.judge import FixedSource
    from cutegen_lab.session.attack import Outcome

NOT_ALL_CAUGHT = 3
IMPORT_SECONDS = 10.0  # an attack may loop for ever at import; compiling a kernel takes a second


def execute(arguments: argparse.Namespace, problem: Problem, given: FixedSource, output: Output) -> int:
    """Raises InputError for an artifact: attacks need the kernel's text."""
    if not given.source:
        raise InputError("--attack needs the kernel's text, not an artifact", "Give the .py file.")
    from cutegen_lab.config import Settings
    from cutegen_lab.session.attack import AttackHarness

    cancel = threading.Event()
    compiler = factories.make_compiler(Settings.from_environment(), IMPORT_SECONDS)
    with tempfile.TemporaryDirectory() as scratch, Session.open(scratch, compiler=compiler) as session:
        services = session.services
        device = services.device(arguments.device)
        workloads = problem.built_for(services.workloads(problem, device))
        attacked = AttackHarness(
            problem, workloads, given.config, arguments.arch, services.compiler(), services.judge(), device, cancel
        )
        try:
            verdict, reason = attacked.try_honest(given.source)
            output.line(f"the kernel itself: {verdict.value} ({reason})")
            outcomes: list[Outcome] = []
            if verdict.passed:
                for outcome in attacked.try_all(given.source):
                    outcomes.append(outcome)
                    output.line(_line(outcome))
                    if output.json:  # with --json, stdout stays empty until the end, minutes later
                        note(f"attack {len(outcomes)}: {_line(outcome)}")
        finally:
            cancel.set()
    holds = verdict.passed and all(outcome.holds for outcome in outcomes)
    summary = _summary(outcomes) if verdict.passed else "an attack on a kernel that does not pass would prove nothing"
    output.line()
    output.line(summary)
    output.result({
        "verdict": verdict.value, "reason": reason, "device": device.name, "kernel": arguments.kernel,
        "all_caught": holds, "summary": summary, "attacks": [_facts(outcome) for outcome in outcomes],
    })  # fmt: skip
    return 0 if holds else NOT_ALL_CAUGHT


def _line(outcome: Outcome) -> str:
    attack = outcome.attack
    head = f"{outcome.status:14} {attack.name:36}"
    if outcome.verdict is None or outcome.verdict.passed:
        return f"{head} {attack.open_reason or outcome.reason}"
    return f"{head} {outcome.verdict.value}: {defence_of(outcome.verdict)}"


def _summary(outcomes: Sequence[Outcome]) -> str:
    counts = Counter(outcome.status for outcome in outcomes)
    return f"{len(outcomes)} attacks: " + ", ".join(f"{count} {status}" for status, count in counts.most_common())


def _facts(outcome: Outcome) -> dict[str, Any]:
    attack = outcome.attack
    return {
        "name": attack.name,
        "class": attack.kind,
        "what": attack.what,
        "status": outcome.status,
        "verdict": outcome.verdict.value if outcome.verdict else None,
        "expected": [verdict.value for verdict in attack.verdicts],
        "caught_by": defence_of(outcome.verdict) if outcome.verdict else "",
        "should_be_caught_by": attack.defence,
        "reason": outcome.reason,
        "known_gap": attack.open_reason,
    }
