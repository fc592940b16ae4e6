"""``cutegen run PROBLEM.py``. Exit status 0: an accepted, correct kernel; 1: none; 2: bad input; 130: Ctrl-C."""

from __future__ import annotations

import argparse
import shlex
import sys
from functools import partial
from pathlib import Path

from cutegen_lab.cli.facts import proven, run_facts
from cutegen_lab.cli.output import Output, note
from cutegen_lab.cli.progress import Progress
from cutegen_lab.cli.review import review
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.gains import TIE
from cutegen_lab.core.run import Budget, Guidance, RunSettings
from cutegen_lab.core.syntax import parse_problem
from cutegen_lab.session import RunHandle, Session
from cutegen_lab.session.factories import make_judge, make_price
from cutegen_lab.session.kernels import located, read_text_file
from cutegen_lab.session.outputs import may_write


def execute(arguments: argparse.Namespace, output: Output) -> int:
    out = Path(arguments.out) if arguments.out else None
    if out:
        may_write(out, arguments.problem)
    parse_problem(read_text_file(Path(arguments.problem)))  # errors are reported before anything starts
    settings = run_settings(arguments, auto=arguments.auto)
    judge = partial(make_judge, max_autotune=arguments.max_autotune)
    with Session.open(arguments.workdir, judge=judge) as session:
        session.wake(arguments.arch, arguments.device)
        from cutegen_lab.problems import read_file  # imports torch while other processes start

        problem = read_file(arguments.problem, inputs_text=arguments.inputs, name=arguments.name)
        if not arguments.auto:
            session.check(problem, settings)  # errors in the options are reported first
            require_terminal("--auto")
        with Progress(problem.name) as progress:
            handle = session.start(problem, settings, subscriber=progress)
            return see_through(handle, progress, output, out, general=arguments.general)


def run_settings(arguments: argparse.Namespace, *, auto: bool) -> RunSettings:
    """The settings that the options of ``run`` give. ``auto``: whether nobody is asked."""
    return RunSettings(
        provider=arguments.provider,
        model=arguments.model,
        arch=arguments.arch,
        gpu=arguments.gpu,
        device=arguments.device,
        auto=auto,
        language=arguments.language,
        strategy=arguments.strategy,
        drafts=arguments.drafts,
        guidance=Guidance(not arguments.no_bounds, arguments.profiling, not arguments.no_memory),
        budget=Budget(
            max_steps=arguments.max_steps,
            max_seconds=arguments.max_seconds,
            max_tokens=arguments.max_tokens,
            max_usd=arguments.max_cost,
            patience=arguments.patience,
            gain=TIE if arguments.patience else 0.0,
            within=arguments.within,
        ),
        price=make_price(arguments.price, arguments.provider, arguments.model),
    )


def see_through(
    handle: RunHandle, progress: Progress, output: Output, out: Path | None, *, general: bool = False
) -> int:  # fmt: skip
    """Drives a run to its end, with a review whenever it waits for one, and reports its evidence. Ctrl-C leaves it
    resumable. The kernel is written to ``out`` for its config only or, with ``general``, with its parameters."""
    try:
        state = handle.wait()
        while not state.finished:
            progress.pause()
            review(handle)
            progress.spin()
            state = handle.wait()
    except (KeyboardInterrupt, EOFError):
        handle.stop()
        handle.close()
        progress.pause()
        words = ["cutegen", "runs", "resume", handle.run_id, *(["--out", str(out)] if out else [])]
        note(f"cutegen: continue with `{shlex.join(words)}`")
        if accepted := handle.state.incumbent_id:
            note(f"cutegen: accepted so far: {handle.kernel_path(accepted)}")
        raise KeyboardInterrupt from None
    progress.pause()
    good = proven(state)
    kept = None
    if state.incumbent_id is not None:
        exported = partial(handle.export, general=general, say=told)
        kept = exported(out) if out else handle.kernel_path(state.incumbent_id)
    report(handle, output, kept, general=general or out is None)
    return 0 if good else 1


def told(line: str) -> None:
    """Prints one line about a written file to stderr."""
    note(f"cutegen: {line}")


def report(handle: RunHandle, output: Output, kernel: Path | None, *, general: bool) -> None:
    """Prints summary and evidence of a run. ``general``: line numbers are those of the text with parameters, which
    ``kernel`` contains."""
    from cutegen_lab.views.text import evidence_table, summary

    view = handle.view()
    output.line(summary(view))
    output.line()
    output.line(evidence_table(view, general=general))
    if kernel is not None:
        output.line()
        output.line(f"kernel: {located(kernel)}")
    output.result({**run_facts(handle.state), "kernel": str(kernel) if kernel else None})


def require_terminal(option: str) -> None:
    """Raises InputError without a terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InputError(
            "review needs a terminal in which to ask you",
            f"Add {option}: the run then accepts what passed and is faster, without asking.",
        )
