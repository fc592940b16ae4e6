"""What the judge judges on a GPU, compiled where the DSL is, so that a GPU machine needs torch alone.

    python -m benchmarks.judge.judge_cases timed FOLDER  (needs the DSL; no GPU; about a minute)
    python -m benchmarks.judge.judge_cases corpus FOLDER [--only cheats|honest]   (needs the DSL; no GPU)

Each case is ``FOLDER/NAME.json``: the problem's text and inputs, and the artifact with one build for each workload.
``timed`` has templates at several sizes and hand-written kernels of ``tests/devices``, for ``judge_on_gpu``. ``corpus``
has each kernel of ``tests/cheats`` that compiles and each of ``tests/honest``, with the verdicts that are right. A
cheat that does not compile was caught already; the last line counts them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from benchmarks.harness import command_line, compiled, default_kernel, for_each, required, say, write_json
from cutegen_lab.compile import CageCompiler, Limits
from cutegen_lab.core.artifact import Artifact
from cutegen_lab.problems import read_text
from tests.cheats import corpus as cheats
from tests.devices import kernels
from tests.honest import corpus as honest

LIMITS = Limits(cpu_seconds=10)  # one cheat computes for ever while it is imported
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
    """``expect``: the verdicts that are right. ``open_reason``: why the emulator's judge accepts it today, where it
    should not."""

    name: str
    problem: str
    inputs: str
    expect: tuple[str, ...] = ("passed",)
    open_reason: str = ""


def cheating() -> Iterator[tuple[Case, str]]:
    """(case, text) of every cheat."""
    for found in cheats.corpus():
        expect = tuple(verdict.value for verdict in found.expect)
        name = f"cheat-{found.name.replace('@', '-')}"
        yield Case(name, found.problem, "", expect, found.open_reason), found.source


def passing() -> Iterator[tuple[Case, str]]:
    for found in honest.corpus():
        yield Case(f"honest-{found.name}", found.problem, found.inputs), found.source


def corpus(folder: Path, *, only: Literal["cheats", "honest"] | None = None) -> None:
    def write(entry: tuple[Case, str], compiler: CageCompiler) -> bool:
        """Whether there was an artifact to write. Raises SystemExit for an honest kernel that does not compile."""
        case, source = entry
        problem = read_text(case.problem, name=case.name, inputs_text=case.inputs)
        built = compiled(compiler, source, {}, (*problem.check_workloads, *problem.workloads))
        caught = not isinstance(built, Artifact) and "passed" not in case.expect and built.verdict.value in case.expect
        if not caught:
            store(folder, case, required(case.name, built))
        return not caught

    entries = [*(cheating() if only != "honest" else ()), *(passing() if only != "cheats" else ())]
    written = for_each(entries, folder, write, LIMITS)
    print(f"{sum(written)} artifacts in {folder}; {written.count(False)} cheats were caught before there was one")


def timed(folder: Path) -> None:
    def write(case: Case, compiler: CageCompiler) -> None:
        problem = read_text(case.problem, name=case.name, inputs_text=case.inputs)
        if case.name in kernels.BODIES:  # they know one shape: they are judged on the problem's own alone
            built = compiled(compiler, kernels.source(case.name), {}, problem.workloads)
        else:
            built = compiled(compiler, *default_kernel(problem), (*problem.check_workloads, *problem.workloads))
        artifact = required(case.name, built)
        store(folder, case, artifact)
        say(f"{case.name}: {sum(len(b.cubin) for b in artifact.builds.values()):,} bytes of cubins")

    shapes = [(kind, shape) for kind in SIZES for shape in SIZES[kind]]
    by_hand = [Case(name, *kernels.problem(name)) for name in kernels.BODIES]
    for_each([*(sized(kind, shape) for kind, shape in shapes), *by_hand], folder, write)


def sized(kind: str, shape: str) -> Case:
    row = shape.split(",")[-1]
    inputs = {
        "softmax": f"x: bf16[{shape}]", "rmsnorm": f"x: bf16[{shape}], w: bf16[{row}]",
        "add": f"a: f32[{shape}], b: f32[{shape}]",
    }[kind]  # fmt: skip
    return Case(f"{kind}-{shape.replace(',', 'x')}", REFERENCES[kind], inputs)


def store(folder: Path, case: Case, artifact: Artifact) -> None:
    write_json(folder / f"{case.name}.json", asdict(case), artifact=artifact.to_dict())


if __name__ == "__main__":
    command_line(timed, corpus)
