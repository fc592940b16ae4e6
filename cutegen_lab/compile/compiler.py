"""``CageCompiler``: passes a candidate through gate, cache and cage, and assembles the artifact."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from cutegen_lab.compile import dsl, gate, special
from cutegen_lab.compile.cache import BuildCache
from cutegen_lab.compile.child import CANDIDATE_FILE
from cutegen_lab.compile.limits import Limits
from cutegen_lab.compile.lines import source_lines
from cutegen_lab.compile.lint import lint
from cutegen_lab.compile.outcome import read_assembly, read_ending, read_traced
from cutegen_lab.compile.plan import PlanError, build_plan
from cutegen_lab.compile.pool import Pool
from cutegen_lab.compile.ptx import entries
from cutegen_lab.compile.reassemble import batches, objection
from cutegen_lab.compile.remarks import remark_notes, stack_use
from cutegen_lab.compile.reply import Compiled, Failed
from cutegen_lab.compile.resources import read_resources
from cutegen_lab.compile.standin import standin_library
from cutegen_lab.compile.state import module_variables, print_format
from cutegen_lab.core import ptx_text
from cutegen_lab.core.artifact import Artifact, Build, CompileFailure, SourceLine, TracedLayout
from cutegen_lab.core.candidate import Config
from cutegen_lab.core.errors import InputError, SetupError
from cutegen_lab.core.hashing import sha256
from cutegen_lab.core.problem import SIZES_OF_THE_JUDGE, TensorSpec, Workload
from cutegen_lab.core.protocols import Cancel, Say
from cutegen_lab.core.roofline import target_gpu
from cutegen_lab.core.verdict import Diagnostic, Verdict

_NEVER = threading.Event()
_LINTED = 16  # texts whose findings are cached
_Part = TypeVar("_Part")
_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class CompileJob:
    """One candidate and config for one arch, to be compiled for each workload."""

    source: str
    """Text of the candidate."""
    config: Config
    """Values of tunables; others keep their defaults."""
    workloads: tuple[Workload, ...]
    """Workloads to compile for."""
    arch: str
    """Target architecture."""


@dataclass(frozen=True)
class _Result:
    value: Build | CompileFailure
    isolation: tuple[str, ...]
    key: str = ""  # key in the cache; empty if it came from the cache


class CageCompiler:
    """Compiles candidates in a warm, caged pool; implements :class:`cutegen_lab.core.protocols.Compiler`.

    Thread-safe. ``cache_dir`` holds builds, the stand-in runtime and scratch folders. ``workers`` bounds concurrent
    builds over all callers. ``allow_weak_cage``: run candidates even if this machine cannot isolate them
    (:func:`cutegen_lab.compile.isolate.missing_walls`).
    """

    def __init__(
        self, cache_dir: Path, workers: int = 2, limits: Limits | None = None, allow_weak_cage: bool = False
    ) -> None:
        self._cache_dir = Path(cache_dir).resolve()
        self._limits = limits or Limits()
        self._workers = max(1, workers)
        self._cache = BuildCache(self._cache_dir / "builds")
        self._pool = Pool(self._workers, self._limits, self._cache_dir / "scratch", allow_weak_cage)
        self._dsl_version = ""
        self._linting = threading.Lock()
        self._linted = lru_cache(_LINTED)(self._lint_anew)

    def compile(
        self, source: str, config: Config, workloads: Sequence[Workload], arch: str, say: Say, cancel: Cancel
    ) -> Artifact | CompileFailure:
        """One build for each workload. Raises InputError (unknown arch), SetupError, CageError, Cancelled."""
        return self.compile_many([CompileJob(source, dict(config), tuple(workloads), arch)], say, cancel)[0]

    def compile_many(
        self, jobs: Sequence[CompileJob], say: Say, cancel: Cancel = _NEVER
    ) -> list[Artifact | CompileFailure]:
        """Outcome of every job, in order; builds of all jobs run in parallel. Raises as :meth:`compile`."""
        return self._compile(jobs, say, cancel, gated=True)

    def compile_ungated(self, job: CompileJob, say: Say, cancel: Cancel = _NEVER) -> Artifact | CompileFailure:
        """As :meth:`compile`, without the gate: for tests of the cage alone, and for texts that no candidate wrote."""
        return self._compile([job], say, cancel, gated=False)[0]

    def layouts(
        self, source: str, config: Config, workload: Workload, arch: str, cancel: Cancel = _NEVER
    ) -> tuple[TracedLayout, ...] | CompileFailure:
        """The layouts that a candidate makes for ``workload``, in trace order, without duplicates of one source line.
        Compiles the candidate again. Raises as :meth:`compile`."""
        target_gpu(arch)
        if errors := gate.check(source):
            return _refusal(errors)
        message = _message(CompileJob(source, dict(config), (workload,), arch), [workload])
        ending = self._pool.run({**message, "layouts": True}, arch, self._standin(), cancel).of(0)
        found = read_traced(ending, workload.tensors, self._limits)
        if isinstance(found, Failed):
            return CompileFailure(found.verdict, found.reason, found.diagnostics, tuple(ending.isolation))
        return found

    def verified(self, artifact: Artifact, cancel: Cancel = _NEVER) -> Artifact | CompileFailure:
        """An artifact from a file, checked like every build here: its machine code is what its PTX assembles to,
        without forbidden registers or module variables. Raises CageError, SetupError, Cancelled."""
        builds = {}
        for name, build in artifact.builds.items():
            try:
                prints = self._admitted(build.plan.workspace, build.cubin, build.ptx, build.lines)
            except (PlanError, ptx_text.PtxError, ValueError) as error:
                verdict = error.verdict if isinstance(error, PlanError) else Verdict.CONTRACT
                return CompileFailure(verdict, f"for workload {name!r}: {error}", (), artifact.isolation)
            builds[name] = replace(build, prints=prints)
        for name, found in zip(builds, self._objections(artifact.arch, [*builds.values()], cancel), strict=True):
            if found is not None:
                reason = f"for workload {name!r}: {found.reason}"
                return CompileFailure(found.verdict, reason, (), artifact.isolation)
        return replace(artifact, builds=builds)

    def wake(self, arch: str) -> None:
        """Starts the process from which builds are forked, so that the first build need not wait. Raises CageError,
        SetupError."""
        self._pool.archs(arch, self._standin())

    def isolation_report(self, say: Say = lambda _: None) -> tuple[str, ...]:
        """The isolation that a build gets on this machine, found by starting a build that compiles nothing."""
        say("asking the cage what isolation it has")
        return tuple(self._pool.run({"ptx": []}, "sm_90a", self._standin(), _NEVER).of(0).isolation)

    def close(self) -> None:
        self._pool.close()

    def __enter__(self) -> CageCompiler:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- inside ---------------------------------------------------------------------------------------------------

    def _compile(
        self, jobs: Sequence[CompileJob], say: Say, cancel: Cancel, gated: bool
    ) -> list[Artifact | CompileFailure]:
        for job in jobs:
            target_gpu(job.arch)  # raises InputError for an arch without a known GPU
        refused: dict[int, CompileFailure] = {}
        for index, job in enumerate(jobs):
            errors = gate.check(job.source) if gated else []
            if errors:
                refused[index] = _refusal(errors)
        results = [
            [None if index in refused else self._cached(job, w, say) for w in job.workloads]
            for index, job in enumerate(jobs)
        ]
        parts = [
            (index, part) for index in range(len(jobs)) if index not in refused
            for part in self._parts([at for at, known in enumerate(results[index]) if known is None], len(jobs))
        ]  # fmt: skip

        def build(part: tuple[int, list[int]]) -> None:
            index, chosen = part
            workloads = [jobs[index].workloads[at] for at in chosen]
            for at, result in zip(chosen, self._build(jobs[index], workloads, say, cancel), strict=True):
                results[index][at] = result

        self._in_parallel(build, parts)
        found: list[Artifact | CompileFailure] = []
        for index, job in enumerate(jobs):
            mine = [result for result in results[index] if result is not None]
            if index not in refused:
                mine = self._kept(job.arch, mine, cancel)
            found.append(refused.get(index) or self._artifact(job, list(zip(job.workloads, mine, strict=True))))
        return found

    def _parts(self, workloads: list[int], jobs: int) -> list[list[int]]:
        """One job's workloads, divided among its processes: ``jobs`` jobs share the workers equally, at least one
        process each."""
        processes = min(max(self._workers // jobs, 1), len(workloads))
        return [workloads[first::processes] for first in range(processes)]

    def _kept(self, arch: str, results: list[_Result], cancel: Cancel) -> list[_Result]:
        """Turns new builds into failures if their cubin does not match their PTX; stores all new results in the cache.

        The PTX is assembled again, in a process that never ran the candidate and without comments, as the emulator
        reads it: otherwise the emulator or the assembler might parse an instruction inside a comment.
        """
        new = [r.value for r in results if r.key and isinstance(r.value, Build)]
        objections = dict(zip(map(id, new), self._objections(arch, new, cancel), strict=True))
        for at, result in enumerate(results):
            if why := objections.get(id(result.value)):
                failure = CompileFailure(why.verdict, why.reason, (), result.isolation)
                result = results[at] = replace(result, value=failure)
            if result.key:
                self._cache.put(result.key, result.value, result.isolation)
        return results

    def _objections(self, arch: str, builds: list[Build], cancel: Cancel) -> list[Failed | None]:
        try:
            texts = [ptx_text.read(b.ptx).listing for b in builds]
            parts = [part for some in self._parts([*range(len(builds))], 1) for part in batches(texts, some)]
        except ValueError as error:
            return [Failed(Verdict.COMPILE_LIMIT, f"output: {error}", ())] * len(builds)

        def assembled(part: list[int]) -> list[bytes] | Failed:
            endings = self._pool.run({"ptx": [texts[at] for at in part]}, arch, self._standin(), cancel)
            return read_assembly(endings.of(0), len(part), self._limits)

        cubins: dict[int, bytes] = {}
        for part, found in zip(parts, self._in_parallel(assembled, parts), strict=True):
            if isinstance(found, Failed):
                return [found] * len(builds)
            cubins.update(zip(part, found, strict=True))
        reasons = [objection(build.cubin, cubins[at]) for at, build in enumerate(builds)]
        return [Failed(Verdict.COMPILE_CRASH, reason, ()) if reason else None for reason in reasons]

    def _in_parallel(self, call: Callable[[_Part], _Answer], parts: Sequence[_Part]) -> list[_Answer]:
        """The results of ``call`` for ``parts``, in order; a single part is computed in this thread."""
        if len(parts) < 2:
            return [call(part) for part in parts]
        with ThreadPoolExecutor(self._workers, thread_name_prefix="compile") as threads:
            return list(threads.map(call, parts))

    def _artifact(self, job: CompileJob, results: list[tuple[Workload, _Result]]) -> Artifact | CompileFailure:
        builds: dict[str, Build] = {}
        isolation: tuple[str, ...] = ()
        unserved: list[str] = []
        for workload, result in results:
            if isinstance(result.value, CompileFailure):
                if result.value.ruled_out and workload.derived and len(results) > 1:
                    unserved.append(workload.name)
                    continue
                many = len(results) > 1
                sizes = workload.derived and result.value.verdict in (Verdict.COMPILE_ERROR, Verdict.INVALID_PLAN)
                chosen = f" {workload.describe()}, {SIZES_OF_THE_JUDGE}" if sizes else ""
                where = f"for workload {workload.name!r}{chosen}: " if many else ""
                return replace(result.value, reason=where + result.value.reason, isolation=result.isolation)
            builds[workload.name] = result.value
            # an artifact is only as isolated as its least isolated build
            isolation = tuple(n for n in isolation if n in result.isolation) if len(builds) > 1 else result.isolation
        digest, config = sha256(job.source), dict(job.config)
        return Artifact(digest, config, job.arch, self._version(), builds, isolation, tuple(unserved))

    def _key(self, job: CompileJob, workload: Workload) -> str:
        return BuildCache.key(job.source, job.config, job.arch, self._version(), workload.signature)

    def _cached(self, job: CompileJob, workload: Workload, say: Say) -> _Result | None:
        cached = self._cache.get(self._key(job, workload))
        if cached is None:
            return None
        known_failure = isinstance(cached[0], CompileFailure)
        say(f"{workload.name}: {'known not to compile' if known_failure else 'compiled before'} (from the cache)")
        return _Result(*cached)

    def _build(self, job: CompileJob, workloads: Sequence[Workload], say: Say, cancel: Cancel) -> list[_Result]:
        """One process compiles for all of ``workloads``, one after another."""
        standin = self._standin()
        known = self._pool.archs(job.arch, standin)
        if job.arch not in known:
            raise InputError(f"the DSL cannot compile for {job.arch!r}", f"Use one of: {', '.join(known)}.")

        def begun(number: int) -> None:
            say(f"compiling {workloads[number].name} {workloads[number].signature} for {job.arch}")

        endings = self._pool.run(_message(job, workloads), job.arch, standin, cancel, begun)
        results = []
        for number, workload in enumerate(workloads):
            ending = endings.of(number)
            isolation = tuple(ending.isolation)
            outcome = read_ending(ending, workload.tensors, self._limits)
            value = self._finish(job, workload, outcome, isolation, ending.output)
            if isinstance(value, CompileFailure):
                say(f"{workload.name}: {value.verdict.value}")
            else:
                say(f"compiled {workload.name} in {value.compile_seconds:.2f} s: {len(value.cubin) / 1024:.0f} KB, "
                    f"{len(value.plan.launches)} launch(es)")  # fmt: skip
            results.append(_Result(value, isolation, self._key(job, workload)))
        return results

    def _finish(
        self,
        job: CompileJob,
        workload: Workload,
        outcome: Compiled | Failed,
        isolation: tuple[str, ...],
        output: str,
    ) -> Build | CompileFailure:
        """The build made from checked data, or the failure with the lint's findings."""
        if isinstance(outcome, Failed):
            diagnostics = outcome.diagnostics + self._lint(job)
            return CompileFailure(outcome.verdict, outcome.reason, diagnostics, isolation, outcome.ruled_out)
        try:
            kernels = entries(outcome.ptx)
            tensors = (*workload.tensors, *outcome.workspace)
            plan = build_plan(outcome.recordings, kernels, tensors, outcome.workspace)
            resources = read_resources(outcome.cubin, outcome.ptx, kernels, stack_use(output))
            lines = source_lines(outcome.ptx, CANDIDATE_FILE)
            prints = self._admitted(outcome.workspace, outcome.cubin, outcome.ptx, lines)
            return Build(
                signature=workload.signature,
                arch=job.arch,
                cubin=outcome.cubin,
                ptx=outcome.ptx,
                kernels=resources,
                plan=plan,
                inputs=len(workload.inputs),
                lines=lines,
                notes=self._lint(job) + remark_notes(output),
                compile_seconds=outcome.seconds,
                prints=prints,
            )
        except PlanError as error:
            return CompileFailure(error.verdict, error.reason, self._lint(job), isolation)
        except ptx_text.PtxError as error:
            return CompileFailure(Verdict.CONTRACT, str(error), (), isolation)
        except ValueError as error:
            return CompileFailure(Verdict.COMPILE_CRASH, f"the build's answer is malformed: {error}", (), isolation)

    def _admitted(
        self, workspace: Sequence[TensorSpec], cubin: bytes, ptx: str, lines: Sequence[SourceLine]
    ) -> bool:  # fmt: skip
        """Whether the kernels call printf. Raises PlanError for a workspace that is too large, for module variables,
        and for reads of special registers that are not allowed."""
        declared = sum(w.nbytes for w in workspace)
        if declared > self._limits.workspace_bytes:
            bound = self._limits.workspace_bytes >> 20
            raise PlanError(Verdict.CONTRACT, f"workspace() declares {declared >> 20} MiB, over {bound} MiB")
        variables = module_variables(cubin, ptx)
        if kept := [name for name in variables if not print_format(name)]:
            raise PlanError(
                Verdict.CONTRACT,
                f"the GPU module has variables of its own ({', '.join(kept[:3])}), which outlive a launch: declare "
                "scratch by workspace()",
            )
        if refused := special.objection(ptx, lines):
            raise PlanError(Verdict.CONTRACT, refused)
        return bool(variables)

    def _lint(self, job: CompileJob) -> tuple[Diagnostic, ...]:
        with self._linting:  # a search compiles one text with many configs at the same time
            return self._linted(job.source, job.arch)

    def _lint_anew(self, source: str, arch: str) -> tuple[Diagnostic, ...]:
        return tuple(lint(source, lambda names: self._pool.missing_names(names, arch, self._standin())))

    def _standin(self) -> Path:
        return standin_library(self._cache_dir)

    def _version(self) -> str:
        if not self._dsl_version:
            try:
                self._dsl_version = version(dsl.DISTRIBUTION)
            except PackageNotFoundError:
                raise SetupError(
                    f"{dsl.DISTRIBUTION} is not installed", f"pip install {dsl.DISTRIBUTION}==4.8.1"
                ) from None
        return self._dsl_version


def _message(job: CompileJob, workloads: Sequence[Workload]) -> dict[str, Any]:
    def plain(specs: Sequence[TensorSpec]) -> list[dict[str, Any]]:
        return [spec.to_dict() for spec in specs]

    asked = [{"name": w.name, "inputs": plain(w.inputs), "outputs": plain(w.outputs), "why": w.why} for w in workloads]
    return {"source": job.source, "config": dict(job.config), "workloads": asked}


def _refusal(errors: list[Diagnostic]) -> CompileFailure:
    verdict = Verdict.CONTRACT if all(e.code == gate.NO_LAUNCH for e in errors) else Verdict.REJECTED_SOURCE
    return CompileFailure(verdict, str(errors[0]), tuple(errors))
