"""A candidate's builds, inside the cage: imports it, compiles it for one workload after another, records its launches,
and answers with plain data.

Builds of one candidate share a process, because most of a small kernel's compile time is common to them: starting the
process, importing the candidate, rewriting its functions. This loses no isolation: all of them run the same candidate.
"""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import inspect
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from cutegen_lab.compile import dsl, isolate, record
from cutegen_lab.compile.changes import Changes, Snapshot
from cutegen_lab.compile.explain import explain
from cutegen_lab.compile.limits import Limits
from cutegen_lab.compile.lookups import guarded
from cutegen_lab.compile.wire import ANSWER, PART, PHASE, SEPARATOR, WORKLOAD, write_frame
from cutegen_lab.core import ptx_text
from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.core.roofline import target_gpu
from cutegen_lab.core.syntax import parse
from cutegen_lab.core.verdict import Verdict

CANDIDATE_FILE = "/candidate.py"
_MOST_NAMED = 4  # maximum number of changed names in a message


class ContractError(Exception):
    """The candidate breaks the contract; the message says how."""


class RuledOutError(ContractError):
    """The candidate's own constraints refuse the config."""


@dataclass(frozen=True)
class Answer:
    """A child's answer."""

    message: dict[str, Any]
    """The JSON part."""
    parts: tuple[bytes, ...] = ()
    """Larger parts, sent as raw bytes."""

    def write(self, reply: int) -> None:
        """Writes the parts, then the message, to the pipe ``reply``."""
        for part in self.parts:
            write_frame(reply, PART, part)
        write_frame(reply, ANSWER, self.message)


def run(job: Mapping[str, Any], reply: int, status: int, changes: Changes) -> None:
    """Runs a job. ``changes`` returns the names of everything that differs from the state before the candidate was
    imported.

    Reports the isolation of this process on ``status``, then closes ``status``. Writes to ``reply`` the number, steps
    and answer of each workload, or the single answer of a job that assembles PTX.
    """
    scratch = job["scratch"]
    limits = Limits(**job["limits"])
    os.environ["HOME"] = os.environ["TMPDIR"] = tempfile.tempdir = scratch
    tempfile.TemporaryFile = partial(tempfile.NamedTemporaryFile, delete=False)  # type: ignore[assignment]
    os.chdir(scratch)
    readable = [*_python_paths(), str(Path(job["standin"]).parent)]
    count = len(job.get("workloads", ()))
    had = isolate.restrict(limits, readable, scratch, builds=count, own_user="user-ns" in job["isolation"])
    refused = count and not job["allow_weak"] and isolate.missing_walls([*job["isolation"], *had])
    os.write(status, f"isolation {','.join(had)}\n{'refused' * bool(refused)}\n".encode())
    os.close(status)
    if refused:
        return
    if "ptx" in job:
        _answered(lambda: _assembled(job), job, limits).write(reply)
    if count and _imports_torch(job["source"]):
        importlib.import_module("cutlass.torch")
        changes = Snapshot().changes  # torch replaces functions of Python's own modules when it is imported
    for number in range(count):
        os.write(1, SEPARATOR)
        isolate.allow_cpu(limits.cpu_seconds)
        write_frame(reply, WORKLOAD, number)
        _answered(partial(_build, job, number, reply, changes), job, limits).write(reply)


def _imports_torch(source: str) -> bool:
    """Whether a candidate imports ``cutlass.torch``, as NVIDIA's examples do for their host code."""
    try:
        nodes = [*ast.walk(parse(source))]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False  # the error is reported when the text is imported
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    names = {f"{node.module}.{alias.name}" for node in froms for alias in node.names}
    return "cutlass.torch" in plain | names | {node.module for node in froms}


def _answered(work: Callable[[], Answer], job: Mapping[str, Any], limits: Limits) -> Answer:
    started = time.perf_counter()
    try:
        answer = work()
        return Answer({**answer.message, "seconds": time.perf_counter() - started}, answer.parts)
    except ContractError as error:
        return _failure(Verdict.CONTRACT, str(error), [], ruled_out=isinstance(error, RuledOutError))
    except MemoryError:
        return _failure(Verdict.COMPILE_LIMIT, f"memory: over {limits.memory_bytes >> 20} MiB", [])
    except (Exception, RecursionError) as error:
        found = explain(error, CANDIDATE_FILE, job.get("source", ""))
        return _failure(Verdict.COMPILE_ERROR, f"{found['code']}: {found['message']}"[:500], [found])


def _failure(verdict: Verdict, reason: str, diagnostics: list[dict[str, Any]], ruled_out: bool = False) -> Answer:
    failed = {"verdict": verdict.value, "reason": reason, "diagnostics": diagnostics, "ruled_out": ruled_out}
    return Answer({"failed": failed})


def _assembled(job: Mapping[str, Any]) -> Answer:
    """Cubins assembled from the PTX of other children; this process never runs the candidate."""
    return Answer({}, tuple(dsl.assemble(ptx, job["arch"]) for ptx in job["ptx"]))


def _build(job: Mapping[str, Any], number: int, reply: int, changes: Changes) -> Answer:
    w = job["workloads"][number]
    inputs, outputs = (tuple(map(TensorSpec.from_dict, w[kind])) for kind in ("inputs", "outputs"))
    workload = Workload(w["name"], inputs, outputs, w["why"])
    config = dict(job["config"])
    write_frame(reply, PHASE, "import")
    module = sys.modules.get("candidate")
    if module is None:
        module = _load(job["source"])
        _check_unchanged(changes)
    gpu = target_gpu(job["arch"])
    settings = _settings(module, config)
    constraints = getattr(module, "constraints", None)
    if constraints is not None and not constraints(settings, workload, gpu):
        raise RuledOutError(f"constraints() rules out {settings} for workload {workload.describe()}")
    workspace = _workspace(module, workload, settings)
    tensors = (*workload.tensors, *workspace)
    _check_signature(module, workload, workspace)
    write_frame(reply, PHASE, "compile")
    layouts: dict[tuple[int, str], None] = {}
    if "layouts" in job:  # only layouts are wanted, no build
        dsl.collect_layouts(layouts)
        dsl.compile_launch(module, tensors, config, job["arch"], job["scratch"])
        return Answer({"layouts": list(layouts)})
    compiled = dsl.compile_launch(module, tensors, config, job["arch"], job["scratch"])
    try:
        ptx, cubin = dsl.ptx_and_cubin(compiled)
        ptx_text.code(ptx)
    except ValueError as error:
        raise ContractError(str(error)) from None
    write_frame(reply, PHASE, "record")
    recordings = record.record(compiled, ptx, tensors, gpu, job["standin"], reply)
    _check_unchanged(changes)
    logs = tuple(r["log"].encode() for r in recordings)
    plain = [{"bases": r["bases"], "error": r["error"]} for r in recordings]
    message = {"workspace": [t.to_dict() for t in workspace], "recordings": plain}
    return Answer(message, (cubin, ptx.encode(), *logs))


def _check_unchanged(changes: Changes) -> None:
    changed = list(dict.fromkeys(changes()))
    if changed:
        several = f"{', '.join(changed[:_MOST_NAMED])}{' and more' if len(changed) > _MOST_NAMED else ''}"
        raise ContractError(
            f"the candidate changes {several}: it may change nothing that it imports. Define a function or a class of "
            "your own, and use that"
        )


class _CandidateLoader(importlib.machinery.SourceFileLoader):
    """Loads the candidate from its text under the same path on every machine, since debug information contains the
    path."""

    def __init__(self, source: str) -> None:
        super().__init__("candidate", CANDIDATE_FILE)
        self._source = source

    def get_data(self, path: str) -> bytes:
        return self._source.encode()

    def get_source(self, fullname: str) -> str:
        """The text as the gate read it, whatever encoding it declares: the DSL reads the source of functions again."""
        return self._source

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self._source, CANDIDATE_FILE)


def _load(source: str) -> ModuleType:
    loader = _CandidateLoader(source)
    spec = importlib.util.spec_from_file_location("candidate", CANDIDATE_FILE, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["candidate"] = module
    vars(module).update(guarded("candidate"))
    try:
        loader.exec_module(module)
    except BaseException:
        del sys.modules["candidate"]
        raise
    if not callable(getattr(module, "launch", None)):
        raise ContractError("the module defines no launch(); the contract requires one @cute.jit function of that name")
    return module


def _parameters(module: ModuleType) -> tuple[list[str], list[inspect.Parameter]]:
    """(names of launch()'s parameters before ``stream``, the parameters after it). Raises ContractError without
    ``stream``."""
    parameters = list(inspect.signature(module.launch).parameters.values())
    names = [p.name for p in parameters]
    if "stream" not in names:
        raise ContractError(f"launch({', '.join(names)}) has no parameter named stream after its tensors")
    at = names.index("stream")
    return names[:at], parameters[at + 1 :]


def _settings(module: ModuleType, config: Mapping[str, Any]) -> dict[str, Any]:
    """Every tunable's value: ``config`` over launch()'s defaults. Raises ContractError for an unknown name."""
    _, tunables = _parameters(module)
    names = [p.name for p in tunables]
    for p in tunables:
        if p.default is inspect.Parameter.empty and p.name not in config:
            raise ContractError(f"launch()'s tunable {p.name!r} has no default and the config does not set it")
    unknown = sorted(set(config) - set(names))
    if unknown:
        raise ContractError(f"the config sets {', '.join(unknown)}; launch() has {', '.join(names) or 'no tunables'}")
    domains = getattr(module, "TUNABLE", {})
    if not isinstance(domains, dict) or set(domains) - set(names):
        odd = sorted(set(domains) - set(names)) if isinstance(domains, dict) else type(domains).__name__
        raise ContractError(
            f"TUNABLE names {odd}, which are not among launch()'s tunables: {', '.join(names) or 'none'}"
        )
    return {p.name: config.get(p.name, p.default) for p in tunables}


def _workspace(module: ModuleType, workload: Workload, settings: dict[str, Any]) -> tuple[TensorSpec, ...]:
    declare = getattr(module, "workspace", None)
    if declare is None:
        return ()
    declared = declare(workload, settings)
    try:
        made = tuple(
            TensorSpec(str(name), DType.parse(getattr(dtype, "value", dtype)), tuple(int(size) for size in shape))
            for name, dtype, shape in declared
        )
        if odd := [spec.name for spec in made if not (spec.name.isidentifier() and spec.name.isascii())]:
            raise ValueError(f"{odd[0][:40]!r} is not a name")
        return made
    except (TypeError, ValueError, AttributeError) as error:
        raise ContractError(
            f"workspace() must return [(name, dtype, shape), ...] such as [('partial', 'f32', (128,))]; it returned "
            f"{str(declared)[:200]} ({error})"
        ) from None


def _check_signature(module: ModuleType, workload: Workload, workspace: tuple[TensorSpec, ...]) -> None:
    names, _ = _parameters(module)
    wanted = (*workload.tensors, *workspace)
    if len(names) != len(wanted):
        raise ContractError(
            f"launch({', '.join(names)}, stream) takes {len(names)} tensors; this problem passes {len(wanted)}: "
            f"{len(workload.inputs)} inputs, {len(workload.outputs)} outputs, {len(workspace)} workspace "
            f"({'; '.join(map(str, wanted))})"
        )


def _python_paths() -> list[str]:
    """Paths that the interpreter and the compiler read: their own and system libraries, nothing of the user's."""
    own = {sys.prefix, sys.base_prefix, sys.exec_prefix, *(p for p in sys.path if p and Path(p).is_dir())}
    package = str(Path(__file__).resolve().parents[1])
    own = {p for p in own if not package.startswith(p + os.sep)} | {package}
    return [*sorted(own), "/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/dev/urandom", "/sys/devices/system/cpu"]
