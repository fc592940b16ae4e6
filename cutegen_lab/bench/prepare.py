"""Compiles a benchmark's kernels into a folder: a JSON file for each case. Needs the DSL, no GPU."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from cutegen_lab.bench.case import Case
from cutegen_lab.bench.prepared import Prepared
from cutegen_lab.bench.quack import QUACK
from cutegen_lab.compile import CageCompiler, CompileJob
from cutegen_lab.core.artifact import Artifact
from cutegen_lab.core.candidate import Config
from cutegen_lab.core.errors import ProviderError
from cutegen_lab.core.protocols import Say
from cutegen_lab.templates.recognise import template_for

_AT_ONCE = 8  # cases prepared at a time; the compiler limits its own builds


def prepare(cases: Sequence[Case], folder: Path, compiler: CageCompiler, arch: str, configs: int, say: Say) -> None:
    """Writes ``folder/NAME.json`` for each case that has none, with up to ``configs`` configs: the default, then those
    that differ from it by one step in one parameter."""
    folder.mkdir(parents=True, exist_ok=True)

    def written(case: Case) -> str:
        path = folder / f"{case.name}.json"
        if path.exists():
            return ""
        prepared = _prepared(case, compiler, arch, configs, say)
        path.write_text(json.dumps(prepared.to_dict()))
        return prepared.why_not or f"{len(prepared.builds)} configs of {prepared.family}"

    with ThreadPoolExecutor(_AT_ONCE) as threads:
        for number, (case, done) in enumerate(zip(cases, threads.map(written, cases), strict=True), 1):
            if done:
                say(f"{number}/{len(cases)} {case.name}: {done}")


def _prepared(case: Case, compiler: CageCompiler, arch: str, configs: int, say: Say) -> Prepared:
    workloads = (case.problem.workload,)
    prepared = Prepared(case.name)
    try:
        template = template_for(case.problem, arch)
    except ProviderError as error:
        prepared.why_not = error.message
    else:
        prepared.family = template.name
        default = dict(template.default_config())
        near = (config for config in _neighbours(default, template.domains) if template.feasible(config))
        chosen = [default, *islice(near, configs - 1)]
        jobs = [CompileJob(template.write(config), config, workloads, arch) for config in chosen]
        for config, built in zip(chosen, compiler.compile_many(jobs, lambda _: None), strict=True):
            if isinstance(built, Artifact):
                prepared.configs.append(config)
                prepared.builds.append(built.builds[case.problem.workload.name])
            elif config is default:
                prepared.why_not = f"the default config does not compile: {built.reason}"
    if case.peer and importlib.util.find_spec(QUACK):
        peer = compiler.compile_ungated(CompileJob(case.peer, {}, workloads, arch), lambda _: None)
        if isinstance(peer, Artifact):
            prepared.peer = peer.builds[case.problem.workload.name]
        else:
            say(f"{case.name}: {QUACK}'s kernel does not compile: {peer.reason}")
    return prepared


def _neighbours(default: Config, domains: Any) -> Iterator[Config]:
    for name, values in domains.items():
        for below, above in pairwise(values):
            if default[name] in (below, above):
                yield {**default, name: above if default[name] == below else below}
