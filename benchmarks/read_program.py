"""Seconds to read a reference for the templates, beside PyTorch's own decomposition of every composite operator, and
to build a kernel for ten workloads in one process, beside one process each.

    python -m benchmarks.read_program
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from unittest import mock

from benchmarks.harness import command_line, compiled, default_kernel, required, seconds
from cutegen_lab.compile import CageCompiler
from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.problems import read_text
from cutegen_lab.templates.frontend import program
from cutegen_lab.templates.frontend.reader import read
from cutegen_lab.templates.frontend.steps import IN_STEPS

REFERENCE = "import torch\n\n\ndef reference(x):\n    return torch.softmax(x, -1)\n"
ROUNDS = 5


def main() -> None:
    problem = read_text(REFERENCE, name="softmax", inputs_text="x: f32[64,512]")
    ours, whole = [], []
    read(problem)
    for _ in range(ROUNDS):  # in turns: the machine's mood is the same for both
        ours.append(seconds(lambda: read(problem)))
        with mock.patch.object(program, "decomposed", lambda exported: exported.run_decompositions(IN_STEPS)):
            whole.append(seconds(lambda: read(problem)))
    told("a softmax read", ours, "by PyTorch's own run_decompositions", whole)

    text, _ = default_kernel(problem)
    workloads = [
        Workload(f"w{n}", (TensorSpec.parse(f"x: f32[64,{n}]"),), (TensorSpec.parse(f"y: f32[64,{n}]"),))
        for n in range(512, 522)
    ]
    together, apart = [], []
    with tempfile.TemporaryDirectory() as folder, CageCompiler(Path(folder), workers=1) as compiler:

        def build(some: list[Workload], number: int) -> None:
            required("softmax", compiled(compiler, f"{text}\n# {number}\n", {}, some))

        build(workloads[:1], -1)
        for number in range(ROUNDS):
            together.append(seconds(lambda: build(workloads, 2 * number)))  # noqa: B023 - called at once
            apart.append(seconds(lambda: [build([w], 2 * number + 1) for w in workloads]))  # noqa: B023
    told("ten workloads built together", together, "one by one", apart)


def told(what: str, ours: list[float], other: str, theirs: list[float]) -> None:
    mine, other_median = statistics.median(ours), statistics.median(theirs)
    print(f"{what}: {mine:.2f} s; {other}: {other_median:.2f} s, {other_median / mine:.1f}x")


if __name__ == "__main__":
    command_line(main)
