"""What the scripts of this folder share: their command line, records, compiling, runs under ncu, seconds.

A script ends with ``command_line(a, b)``, where ``a`` and ``b`` are functions. A record is JSON whose head is
:func:`conditions`; many rows of one kind are a table, a row a line (``cutegen_lab.bench.table``). Only torch and the
standard library are needed, and the DSL by what compiles.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin

from cutegen_lab.bench.record import about
from cutegen_lab.bench.table import read_table, write_table
from cutegen_lab.core.trial import Timing
from cutegen_lab.core.verdict import Fault

if TYPE_CHECKING:
    from cutegen_lab.compile import CageCompiler, Limits
    from cutegen_lab.core.artifact import Artifact, CompileFailure
    from cutegen_lab.core.candidate import Config
    from cutegen_lab.core.problem import Problem, Workload

__all__ = ["read_table", "write_table"]
ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks/results"
ARCH = "sm_90a"
THREADS = 2  # that compile
Row = Mapping[str, Any]
Case = TypeVar("Case")
Done = TypeVar("Done")
say = partial(print, flush=True)

# --- the command line ------------------------------------------------------------------------------------------------


def command_line(*commands: Callable[..., int | None]) -> None:
    """Calls the only command, or the one that the first word names, and exits with what it returns.

    Positional parameters of a command are arguments, those behind ``*`` are options: a bool is a switch, a Literal is a
    choice, a tuple takes several words, of those in its default if that has any. ``--help`` prints the script's
    docstring.
    """
    script = sys.modules["__main__"]
    parser = argparse.ArgumentParser(f"python -m {script.__spec__.name}" if script.__spec__ else None)
    parser.description, parser.formatter_class = script.__doc__, argparse.RawDescriptionHelpFormatter
    verbs = parser.add_subparsers(required=True, metavar="COMMAND") if len(commands) > 1 else None
    for command in commands:
        said = inspect.getdoc(command) or ""
        name, line = command.__name__, said.partition("\n")[0].replace("%", "%%")
        of = verbs.add_parser(name, help=line, description=said) if verbs else parser
        of.set_defaults(command=command)
        for parameter in inspect.signature(command, eval_str=True).parameters.values():
            _add(of, parameter)
    given = vars(parser.parse_args())
    command = given.pop("command")
    words: list[Any] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            words += given.pop(name)
        elif parameter.kind is parameter.POSITIONAL_OR_KEYWORD and name in given:
            words.append(given.pop(name))
    sys.exit(command(*words, **given))


def _add(parser: argparse.ArgumentParser, parameter: inspect.Parameter) -> None:
    options = _of_type(parameter.annotation)
    if parameter.kind is parameter.KEYWORD_ONLY:
        default = parameter.default
        if isinstance(default, tuple):
            options |= {"choices": default or None, "metavar": "NAME"}
        shown = f"default: {' '.join(default) if isinstance(default, tuple) else default}" if default else None
        name = f"--{parameter.name.replace('_', '-')}"
        parser.add_argument(name, **options, default=argparse.SUPPRESS, help=shown)  # the command's own default holds
    elif parameter.kind is parameter.VAR_POSITIONAL:
        parser.add_argument(parameter.name, nargs="*", **options)
    elif parameter.default is parameter.empty:
        parser.add_argument(parameter.name, **options)
    else:
        parser.add_argument(parameter.name, nargs="?", **options, default=parameter.default)


def _of_type(annotation: Any) -> dict[str, Any]:
    if annotation is bool:
        return {"action": "store_true"}
    kind, inner = get_origin(annotation), get_args(annotation)
    if kind in (Union, UnionType):  # or None
        return _of_type(inner[0])
    if kind is tuple:
        return {**_of_type(inner[0]), "action": "extend", "nargs": "+"}
    return {"choices": inner} if kind is Literal else {"type": annotation}


# --- records ---------------------------------------------------------------------------------------------------------


def conditions(device: str | None = None) -> dict[str, Any]:
    """The head of a record: date, versions, the driver, ``device`` (the first GPU if None) and this machine's cores."""
    if device is None:
        import torch

        device = torch.cuda.get_device_name()
    return {**about(device), "cores": len(os.sched_getaffinity(0))}


def head_of(record: Row) -> dict[str, Any]:
    """The conditions under which ``record`` was measured."""
    return {key: record[key] for key in ("date", "python", "torch", "device", "driver", "cores") if key in record}


def read_json(path: Path) -> Any:
    return json.loads(path.read_text())


def write_json(path: Path, head: Row, **facts: Any) -> None:
    path.write_text(json.dumps({**head, **facts}, indent=1) + "\n")


def write_configs(path: Path, head: Row, groups: Mapping[str, Row]) -> None:
    """``groups`` by name: what holds for a group, and its ``rows``, each with a ``config`` of the same parameters. The
    table has the parameters once for a group, and their values in a row."""
    told, rows = {}, []
    for name, group in groups.items():
        parameters = list(group["rows"][0]["config"])
        told[name] = {**{key: value for key, value in group.items() if key != "rows"}, "parameters": parameters}
        for row in group["rows"]:
            rows.append({"group": name, **row, "config": [row["config"][p] for p in parameters]})
    write_table(path, {**head, "groups": told}, rows)


def read_configs(path: Path) -> dict[str, dict[str, Any]]:
    """The groups, as ``write_configs`` took them."""
    head, rows = read_table(path)
    groups: dict[str, dict[str, Any]] = {name: {**group, "rows": []} for name, group in head["groups"].items()}
    for row in rows:
        group = groups[row.pop("group")]
        group["rows"].append({**row, "config": dict(zip(group["parameters"], row["config"], strict=True))})
    return groups


# --- compiling -------------------------------------------------------------------------------------------------------


def timing_facts(timing: Timing | Fault) -> dict[str, Any]:
    """A kernel's time beside its baselines, or why it has none, for a row of a record."""
    if isinstance(timing, Fault):
        return {"time": str(timing)}
    return {
        "time_us": timing.time_us, "iqr_us": timing.iqr_us, "baselines_us": dict(timing.baselines),
        "method": timing.method,
    }  # fmt: skip


def quiet(line: str) -> None:
    """Progress that is not shown."""


def compiled(
    compiler: CageCompiler, source: str, config: Config, workloads: Sequence[Workload], *, gated: bool = True
) -> Artifact | CompileFailure:
    """``gated``: only what a candidate may import."""
    from cutegen_lab.compile import CompileJob

    if gated:
        return compiler.compile(source, config, workloads, ARCH, quiet, threading.Event())
    return compiler.compile_ungated(CompileJob(source, config, tuple(workloads), ARCH), quiet)


def required(name: str, built: Artifact | CompileFailure) -> Artifact:
    """``built``. Raises SystemExit with the reason where it is a failure."""
    from cutegen_lab.core.artifact import CompileFailure

    if isinstance(built, CompileFailure):
        raise SystemExit(f"{name}: {built.verdict.value}, {built.reason}")
    return built


def default_kernel(problem: Problem) -> tuple[str, Config]:
    """(text, config) of the template that serves ``problem``."""
    from cutegen_lab.templates.recognise import template_for

    template = template_for(problem, ARCH)
    config = dict(template.default_config())
    return template.write(config), config


def for_each(
    cases: Iterable[Case], folder: Path, work: Callable[[Case, CageCompiler], Done], limits: Limits | None = None
) -> list[Done]:
    """Makes ``folder``, and does ``work`` on each case, two at a time, with a compiler whose cache is there."""
    from cutegen_lab.compile import CageCompiler

    folder.mkdir(parents=True, exist_ok=True)
    with CageCompiler(folder / "cache", limits=limits) as compiler, ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(lambda case: work(case, compiler), cases))


# --- measuring -------------------------------------------------------------------------------------------------------


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def best(work: Callable[[], object], times: int = 3) -> float:
    return min(seconds(work) for _ in range(times))


def ncu_path() -> str:
    """Raises SystemExit where there is no ncu."""
    from cutegen_lab.devices.cuda import ncu

    if path := ncu.find():
        return path
    raise SystemExit("ncu is not installed")


def under_ncu(
    path: str, metrics: Sequence[str], words: Sequence[str], *, sections: Sequence[str] = (),
    limit_s: float | None = None,
) -> tuple[int, list[tuple[str, dict[str, float]]]]:  # fmt: skip
    """Runs ``python -m WORDS`` under ncu: (its exit status, (kernel, metrics) of each launch). ``sections`` are ncu's,
    whose metrics come too. Raises subprocess.TimeoutExpired after ``limit_s``."""
    from cutegen_lab.devices.cuda import ncu

    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch, "report.csv")
        tool, *options = ncu.command(path, str(report), metrics)
        more = [word for section in sections for word in ("--section", section)]
        done = subprocess.run(  # noqa: S603 - a script of this folder
            [tool, *more, *options, sys.executable, "-m", *words],
            stdout=subprocess.DEVNULL, check=False, timeout=limit_s,
        )  # fmt: skip
        rows = ncu.read_report(report.read_text(errors="replace")) if report.exists() else []
    return done.returncode, rows
