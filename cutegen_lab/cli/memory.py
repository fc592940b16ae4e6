"""``cutegen memory``: what changes of kernels did in the runs of the store, and how well models foresaw it. Exit status
0."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict

from cutegen_lab.cli.output import Output
from cutegen_lab.core.facts import FactGroup, KnownFact, grouped
from cutegen_lab.core.idea_results import Expectation, trust
from cutegen_lab.session import Session


def execute(arguments: argparse.Namespace, output: Output) -> int:
    from cutegen_lab.views.text import columns

    with Session.open(arguments.workdir) as session:
        known = session.memory.facts()
        facts = [
            each for each in known if arguments.work_class in ("", each.work_class) and arguments.gpu in ("", each.gpu)
        ]
        expected = session.memory.expectations()
    places = sorted({(each.work_class, each.gpu) for each in facts})
    for place in places:
        output.line(f"{place[0]}, {place[1]}")
        groups = grouped([each for each in facts if (each.work_class, each.gpu) == place])
        for line in columns([(_change(each), str(len(each.facts)), each.claim) for each in groups]):
            output.line(f"  {line}")
        output.line()
    if not known:
        output.line("no finished run of this store has changed a kernel yet")
    elif not facts:
        listed = ", ".join(sorted({f"{each.work_class} on {each.gpu}" for each in known}))
        output.line(f"no change of a kernel fits; there are changes of: {listed}")
    if expected:
        output.line("what models expected of their changes")
        rows: list[tuple[str, ...]] = [("model", "changes", "at least half came", "share that came, median")]
        rows += [(model, str(len(each)), _held(each), f"{trust(each):.0%}") for model, each in expected.items()]
        for line in columns(rows):
            output.line(f"  {line}")
    output.result(
        {
            "reason": f"{len(facts)} facts",
            "facts": [_fact(each) for each in facts],
            "models": {model: [asdict(each) for each in found] for model, found in expected.items()},
        }
    )
    return 0


def _change(group: FactGroup) -> str:
    if group.change is None:
        return group.facts[0].fact.verdict.replace("_", " ")
    return f"{100 * group.change:+.3g}%"


def _held(found: Sequence[Expectation]) -> str:
    return f"{sum(each.held for each in found)} of {len(found)}"


def _fact(known: KnownFact) -> dict[str, object]:
    rest = {name: value for name, value in asdict(known).items() if name != "fact"}
    return {**asdict(known.fact), **rest}
