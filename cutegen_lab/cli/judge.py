"""``cutegen judge PROBLEM.py KERNEL.py|ARTIFACT.json``. Exit 0: passed; 3: any other verdict; 2: bad input.

``--attack`` is in :mod:`cutegen_lab.cli.attack`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cutegen_lab.cli.facts import label_facts, trial_facts
from cutegen_lab.cli.output import Output
from cutegen_lab.cli.progress import Progress
from cutegen_lab.config import Settings
from cutegen_lab.core.artifact import Artifact, CompileFailure, TracedLayout
from cutegen_lab.core.candidate import Config, Proposal, nearest_legal
from cutegen_lab.core.errors import CageError, CutegenError, InputError, SetupError
from cutegen_lab.core.hints import Advice, Hint, did_you_mean
from cutegen_lab.core.plain_text import continued
from cutegen_lab.core.problem import Workload
from cutegen_lab.core.protocols import Cancel, GenerateRequest, Say
from cutegen_lab.core.run import Budget, RunSettings
from cutegen_lab.core.syntax import parse_problem
from cutegen_lab.session import Session
from cutegen_lab.session.factories import make_compiler, make_judge
from cutegen_lab.session.kernels import read_kernel, read_text_file
from cutegen_lab.views.hints import COMMAND_LINE, note_of

OTHER_VERDICT = 3


def execute(arguments: argparse.Namespace, output: Output) -> int:
    if arguments.attack:
        from cutegen_lab.cli import attack
        from cutegen_lab.problems import read_file

        problem = read_file(arguments.problem, inputs_text=arguments.inputs)
        return attack.execute(arguments, problem, read_given(Path(arguments.kernel), arguments.config), output)
    parse_problem(read_text_file(Path(arguments.problem)))  # errors are reported before anything starts
    given = read_given(Path(arguments.kernel), arguments.config)
    settings = RunSettings(
        provider=given.name, arch=given.arch or arguments.arch, gpu=arguments.gpu, device=arguments.device,
        budget=Budget(max_steps=1, max_fixes=0),
    )  # fmt: skip
    with (
        tempfile.TemporaryDirectory() as scratch,  # judging is not stored as a run
        Session.open(
            scratch, compiler=given.compiler, judge=partial(make_judge, arguments.deep, arguments.max_autotune)
        ) as session,
    ):
        session.wake(settings.arch, settings.device)
        from cutegen_lab.problems import read_file  # imports torch while other processes start

        problem = read_file(arguments.problem, inputs_text=arguments.inputs)
        precompiled = given.compiler
        if precompiled is not None:
            precompiled.gpu = session.services.device(settings.device).kind == "cuda"
        with Progress(problem.name) as progress:
            handle = session.run(problem, settings, provider=given, subscriber=progress)
            state, view = handle.state, handle.view()
    trial = state.trials.get("c1")
    if trial is None:
        raise SetupError(f"the kernel could not be judged: {note_of(state, COMMAND_LINE)}", Hint(Advice.DOCTOR))
    from cutegen_lab.views.text import evidence_table

    output.line(evidence_table(view))
    output.line()
    if precompiled is not None and precompiled.unverified:
        output.line(continued(f"machine code and PTX of the artifact were not compared ({precompiled.unverified})"))
    output.line(continued(f"verdict: {trial.verdict.value}" + (f" ({trial.reason})" if trial.reason else "")))
    output.result({**trial_facts(trial), **label_facts(problem), "kernel": arguments.kernel})
    return 0 if trial.verdict.passed else OTHER_VERDICT


@dataclass
class FixedSource:
    """A provider that proposes the file to judge. ``compiler``: for an artifact, returns its builds."""

    name: str
    source: str
    config: Config
    arch: str = ""
    compiler: Precompiled | None = None

    def propose(self, request: GenerateRequest, say: Say, cancel: Cancel) -> Proposal:
        return Proposal(self.source, "as given", config=self.config)


@dataclass
class Precompiled:
    """A compiler that compiles nothing: it checks that an artifact has the builds for the problem, and that its machine
    code is what its PTX assembles to. ``unverified``: why the machine code could not be checked; an error unless a GPU
    (``gpu``) judges it."""

    artifact: Artifact
    gpu: bool = False
    unverified: str = ""

    def layouts(
        self, source: str, config: Config, workload: Workload, arch: str, cancel: Cancel
    ) -> tuple[TracedLayout, ...] | CompileFailure:
        raise InputError("an artifact has no source text from which to trace layouts", "Give the .py file.")

    def compile(
        self, source: str, config: Config, workloads: Sequence[Workload], arch: str, say: Say, cancel: Cancel
    ) -> Artifact | CompileFailure:
        for workload in workloads:
            if workload.derived and workload.name in self.artifact.unserved:
                continue
            build = self.artifact.builds.get(workload.name)
            if build is None or build.signature != workload.signature:
                has = ", ".join(f"{n}: {b.signature}" for n, b in self.artifact.builds.items()) or "none"
                raise InputError(
                    f"the artifact has no build of workload {workload.name} ({workload.signature}); it has {has}",
                    "Compile the kernel for this problem and device.",
                )
        say("assembling its PTX again")
        try:
            with make_compiler(Settings.from_environment()) as compiler:
                return compiler.verified(self.artifact, cancel)
        except (SetupError, CageError, ModuleNotFoundError) as error:
            if not self.gpu:
                raise
            self.unverified = str(error)
            return self.artifact


def read_given(path: Path, config: str | None) -> FixedSource:
    """Reads the file to judge. Raises InputError for a file that cannot be read or is neither a kernel nor an artifact,
    and for a config that is not a JSON object or not in the kernel's domain."""
    text = read_text_file(path)
    if path.suffix == ".json":
        artifact = _artifact(path, text)
        return FixedSource("artifact", "", artifact.config, artifact.arch, Precompiled(artifact))
    source, carried = read_kernel(text)
    from cutegen_lab.compile import gate  # an artifact can be judged without a compiler

    if any(found.code == gate.NO_LAUNCH for found in gate.check(source)):
        raise InputError(
            f"{path} is no kernel: it has no function launch()",
            "Define @cute.jit def launch(inputs..., outputs..., stream, ...) at its top level.",
        )
    return FixedSource("file", source, carried if config is None else _in_domain(source, _config(config)))


def _artifact(path: Path, text: str) -> Artifact:
    try:
        data = json.loads(text)
        if not isinstance(data, dict):
            raise ValueError("not an object")
        return Artifact.from_dict(data)
    except CutegenError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        detail = f"{type(error).__name__}: {error}"
        raise InputError(f"{path} is not an artifact: {detail}", "Give a .json file that cutegen wrote.") from None


def _in_domain(source: str, config: Config) -> Config:
    """Returns ``config`` if the kernel's TUNABLE allows it; a TUNABLE that is not a literal is checked in the cage.
    Raises InputError."""
    from cutegen_lab.tuning.space import read_tunables

    try:
        domains = read_tunables(source).domains
    except InputError:
        return config
    if not domains:
        return config
    for name, value in config.items():
        if name not in domains:
            raise InputError(
                f"--config sets {name}, which the kernel's TUNABLE does not name",
                did_you_mean(name, domains) or f"It names {', '.join(domains)}.",
            )
        if value not in domains[name]:
            legal = ", ".join(map(str, domains[name]))
            raise InputError(
                f"--config sets {name} to {value}; the kernel's TUNABLE has {legal}",
                nearest_legal(value, domains[name]) or "Choose one of them.",
            )
    return config


def _config(text: str) -> Config:
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"--config is not JSON: {error}", """Write --config '{"threads": 256}'.""") from None
    if not isinstance(config, dict) or not all(isinstance(v, int | float | bool | str) for v in config.values()):
        raise InputError(f"--config is not an object of plain values: {text}", """Write '{"threads": 256}'.""")
    return config
