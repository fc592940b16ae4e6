"""``cutegen runs list|show|import|resume``: runs in the store."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
from pathlib import Path

from cutegen_lab.cli.facts import run_facts
from cutegen_lab.cli.output import Output
from cutegen_lab.cli.progress import Progress
from cutegen_lab.cli.run import require_terminal, see_through, told
from cutegen_lab.core.errors import InputError
from cutegen_lab.session import Session
from cutegen_lab.session.handle import unknown_candidate
from cutegen_lab.session.outputs import may_write


def execute(arguments: argparse.Namespace, output: Output) -> int:
    with Session.open(arguments.workdir) as session:
        return {"list": _list, "show": _show, "import": _import, "resume": _resume}[arguments.verb](
            session, arguments, output
        )


def _list(session: Session, arguments: argparse.Namespace, output: Output) -> int:
    from cutegen_lab.views.text import columns

    runs = session.runs()
    rows = [
        (r.run_id, r.outcome.replace("_", " ") or r.step.value, str(r.candidates), str(r.accepted),
         time.strftime("%Y-%m-%d %H:%M", time.localtime(r.updated_at)))
        for r in runs
    ]  # fmt: skip
    lines = columns([("run", "state", "candidates", "accepted", "updated"), *rows]) if rows else ["no runs yet"]
    output.line("\n".join(lines))
    output.result({"runs": [{**asdict(r), "step": r.step.value} for r in runs]})
    return 0


def _show(session: Session, arguments: argparse.Namespace, output: Output) -> int:
    from cutegen_lab.views.compare import comparison_text
    from cutegen_lab.views.text import changes_text, evidence_table, pick, summary

    handle, general = session.find(arguments.run_id), arguments.general
    if arguments.ptx and not arguments.compare:
        raise InputError("--ptx needs --compare", "Add --compare c1 c2.")
    if not general:
        handle.specialise(say=told)
    if arguments.compare:
        found = handle.compare(*arguments.compare, general=general)
        output.line(comparison_text(found, arguments.ptx))
        output.result({**run_facts(handle.state), "comparison": found.model_dump(mode="json")})
        return 0
    view = handle.view()
    try:
        candidate = pick(view, arguments.candidate)
    except KeyError:
        raise unknown_candidate(handle.state, repr(arguments.candidate)) from None
    output.line(summary(view))
    if candidate is not None:
        changed = changes_text(candidate, general)
        output.line("\n".join(["", changed, "", evidence_table(view, candidate.id, general)]))
    output.result({**run_facts(handle.state), "view": view.model_dump(mode="json")})
    return 0


def _import(session: Session, arguments: argparse.Namespace, output: Output) -> int:
    from cutegen_lab.views.text import summary

    handle = session.import_run(arguments.file)
    output.line(summary(handle.view()))
    output.result(run_facts(handle.state))
    return 0


def _resume(session: Session, arguments: argparse.Namespace, output: Output) -> int:
    out = Path(arguments.out) if arguments.out else None
    if out:
        may_write(out)
    handle = session.find(arguments.run_id)
    if not handle.state.settings.auto:
        require_terminal("--auto when you start a run")
    with Progress(handle.state.problem.name) as progress:
        handle.subscribe(progress)
        handle.resume()
        return see_through(handle, progress, output, out, general=arguments.general)
