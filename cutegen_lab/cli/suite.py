"""``cutegen suite PATH…``, ``suite compare A.json B.json``, ``suite policies SUITE.json``. Exit status 0: each problem
has a correct kernel (compare, policies: always); 1: not all have; 2: bad input; 130: Ctrl-C."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cutegen_lab.cli.output import Output, note
from cutegen_lab.cli.progress import SuiteProgress
from cutegen_lab.cli.run import run_settings
from cutegen_lab.config import DEFAULT_MODEL, Settings
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.hashing import sha256
from cutegen_lab.core.roofline import target_gpu
from cutegen_lab.core.run import RunSettings
from cutegen_lab.session import Session
from cutegen_lab.session.factories import make_judge, on_gpu
from cutegen_lab.suite.files import ProblemFile, problem_files
from cutegen_lab.suite.named import folder_of

if TYPE_CHECKING:
    from cutegen_lab.suite.record import Row, Suite

COMPARE, POLICIES = Path("compare"), Path("policies")
_NO_OPTIONS = ("budget", "price", "auto", "drafts", "guidance", "max_fixes")  # settings that are not options here


def execute(arguments: argparse.Namespace, output: Output) -> int:
    if arguments.paths[0] == COMPARE:
        return _compare(arguments.paths[1:], output)
    if arguments.paths[0] == POLICIES:
        return _policies(arguments.paths[1:], arguments, output)
    checkout = Settings.from_environment().kernelbench
    files = problem_files([folder_of(path, checkout) for path in arguments.paths], arguments.level)
    settings = _settings(arguments)
    judge = partial(make_judge, max_autotune=arguments.max_autotune)
    with Session.open(arguments.workdir, judge=judge) as session:
        session.wake(settings.arch, settings.device)
        name = _name(arguments.paths, arguments.level, settings)
        folder = arguments.out or session.services.workdir / "suites" / name
        return _run(session, settings, arguments, files, name, folder, output)


def _settings(arguments: argparse.Namespace) -> RunSettings:
    """Settings of every run. Model and device are named: another model's runs are not this suite's, and runs on the
    emulator are not continued on a GPU."""
    settings = run_settings(arguments, auto=True)
    if settings.provider == "openai" and not settings.model:
        settings = replace(settings, model=Settings.from_environment().model or DEFAULT_MODEL)
    if settings.device != "auto":
        return settings
    return replace(settings, device="cuda" if on_gpu("auto") else "emulator")


def _run(
    session: Session, settings: RunSettings, arguments: argparse.Namespace, files: Sequence[ProblemFile], name: str,
    folder: Path, output: Output,
) -> int:  # fmt: skip
    from cutegen_lab.suite.purse import Purse
    from cutegen_lab.suite.record import Suite
    from cutegen_lab.suite.runner import SuiteRun, usual_jobs
    from cutegen_lab.suite.table import line_of
    from cutegen_lab.suite.written import may_write_suite, write_suite

    may_write_suite(folder)
    purse = Purse(arguments.suite_tokens, arguments.suite_cost, settings.price)
    gpu = target_gpu(settings.arch, settings.gpu).name
    options = {**_options(settings), "suite_tokens": arguments.suite_tokens, "suite_cost": arguments.suite_cost}
    suite = Suite(name=name, gpu=gpu, settings=options, total=len(files))
    jobs = arguments.jobs or usual_jobs(settings)
    places = {file: place for place, file in enumerate(files)}
    rows: dict[int, Row] = {}
    with SuiteProgress(name, len(files)) as progress:
        run = SuiteRun(session, settings, lambda file: progress.of(file.name), purse)
        run.check(jobs)
        try:
            for file, row in run.rows(files, lambda file: progress.begun(file.name), jobs):
                rows[places[file]] = row
                suite = suite.model_copy(update={"rows": tuple(rows[place] for place in sorted(rows))})
                write_suite(folder, suite)
                progress.ended(row.name, line_of(row))
        except KeyboardInterrupt:
            progress.pause()
            _report(suite, folder, output)
            note("cutegen: the same command continues")
            raise
    return _report(suite, folder, output)


def _report(suite: Suite, folder: Path, output: Output) -> int:
    """Prints the table. Returns 0 if each problem has a correct kernel, otherwise 1."""
    from cutegen_lab.suite.aggregates import summary
    from cutegen_lab.suite.written import JSON, PAGE, suite_text, summary_facts

    found = summary(suite.rows)
    output.line(suite_text(suite))
    output.line(f"written: {folder / JSON}, {folder / PAGE}" if suite.rows else "no problem has ended yet")
    reason = f"{found.correct} of {suite.total} problems have a correct kernel"
    output.result(
        {"reason": reason, **suite.model_dump(mode="json"), "summary": summary_facts(found), "folder": str(folder)}
    )
    return 0 if found.correct == suite.total else 1


def _compare(paths: Sequence[Path], output: Output) -> int:
    from cutegen_lab.suite.compare import compared
    from cutegen_lab.suite.record import read_suite
    from cutegen_lab.suite.written import comparison_facts, comparison_text

    if len(paths) != 2:
        raise InputError(f"compare takes two files, not {len(paths)}", "Write `cutegen suite compare A.json B.json`.")
    found = compared(*map(read_suite, paths))
    first, second = map(str, paths)
    output.line(comparison_text(found, (first, second)))
    output.result({"reason": "compared", **comparison_facts(found)})
    return 0


def _policies(paths: Sequence[Path], arguments: argparse.Namespace, output: Output) -> int:
    from cutegen_lab.suite.courses import course_of
    from cutegen_lab.suite.policies import replays, replays_text
    from cutegen_lab.suite.record import read_suite

    if len(paths) != 1:
        raise InputError(f"policies takes one file, not {len(paths)}", "Write `cutegen suite policies SUITE.json`.")
    rows = [row for row in read_suite(paths[0]).rows if row.run_id]
    if not rows:
        raise InputError(f"{paths[0]} has no run", "Name the suite.json of a suite whose problems were run.")
    with Session.open(arguments.workdir) as session:
        courses = [course_of(row.name, session.attach(row.run_id).history) for row in rows]
    found = replays(courses)
    output.line(replays_text(found))
    facts = [asdict(each) for each in found]
    output.result({"reason": f"{len(found)} policies replayed", "problems": len(courses), "policies": facts})
    return 0


def _options(settings: RunSettings) -> dict[str, str | int | float | None]:
    """The options of the runs, by name."""
    found = {**asdict(settings), **asdict(settings.budget)}
    return {name: value for name, value in found.items() if name not in _NO_OPTIONS}


def _name(paths: Sequence[Path], levels: Sequence[int], settings: RunSettings) -> str:
    """Name of a suite: its first path's, the levels that were chosen, and a hash of all paths and options:
    ``KernelBench-level1-2-1f0c``."""
    stem = re.sub(r"[^\w.-]+", "-", paths[0].resolve().stem).strip("-.") or "suite"
    chosen = f"-level{'-'.join(map(str, levels))}" if levels else ""
    return f"{stem}{chosen}-{sha256(repr([list(map(Path.resolve, paths)), settings]))[:4]}"
