"""Kernels whose counters and predicted times ``counters_on_gpu`` compares with a GPU's.

    python -m benchmarks.perfmodel.counters_cases FOLDER   (needs the DSL; no GPU; a few minutes)

Writes ``FOLDER/NAME.json`` for each: tensors, config and the artifact of one workload. ``counted`` cases are profiled,
``timed`` ones are the configs of ``timed_groups``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.harness import ARCH, command_line, compiled, for_each, say, write_json
from benchmarks.perfmodel.counters_in_ptx import programs
from benchmarks.perfmodel.timed_groups import GROUPS, Gemm
from cutegen_lab.compile import CageCompiler
from cutegen_lab.core.artifact import Artifact, Build
from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Workload
from cutegen_lab.problems import read_text
from tests.honest import corpus


@dataclass(frozen=True)
class Case:
    name: str
    group: str
    workload: Workload
    source: str
    config: Config
    counted: bool = False
    timed: bool = False
    held_out: bool = False


def cases() -> Iterator[Case]:
    for group in GROUPS:
        profiled = 1 if isinstance(group, Gemm) else 3
        for number, (workload, text, config) in enumerate(group.kernels()):
            counted = number < profiled and not group.held_out
            yield Case(f"{group.name}-{number}", group.name, workload, text, config, counted, True, group.held_out)
    for honest in corpus.corpus():
        problem = read_text(honest.problem, name=honest.name, inputs_text=honest.inputs)
        yield Case(f"honest-{honest.name}", "honest", problem.workload, honest.source, {}, counted=True)


def write(case: Case, folder: Path, compiler: CageCompiler, *, gated: bool = True) -> bool:
    """Whether it compiled: some sampled configs want more of a GPU than it has. The gate is for candidates: others'
    texts may import what they like."""
    keywords = {name: value for name, value in case.config.items() if not name.isupper()}
    built = compiled(compiler, case.source, keywords, [case.workload], gated=gated)
    if not isinstance(built, Artifact):
        say(f"{case.name} {case.config}: {built.verdict.value}, {built.reason[:200]}")
        return False
    store(folder, case.name, case.group, case.workload, case.config, built.builds[case.workload.name],
          counted=case.counted, timed=case.timed, held_out=case.held_out)  # fmt: skip
    return True


def store(
    folder: Path, name: str, group: str, workload: Workload, config: Config, build: Build, *, counted: bool,
    timed: bool, held_out: bool = False, given: Sequence[Sequence[int]] = (),
) -> None:  # fmt: skip
    """``given``: values of the first inputs; the others are drawn."""
    data = {
        "name": name, "group": group, "config": dict(config), "counted": counted, "timed": timed,
        "held_out": held_out,
        "inputs": [t.to_dict() for t in workload.inputs], "outputs": [t.to_dict() for t in workload.outputs],
        "build": build.to_dict(), "given": [list(values) for values in given],
    }  # fmt: skip
    write_json(folder / f"{name}.json", data)


def store_timed(folder: Path, programs: Iterable[tuple[str, str, Workload, Build]]) -> None:
    """Assembles and stores (group, name, tensors, build without a cubin) of programs in PTX, to be timed."""
    from cutegen_lab.compile.dsl import assemble

    folder.mkdir(parents=True, exist_ok=True)
    for group, name, workload, build in programs:
        made = replace(build, cubin=assemble(build.ptx, ARCH))
        store(folder, name, group, workload, {}, made, counted=False, timed=True)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, workload, build, offsets in programs():
        store(folder, f"ptx-{name}", "ptx", workload, {}, build, counted=True, timed=False, given=[list(offsets)])
    written = for_each(cases(), folder, lambda case, compiler: write(case, folder, compiler))
    print(f"{sum(written)} kernels in {folder}; {len(written) - sum(written)} did not compile")


if __name__ == "__main__":
    command_line(main)
