"""Kernels whose counters and predicted times ``benchmarks.counters_on_gpu`` compares with a GPU's.

    python -m benchmarks.counters_cases FOLDER     (needs the DSL; no GPU; a few minutes)

Writes ``FOLDER/NAME.json`` for each: tensors, config and the artifact of one workload. ``counted`` cases are profiled,
``timed`` ones are configs of one family at one shape (their ``group``), whose predicted order is compared.
"""

from __future__ import annotations

import json
import random
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from benchmarks.counters_in_ptx import programs
from cutegen_lab.compile import CageCompiler
from cutegen_lab.core.artifact import Artifact, Build
from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Workload
from cutegen_lab.problems import read_text
from cutegen_lab.templates.reader import read
from cutegen_lab.templates.registry import family_for
from tests.honest import corpus

ARCH, CONFIGS = "sm_90a", 12
GROUPS: Mapping[str, tuple[str, str]] = {  # of timed configs: a reference and its inputs
    "softmax-4096x4096": ("torch.softmax(x, -1)", "x: bf16[4096,4096]"),
    "softmax-32768x1024": ("torch.softmax(x, -1)", "x: bf16[32768,1024]"),
    "softmax-1024x32768": ("torch.softmax(x, -1)", "x: bf16[1024,32768]"),
    "rms_norm-8192x8192": ("F.rms_norm(x, w.shape, w, 1e-6)", "x: bf16[8192,8192], w: bf16[8192]"),
    "row_sum-f32-8192x2048": ("x.sum(-1)", "x: f32[8192,2048]"),
    "column_sum-8192x4096": ("x.sum(0)", "x: f32[8192,4096]"),
    "column_sum-65536x512": ("x.sum(0)", "x: bf16[65536,512]"),
    "column_mean-2048x16384": ("x.mean(0)", "x: bf16[2048,16384]"),
    "gelu-8192x4096": ("F.gelu(x)", "x: bf16[8192,4096]"),
    "add-16M": ("x + y", "x: f32[16777216], y: f32[16777216]"),
    "gate-4096x11008": ("F.silu(x) * y", "x: f16[4096,11008], y: f16[4096,11008]"),
}
GEMMS = {  # kernels of tests/honest at sizes that fill a GPU
    "gemm_tma_wgmma": ("a @ b", "a: bf16[{n},{n}], b: bf16[{n},{n}]", ({"clusters": 66}, {"clusters": 33},
                                                                      {"clusters": 16}, {"clusters": 50})),
    "tensor_core_matmul": ("a @ b.T", "a: bf16[{n},{n}], b: bf16[{n},{n}]", ({},)),
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    name: str
    group: str
    workload: Workload
    source: str
    config: Config
    counted: bool = False
    timed: bool = False


def cases() -> Iterator[Case]:
    for group, (expression, inputs) in GROUPS.items():
        yield from _configs(group, expression, inputs)
    for name, n in product(GEMMS, (1024, 2048)):
        expression, inputs, configs = GEMMS[name]
        problem = read_text(_reference(expression, inputs), inputs_text=inputs.format(n=n))
        source = corpus.honest(name).source
        for number, config in enumerate(configs):
            case = f"{name}-{n}-{number}"
            yield Case(case, f"{name}-{n}", problem.workload, source, config, counted=number == 0, timed=True)
    for honest in corpus.corpus():
        problem = read_text(honest.problem, name=honest.name, inputs_text=honest.inputs)
        yield Case(f"honest-{honest.name}", "honest", problem.workload, honest.source, {}, counted=True)


def _reference(expression: str, inputs: str) -> str:
    arguments = ", ".join(part.split(":")[0].strip() for part in inputs.split("], "))
    return f"def reference({arguments}):\n    return {expression}\n"


def _configs(group: str, expression: str, inputs: str) -> Iterator[Case]:
    """The family's default and a sample of its feasible configs, the same every time."""
    problem = read_text(_reference(expression, inputs), name=group, inputs_text=inputs)
    graph = read(problem)
    family = family_for(graph)
    default = dict(family.default_config(graph, problem.workload))
    every = [dict(zip(family.DOMAINS, values, strict=True)) for values in product(*family.DOMAINS.values())]
    every = [c for c in every if c != default and family.feasible(graph, c)]
    others = random.Random(group).sample(every, min(CONFIGS - 1, len(every)))  # noqa: S311 - the same every time
    chosen = [default, *others]
    for number, config in enumerate(chosen):
        text = family.write(problem, graph, config)
        yield Case(f"{group}-{number}", group, problem.workload, text, config, counted=number < 3, timed=True)


def write(case: Case, folder: Path, compiler: CageCompiler) -> bool:
    """Whether it compiled: some sampled configs want more of a GPU than it has."""
    built = compiler.compile(case.source, case.config, [case.workload], ARCH, lambda line: None, threading.Event())
    if not isinstance(built, Artifact):
        print(f"{case.name}: {built.verdict.value}, {built.reason[:120]}", flush=True)
        return False
    store(folder, case.name, case.group, case.workload, case.config, built.builds[case.workload.name],
          counted=case.counted, timed=case.timed)  # fmt: skip
    return True


def store(
    folder: Path, name: str, group: str, workload: Workload, config: Config, build: Build, *, counted: bool,
    timed: bool, given: Sequence[Sequence[int]] = (),
) -> None:  # fmt: skip
    """``given``: values of the first inputs; the others are drawn."""
    data = {
        "name": name, "group": group, "config": dict(config), "counted": counted, "timed": timed,
        "inputs": [t.to_dict() for t in workload.inputs], "outputs": [t.to_dict() for t in workload.outputs],
        "build": build.to_dict(), "given": [list(values) for values in given],
    }  # fmt: skip
    (folder / f"{name}.json").write_text(json.dumps(data))


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, workload, build, offsets in programs():
        store(folder, f"ptx-{name}", "ptx", workload, {}, build, counted=True, timed=False, given=[list(offsets)])
    with CageCompiler(folder / "cache") as compiler, ThreadPoolExecutor(2) as threads:
        written = list(threads.map(lambda case: write(case, folder, compiler), cases()))
    print(f"{sum(written)} kernels in {folder}; {len(written) - sum(written)} did not compile")


if __name__ == "__main__":
    main()
