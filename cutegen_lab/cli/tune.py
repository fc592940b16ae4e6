"""``cutegen tune PROBLEM.py [KERNEL.py]``. Exit status 0: the fastest config passed the judge; 3: none did; 130:
Ctrl-C."""

from __future__ import annotations

import argparse
import math
import shlex
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from cutegen_lab.cli.judge import OTHER_VERDICT, read_given
from cutegen_lab.cli.main import INTERRUPTED
from cutegen_lab.cli.output import Output, note
from cutegen_lab.cli.run import told
from cutegen_lab.config import Settings
from cutegen_lab.core.candidate import Config
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.plain_text import one_line
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.protocols import Say
from cutegen_lab.core.run import RunSettings
from cutegen_lab.core.syntax import parse_problem
from cutegen_lab.session import Session
from cutegen_lab.session.factories import make_judge, make_provider
from cutegen_lab.session.kernels import for_one_config, read_text_file
from cutegen_lab.session.outputs import may_write, write_out
from cutegen_lab.session.tuned import PlainKernel, Tunable, TuningResult, duration, kernel_text, report
from cutegen_lab.tuning.space import brief


def execute(arguments: argparse.Namespace, output: Output) -> int:
    from cutegen_lab.session.refactor import account, made_tunable
    from cutegen_lab.session.tune import TuneSettings, tune
    from cutegen_lab.tuning.protocols import Limits

    limits = Limits(arguments.budget, math.inf if arguments.max_seconds is None else arguments.max_seconds)
    settings = TuneSettings(limits, arguments.arch, arguments.gpu, arguments.device, arguments.seed)
    if arguments.out:
        may_write(Path(arguments.out), arguments.problem)
    if arguments.simulate:
        return _simulate(arguments, settings, output)
    parse_problem(read_text_file(Path(arguments.problem)))  # errors are reported before anything starts
    stage_one: dict[str, Any] = {}
    judge = partial(make_judge, max_autotune=arguments.max_autotune)
    with Session.open(arguments.workdir, judge=judge) as session:
        session.wake(arguments.arch, arguments.device, predicts=True)
        from cutegen_lab.problems import read_file  # imports torch while other processes start

        problem = read_file(arguments.problem, inputs_text=arguments.inputs)
        say: Say = lambda line: _progress(problem, line)  # noqa: E731
        kernel = _kernel(arguments, problem)
        if isinstance(kernel, PlainKernel):
            provider = _provider(arguments)
            refactored, kernel = made_tunable(session.services, problem, kernel, settings, say, provider=provider)
            for line in account(refactored):
                output.line(line)
            output.line()
            stage_one = {"refactored": asdict(refactored)}
        found = tune(session.services, problem, kernel, settings, say)
        for line in report(problem, found):
            output.line(line)
        if arguments.out and found.best is not None:
            _write(session, problem, found, arguments)
            output.line(f"written to {arguments.out}")
        following = _against_default(found, arguments, output)
    output.result({**_facts(problem, found), **stage_one, "next": following})
    if found.interrupted:
        return INTERRUPTED
    return 0 if found.best is not None else OTHER_VERDICT


def _against_default(found: TuningResult, arguments: argparse.Namespace, output: Output) -> str | None:
    """Prints the default config, its time, how much faster the best is, and the next step, which it returns; None if no
    config passed."""
    gain = found.gain
    if gain is None:
        return None
    default, default_us = found.tunable.space.default, found.rows[0].default_us
    following = _next_step(arguments, found.best if gain.faster else None)
    output.line(f"default: {brief(default)}; {duration(default_us)} {found.kind}")
    output.line(f"the best config {gain.text}")
    output.line(f"next: {following}")
    return following


def _next_step(arguments: argparse.Namespace, faster: Config | None) -> str:
    """How to judge the kernel that was written; without ``--out`` how to get it: by a run that begins with the config
    ``faster`` (None: the default is as fast), or by the same search."""
    if arguments.kernel and not arguments.out:
        return f"the same command with --out {Path(arguments.kernel).stem}_tuned.py, which writes this kernel"
    words = ["judge", arguments.problem, arguments.out] if arguments.out else ["run", arguments.problem]
    if faster and not arguments.out:
        words += ["--provider", f"templates:{','.join(f'{name}={value}' for name, value in faster.items())}"]
    usual = RunSettings()
    defaults = {"inputs": "", "device": usual.device, "arch": usual.arch, "gpu": usual.gpu, "workdir": None}
    given = {name: getattr(arguments, name) for name in defaults}
    options = [word for name, value in given.items() if value != defaults[name] for word in (f"--{name}", value)]
    return shlex.join(["cutegen", *words, *options])


def _write(session: Session, problem: Problem, found: TuningResult, arguments: argparse.Namespace) -> None:
    """Writes the kernel for the best config only or, with ``--general``, with its parameters."""
    assert found.best is not None
    written = session.texts.written(
        problem, found.tunable.source, found.best, arguments.arch, general=arguments.general, say=told
    )
    write_out(Path(arguments.out), kernel_text(problem, found, written), arguments.problem)


def _kernel(arguments: argparse.Namespace, problem: Problem) -> Tunable | PlainKernel:
    from cutegen_lab.session.tune import from_template, from_text

    if arguments.provider and not arguments.refactor:
        raise InputError("--provider is only used by --refactor, which is missing", "Add --refactor, or leave it out.")
    if not arguments.kernel:
        if arguments.refactor:
            raise InputError("--refactor needs a kernel to make a template of", "Add KERNEL.py.")
        return from_template(problem, arguments.arch, arguments.seed)
    given = read_given(Path(arguments.kernel), None)
    if arguments.refactor:
        return PlainKernel(arguments.kernel, given.source)
    if for_one_config(read_text_file(Path(arguments.kernel))):
        raise InputError(
            f"{arguments.kernel} was written for one config only, so there is nothing to search",
            "Write it with --general (run, tune, demo, spec compile, runs export), and search that.",
        )
    return from_text(given.source, given.config, arguments.kernel, arguments.seed)


def _provider(arguments: argparse.Namespace) -> Any:
    """The provider to ask for more parameters; None without --provider."""
    if not arguments.provider:
        return None
    from cutegen_lab.providers.conversation import ConversationProvider

    settings = Settings.from_environment()
    chosen = RunSettings(provider=arguments.provider, model=arguments.model)
    made = make_provider(chosen, settings, Path(arguments.workdir or settings.workdir))
    if not isinstance(made, ConversationProvider):
        raise InputError(
            f"the provider {arguments.provider} cannot be asked for parameters", "Use --provider openai or manual:DIR."
        )
    return made


def _simulate(arguments: argparse.Namespace, settings: Any, output: Output) -> int:
    from cutegen_lab.problems import read_file
    from cutegen_lab.session.simulate import simulate
    from cutegen_lab.session.tune import CACHE

    problem = read_file(arguments.problem, inputs_text=arguments.inputs)
    tunable = _kernel(arguments, problem)
    if isinstance(tunable, PlainKernel):
        raise InputError(
            "--simulate and --refactor cannot be combined: a simulation compiles nothing", "Give one of them."
        )
    home = Path(arguments.workdir) if arguments.workdir else Settings.from_environment().workdir
    found = simulate(home / CACHE, problem, tunable, settings)
    place = found.place
    output.line(f"{problem.name}: simulated on {found.configs} configs {place.kind} on {place.device}; nothing was run")
    output.line(f"evaluations until within 3% of the fastest: {found.near or '-'}; until the fastest: "
                f"{found.fastest or '-'}; in all: {len(found.steps)}")  # fmt: skip
    output.result({
        "reason": "simulated", "kind": place.kind, "device": place.device, "configs": found.configs,
        "near": found.near, "fastest": found.fastest, "best_us": found.best_us,
        "steps": [asdict(step) for step in found.steps],
    })  # fmt: skip
    return 0


def _progress(problem: Problem, line: str) -> None:
    note(one_line(f"{problem.name}: {line}"))


def _facts(problem: Problem, found: Any) -> dict[str, Any]:
    stats = asdict(found.stats)
    stats["in_turns"] = list(stats["in_turns"].values())
    verdict = "passed" if found.best is not None else found.rejected[-1][1].value if found.rejected else None
    return {
        "problem": problem.name, "verdict": verdict, "reason": found.check.reason if found.check else stats["stopped"],
        "kernel": found.tunable.what, "kind": found.kind, "device": found.device, "best": found.best,
        "default": found.tunable.space.default,
        "default_us": found.rows[0].default_us if found.rows else None,
        "time_us": found.timing.time_us if found.timing else None,
        "timing": asdict(found.timing) if found.timing else None, "interrupted": found.interrupted,
        "leading": found.leading and {"config": found.leading[0], "time_us": found.leading[1]},
        "space": {"configs": len(found.tunable.space.configs), "total": found.tunable.space.total,
                  "sampled": found.tunable.space.sampled, "domains": found.tunable.space.domains},
        "search": stats, "prepare_s": stats["prepare_seconds"], "search_s": stats["search_seconds"],
        "gpu_busy": round(found.stats.busy, 3) if found.kind == "measured" else None,
        "cache": str(found.cache), "workloads": [asdict(row) for row in found.rows],
        "ranked": [{"config": c, "time_us": t} for c, t in found.ranked],
        "rejected": [{"config": c, "verdict": v.value, "reason": r} for c, v, r in found.rejected],
    }  # fmt: skip
