"""What ``benchmarks.judge_on_gpu`` judges, compiled where the DSL is, so that a GPU machine needs torch alone.

    python -m benchmarks.judge_cases FOLDER     (needs the DSL; no GPU; about a minute)

Writes ``FOLDER/NAME.json`` for each case: the problem's text and inputs, and the artifact with one build a workload.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cutegen_lab.compile import CageCompiler
from cutegen_lab.core.artifact import Artifact
from cutegen_lab.problems import read_text
from cutegen_lab.templates.frontend.reader import read
from cutegen_lab.templates.registry import family_for
from tests.devices import kernels

ARCH = "sm_90a"
REFERENCES = {
    "softmax": "def reference(x):\n    return torch.softmax(x, dim=-1)\n",
    "rmsnorm": "def reference(x, w):\n    return F.rms_norm(x, (x.shape[-1],), w, 1e-6)\n",
    "add": "def reference(a, b):\n    return a + b\n",
}
SIZES = {
    "softmax": ("1024,1024", "4096,4096", "32768,1024", "32768,8192"),
    "rmsnorm": ("1024,1024", "4096,4096", "32768,8192"),
    "add": ("65536", "4194304", "134217728"),
}


@dataclass(frozen=True)
class Case:
    name: str
    problem: str
    inputs: str
    source: str
    config: dict[str, object]


def cases() -> Iterator[Case]:
    for kind, shapes in SIZES.items():
        for shape in shapes:
            yield _from_template(kind, shape)
    for name in kernels.BODIES:
        yield Case(name, *kernels.problem(name), kernels.source(name), {})


def _from_template(kind: str, shape: str) -> Case:
    row = shape.split(",")[-1]
    inputs = {
        "softmax": f"x: bf16[{shape}]", "rmsnorm": f"x: bf16[{shape}], w: bf16[{row}]",
        "add": f"a: f32[{shape}], b: f32[{shape}]",
    }[kind]  # fmt: skip
    problem = read_text(REFERENCES[kind], inputs_text=inputs)
    graph = read(problem)
    family = family_for(graph)
    config = family.default_config(graph, problem.workload)
    name = f"{kind}-{shape.replace(',', 'x')}"
    return Case(name, REFERENCES[kind], inputs, family.write(problem, graph, config), dict(config))


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    cancel = threading.Event()
    with CageCompiler(folder / "cache") as compiler:
        for case in cases():
            problem = read_text(case.problem, name=case.name, inputs_text=case.inputs)
            # The hand-written kernels know one shape: they are judged on the problem's own alone.
            checks = problem.check_workloads if "-" in case.name else ()
            workloads = (*checks, *problem.workloads)
            built = compiler.compile(case.source, case.config, workloads, ARCH, lambda line: None, cancel)  # type: ignore[arg-type]
            if not isinstance(built, Artifact):
                raise SystemExit(f"{case.name}: {built.verdict.value}, {built.reason}")
            data = {"name": case.name, "problem": case.problem, "inputs": case.inputs, "artifact": built.to_dict()}
            (folder / f"{case.name}.json").write_text(json.dumps(data))
            print(f"{case.name}: {sum(len(b.cubin) for b in built.builds.values()):,} bytes of cubins", flush=True)


if __name__ == "__main__":
    main()
