"""A kernel's text specialised for one config: written only if it is proven to compile to the same machine code."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import ParamSpec, Protocol, TypeVar

from cutegen_lab.core.artifact import Artifact, Build, CompileFailure, LaunchPlan
from cutegen_lab.core.candidate import Config
from cutegen_lab.core.errors import CageError, SetupError
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.core.protocols import Compiler
from cutegen_lab.session.same_lines import same_lines

P = ParamSpec("P")
T = TypeVar("T")

_AT_ONCE = 4  # probes submitted at a time; the compiler limits its own builds
_MOST_REPORTS = 20  # maximum number of reports per workload


@dataclass(frozen=True)
class Written:
    """The text of a kernel file."""

    source: str
    """The text."""
    config: Config
    """The kernel's config."""
    folded: Config | None = None
    """Config folded into the text; None for the general text, which takes ``config``."""
    lines: Mapping[int, int] = field(default_factory=dict)
    """Line of the general text → line of the specialised text that compiles to the same instructions."""
    note: str = ""
    """Why the general text is written although the specialised one was requested; empty otherwise."""

    @property
    def note_line(self) -> str:
        """``note`` as a line for people; empty if there is none."""
        return f"written with its parameters, not specialised for its config: {self.note}" if self.note else ""


class Call(Protocol):
    """Calls ``function``, a module-level function, in this process or in another."""

    def __call__(self, function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T: ...


def _here(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    return function(*arguments, **named)


@dataclass(frozen=True)
class _Task:
    compiler: Compiler
    arch: str
    stop: threading.Event
    call: Call

    def compiled(self, source: str, config: Config, workloads: Sequence[Workload]) -> Artifact | CompileFailure:
        return self.compiler.compile(source, config, workloads, self.arch, lambda _: None, self.stop)


def specialised(
    compiler: Compiler, problem: Problem, source: str, config: Config, arch: str, stop: threading.Event | None = None,
    call: Call = _here,
) -> Written:  # fmt: skip
    """``source`` at ``config`` without its parameters and without branches that no workload of ``problem`` takes.

    Compiled for every workload, derived ones included; accepted only if PTX and launches equal those of ``source``
    except for names. If that fails, or nothing can be compiled here, the general text is returned with a note. Ctrl-C
    ends the compilation, and so does ``stop``. Folding takes seconds of Python; ``call`` may run it in another process.
    """
    general = Written(source, config)
    try:
        return _specialised(_Task(compiler, arch, stop or threading.Event(), call), problem, general)
    except (CageError, SetupError) as error:
        return replace(general, note=f"nothing could be compiled here ({error.message})")


def _specialised(task: _Task, problem: Problem, general: Written) -> Written:
    from cutegen_lab.templates.emit.folding import folded_text, folded_values
    from cutegen_lab.templates.emit.refusal import CannotSpecialise

    try:
        values = task.call(folded_values, general.source, general.config)
        if not values:
            return general
        old = task.compiled(general.source, general.config, problem.check_workloads + problem.workloads)
        if isinstance(old, CompileFailure):
            return replace(general, note=f"it does not compile: {old.reason}")
        workloads = [w for w in problem.check_workloads + problem.workloads if w.name in old.builds]
        reports = _reports(task, general, workloads)
        text = task.call(folded_text, general.source, general.config, reports, rules=bool(old.unserved))
    except CannotSpecialise as error:
        return replace(general, note=str(error))
    new = task.compiled(text, {}, problem.check_workloads + problem.workloads)
    if isinstance(new, CompileFailure):
        return replace(general, note=f"the specialised text does not compile: {new.reason}")
    if apart := [name for name, build in old.builds.items() if not _same(build, new.builds.get(name))]:
        return replace(general, note=f"the specialised text compiles to other PTX for {', '.join(apart)}")
    pairs = [(old.builds[name], new.builds[name]) for name in old.builds]
    return Written(text, {}, folded=values, lines=same_lines(general.source, text, pairs))


def _reports(task: _Task, general: Written, workloads: Sequence[Workload]) -> list[list[str]]:
    """Reports of the module's probes in each workload. Raises CannotSpecialise if there are none, or too many."""
    from cutegen_lab.templates.emit.folding import next_probe
    from cutegen_lab.templates.emit.observe import REPORT
    from cutegen_lab.templates.emit.refusal import CannotSpecialise

    found = list[list[str]]()
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="probe") as threads:
        while (probe := task.call(next_probe, general.source, found)) is not None:
            if len(found) == _MOST_REPORTS:
                raise CannotSpecialise("it has too many branches")

            def report(workload: Workload, text: str = probe) -> str | None:
                built = task.compiled(text, general.config, [workload])
                told = built.diagnostics if isinstance(built, CompileFailure) else ()
                return next((d.message for d in told if d.code == REPORT), None)

            try:
                told = list(threads.map(report, workloads))
            except BaseException:
                task.stop.set()
                raise
            reports = [each for each in told if each is not None]
            if len(reports) < len(workloads):
                raise CannotSpecialise("it cannot be determined which of its branches are taken")
            found.append(reports)
    return found


def _same(old: Build, new: Build | None) -> bool:
    """Whether PTX is equal, and launches have equal parameters."""
    from cutegen_lab.tuning.refactor.template import same_machine_code

    return new is not None and same_machine_code(old, new) and _unnamed(old.plan) == _unnamed(new.plan)


def _unnamed(plan: LaunchPlan) -> LaunchPlan:
    """The launch plan without kernels' names, which contain parameters."""
    return replace(plan, launches=tuple(replace(launch, kernel="") for launch in plan.launches))
