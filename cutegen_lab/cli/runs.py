"""``cutegen runs list|show|import|resume|rename|trash|restore``: runs in the store."""

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
from cutegen_lab.core.run import RunSummary
from cutegen_lab.session import Session
from cutegen_lab.session.handle import unknown_candidate
from cutegen_lab.session.outputs import may_write


def execute(arguments: argparse.Namespace, output: Output) -> int:
    with Session.open(arguments.workdir) as session:
        verbs = {"list": _list, "show": _show, "import": _import, "resume": _resume, "rename": _rename,
                 "trash": _trash, "restore": _restore}  # fmt: skip
        return verbs[arguments.verb](session, arguments, output)


def _list(session: Session, arguments: argparse.Namespace, output: Output) -> int:
    from cutegen_lab.views.listing import run_row
    from cutegen_lab.views.text import columns
    from cutegen_lab.views.units import plural

    listed, trashed = session.runs(), _trashed(session)
    runs = trashed if arguments.trash else listed
    rows = [
        (r.run_id, run_row(r, "").title, r.outcome.replace("_", " ") or r.step.value, str(r.candidates),
         str(r.accepted), time.strftime("%Y-%m-%d %H:%M", time.localtime(r.updated_at)))
        for r in runs
    ]  # fmt: skip
    head = ("run", "title", "state", "candidates", "accepted", "updated")
    none = "no run is in the trash" if arguments.trash else "no runs yet"
    output.line("\n".join(columns([head, *rows]) if rows else [none]))
    if trashed and not arguments.trash:
        output.line(f"{plural(len(trashed), 'run')} in the trash: `cutegen runs --trash`")
    output.result({"runs": [{**asdict(r), "step": r.step.value} for r in runs], "trashed": len(trashed)})
    return 0


def _trashed(session: Session) -> list[RunSummary]:
    return [run for run in session.services.store.runs() if run.trashed_at is not None]


def _rename(session: Session, arguments: argparse.Namespace, output: Output) -> int:
    run_id = session.find(arguments.run_id).run_id
    session.services.store.rename(run_id, arguments.title)
    (title,) = (run.title for run in session.services.store.runs() if run.run_id == run_id)
    output.line(f"{run_id}: {f'the title is “{title}”' if title else 'no title of its own'}")
    output.result({"run_id": run_id, "title": title})
    return 0


def _trash(session: Session, arguments: argparse.Namespace, output: Output) -> int:
    run_ids = [session.find(name).run_id for name in dict.fromkeys(arguments.run_ids)]  # before any is moved
    for run_id in run_ids:
        session.services.store.trash(run_id)
    output.line(f"in the trash: {', '.join(run_ids)}; `cutegen runs restore {' '.join(run_ids)}` undoes this")
    output.result({"run_ids": run_ids, "trashed": True})
    return 0


def _restore(session: Session, arguments: argparse.Namespace, output: Output) -> int:
    there = {run.run_id for run in _trashed(session)}
    if missing := [run_id for run_id in arguments.run_ids if run_id not in there]:
        raise InputError(
            f"{', '.join(missing)}: not the id of a run in the trash", "`cutegen runs --trash` lists these."
        )
    for run_id in arguments.run_ids:
        session.services.store.trash(run_id, away=False)
    output.line(f"taken out of the trash: {', '.join(arguments.run_ids)}")
    output.result({"run_ids": arguments.run_ids, "trashed": False})
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
