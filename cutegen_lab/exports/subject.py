"""The input of export formats: one judged kernel."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass

from cutegen_lab.core.artifact import Artifact, Build
from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem, Workload

_MOST_LETTERS = 40


@dataclass(frozen=True)
class Subject:
    """One compiled candidate of a run."""

    problem: Problem
    """The run's problem."""
    run_id: str
    """Id of the run."""
    candidate_id: str
    """Id of the candidate."""
    source: str
    """Its CuTe text; specialised for its config if that was proven to compile to the same machine code."""
    judged_source: str
    """The text that was compiled and judged; lines of the artifact refer to it."""
    config: Config
    """Values of the text's tunables; {} if they are folded into it."""
    claims: tuple[str, ...]
    """Lines of comment, without ``#``, on what was judged, and where."""
    artifact: Artifact
    """What was judged."""
    of_template: bool
    """Whether the text was written by one of cutegen-lab's templates."""
    gpu: str
    """GPU whose speed of light was the bound ("H200")."""

    @property
    def name(self) -> str:
        """The problem's name as a lower-case identifier."""
        return identifier(self.problem.name)

    @property
    def key(self) -> str:
        """First digits of the artifact's hash, which distinguish kernels of one name."""
        return self.artifact.sha256[:8]

    @property
    def builds(self) -> list[tuple[Workload, Build]]:
        """The analyst's workloads with their builds."""
        return [(workload, self.artifact.builds[workload.name]) for workload in self.problem.workloads]

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the inputs as parameters of a function; ``input_0``, … if the names cannot be parameters."""
        names = tuple(spec.name for spec in self.problem.workload.inputs)
        good = all(n.isascii() and n.isidentifier() and not keyword.iskeyword(n) for n in names)
        return names if good and len({*names}) == len(names) else tuple(f"input_{i}" for i in range(len(names)))


def identifier(text: str) -> str:
    """``text`` as a lower-case Python identifier that is no keyword."""
    found = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:_MOST_LETTERS] or "kernel"
    return f"kernel_{found}" if found[0].isdigit() or keyword.iskeyword(found) else found
