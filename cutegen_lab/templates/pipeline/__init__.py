"""Several kernels in one module, for references that no single kernel of the families computes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cutegen_lab.core.errors import ProviderError
from cutegen_lab.templates.frontend.reader import Programs
from cutegen_lab.templates.pipeline.cut import Cutter, Piece
from cutegen_lab.templates.pipeline.flow import Flow
from cutegen_lab.templates.pipeline.pipeline import Pipeline
from cutegen_lab.templates.pipeline.wiring import Wiring
from cutegen_lab.templates.registry import ServedElsewhere

__all__ = ["Asked", "Pipeline", "StepRefused", "pipeline_for", "pipeline_of"]
_WORDS = {"matrix": "gemm", "product": "gemm"}  # a family's first word -> name of its steps, if that differs


def pipeline_for(programs: Programs, why: ProviderError) -> Pipeline:
    """The pipeline that moves the fewest bytes between its kernels. ``why``: the error that says why no single kernel
    serves the reference; it is raised if there is only one operation, or if a kernel exists for another arch. Otherwise
    ProviderError names an operation that no kernel serves."""
    cutter = Cutter(programs)
    alone = len(cutter.flow.order) < 2
    try:
        pieces = cutter.pieces()
    except ProviderError as error:
        raise why if alone or isinstance(why, ServedElsewhere) else error from why
    if len(pieces) < 2:
        raise why
    return Pipeline(programs.problem, Wiring(cutter, pieces, list(_names(pieces))))


@dataclass(frozen=True)
class Asked:
    """A requested step. ``results``: which results of the program the step computes, by number."""

    name: str
    results: tuple[int, ...]


class StepRefused(ProviderError):
    """No family computes the step ``step`` in one kernel."""

    def __init__(self, step: str, message: str, action: str = "") -> None:
        self.step = step
        super().__init__(message, action)


def pipeline_of(programs: Programs, asked: Sequence[Asked], between: int) -> Pipeline:
    """Pipeline with one kernel for each requested step. The first ``between`` results of the programs are intermediate;
    the others are the outputs of the problem. Raises StepRefused, and ProviderError if a result is an input."""
    program = programs.of(programs.problem.workload.name)
    results = program.whole().results
    left = {step.name: [results[at] for at in step.results] for step in asked}
    for name, values in left.items():
        if any(program.nodes[value].op != "call_function" for value in values):
            raise StepRefused(name, f"the step {name} returns an input unchanged", "Leave it out.")
    cutter = Cutter(programs, Flow(program, (value for values in left.values() for value in values), results[between:]))
    pieces, taken = list[Piece](), set[str]()
    for step in asked:
        mine = cutter.flow.leading_to(left[step.name]) - taken
        taken |= mine
        if not mine:
            raise StepRefused(step.name, f"no result depends on the step {step.name}", "Leave it out.")
        found = cutter.piece([name for name in cutter.flow.order if name in mine])
        if isinstance(found, str):
            raise StepRefused(step.name, found)
        pieces.append(found)
    return Pipeline(programs.problem, Wiring(cutter, pieces, [step.name for step in asked]))


def _names(pieces: Sequence[Piece]) -> Iterator[str]:
    """Names of steps: ``gemm``, ``row``; numbered if there are several of one kind."""
    words = [piece.family.name.split()[0] for piece in pieces]
    words = [_WORDS.get(word, word) for word in words]
    seen = Counter[str]()
    for word in words:
        seen[word] += 1
        yield word if words.count(word) == 1 else f"{word}{seen[word]}"
